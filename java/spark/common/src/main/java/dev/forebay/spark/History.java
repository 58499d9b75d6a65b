package dev.forebay.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.LongPredicate;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;

/** Reads where checkpoints are how a version can be made: of which snapshot, and of which changelogs. */
final class History {
    private final RemoteFiles remote;
    private final Naming naming;

    /**
     * A way to a version.
     *
     * @param snapshot where it begins; none for nothing
     * @param changelogs what follows, in its order
     * @param lineage with ids, what stands before the next commit
     */
    record Way(Optional<Naming.Version> snapshot, List<Naming.Version> changelogs, List<LineageItem> lineage) {
        long begin() {
            return snapshot.map(Naming.Version::number).orElse(0L);
        }
    }

    History(RemoteFiles remote, Naming naming) {
        this.remote = remote;
        this.naming = naming;
    }

    /** All snapshots that are there. */
    List<Naming.Version> snapshots() {
        return versions(Naming.SNAPSHOT, number -> true);
    }

    private List<Naming.Version> versions(String kind, LongPredicate isWanted) {
        List<Naming.Version> found = new ArrayList<>();
        if (remote.exists(naming.root())) {
            for (FileStatus status : remote.list(naming.root())) {
                Naming.version(status.getPath(), kind).filter(version -> isWanted.test(version.number())).ifPresent(found::add);
            }
        }
        return found;
    }

    /** The newest version that is there, or 0. */
    long newest() {
        long changelog = versions(Naming.CHANGELOG, number -> true).stream().mapToLong(Naming.Version::number).max().orElse(0);
        return Math.max(changelog, snapshots().stream().mapToLong(Naming.Version::number).max().orElse(0));
    }

    /** Ways to a version without ids, the shortest first. */
    List<Way> ways(long number, List<Naming.Version> snapshots) {
        List<Way> ways = new ArrayList<>();
        snapshots.stream()
                .filter(snapshot -> snapshot.id().isEmpty() && snapshot.number() <= number && snapshot.number() > 0)
                .sorted(Comparator.comparingLong(Naming.Version::number).reversed())
                .forEach(snapshot -> ways.add(
                        new Way(Optional.of(snapshot), plain(snapshot.number(), number), List.of())));
        ways.add(new Way(Optional.empty(), plain(0, number), List.of()));
        return ways;
    }

    private static List<Naming.Version> plain(long after, long last) {
        List<Naming.Version> versions = new ArrayList<>();
        for (long number = after + 1; number <= last; number++) {
            versions.add(new Naming.Version(number, Optional.empty()));
        }
        return versions;
    }

    /** Ways to a version with an id, the shortest first. */
    List<Way> ways(LineageItem last) {
        Naming.Version version = Lineage.version(last);
        List<Way> ways = new ArrayList<>();
        if (remote.exists(naming.snapshot(version))) {
            ways.add(new Way(Optional.of(version), List.of(), List.of(last)));
            if (!remote.exists(naming.changelog(version))) {
                return ways;
            }
        }
        List<LineageItem> lineage = lineage(last);
        List<Naming.Version> snapshots = snapshots();
        for (LineageItem item : lineage.stream().sorted(Comparator.comparingLong(LineageItem::version).reversed()).toList()) {
            if (item.version() < last.version() && snapshots.contains(Lineage.version(item))) {
                ways.add(way(Optional.of(Lineage.version(item)), lineage));
            }
        }
        if (lineage.get(0).version() == 1) {
            ways.add(way(Optional.empty(), lineage));
        }
        if (ways.isEmpty()) {
            throw Raise.it(QueryExecutionErrors.cannotFindBaseSnapshotCheckpoint(Lineage.text(lineage)));
        }
        return ways;
    }

    private static Way way(Optional<Naming.Version> snapshot, List<LineageItem> lineage) {
        long begin = snapshot.map(Naming.Version::number).orElse(0L);
        List<LineageItem> used = lineage.stream().filter(item -> item.version() >= begin).toList();
        List<Naming.Version> changelogs =
                used.stream().filter(item -> item.version() > begin).map(Lineage::version).toList();
        return new Way(snapshot, changelogs, used);
    }

    /** The lineage that stands in a changelog, and itself, in the order of versions. */
    private List<LineageItem> lineage(LineageItem last) {
        List<LineageItem> lineage = new ArrayList<>(read(last));
        lineage.add(last);
        lineage.sort(Comparator.comparingLong(LineageItem::version));
        return lineage;
    }

    private List<LineageItem> read(LineageItem item) {
        StateStoreChangelogReader reader = remote.changelogReader(naming.changelog(Lineage.version(item)));
        try {
            return List.of(reader.lineage());
        } finally {
            reader.closeIfNeeded();
        }
    }

    /** The whole lineage from one version on to another one: changelogs have it from their snapshot on. */
    List<LineageItem> lineage(long first, LineageItem last) {
        List<LineageItem> found = new ArrayList<>(List.of(last));
        LineageItem oldest = last;
        while (oldest.version() > first) {
            List<LineageItem> older = read(oldest).stream()
                    .filter(item -> item.version() >= first)
                    .sorted(Comparator.comparingLong(LineageItem::version).reversed())
                    .toList();
            found.addAll(older);
            LineageItem next = found.get(found.size() - 1);
            if (next.version() >= oldest.version()) {
                throw Minor.wrongLineage(Lineage.text(found), "Cannot find version smaller than " + oldest.version() + " in lineage.");
            }
            oldest = next;
        }
        found.sort(Comparator.comparingLong(LineageItem::version));
        for (int place = 0; place < found.size(); place++) {
            if (found.get(place).version() != first + place) {
                throw Minor.wrongLineage(Lineage.text(found), "Lineage versions are not increasing by one.");
            }
        }
        return found;
    }
}
