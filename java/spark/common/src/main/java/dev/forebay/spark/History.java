package dev.forebay.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads where checkpoints are how a version can be made: of which snapshot, and of which changelogs. */
final class History {
    private static final Logger LOG = LoggerFactory.getLogger(History.class);

    private final RemoteFiles remote;
    private final Naming naming;

    /**
     * A way to a version.
     *
     * @param snapshot where it begins; none for nothing
     * @param changelogs what follows, in its order
     * @param lineage with ids, what stands before the next commit
     * @param deltas of which versions there are the changes of Spark's provider that keeps state in memory
     */
    record Way(Optional<Naming.Snapshot> snapshot, List<Naming.Version> changelogs, List<LineageItem> lineage, Set<Long> deltas) {
        Way(Optional<Naming.Snapshot> snapshot, List<Naming.Version> changelogs, List<LineageItem> lineage) {
            this(snapshot, changelogs, lineage, Set.of());
        }

        /** Whether it leads over what Spark's providers have left. */
        boolean takesOver() {
            return snapshot.filter(start -> start.maker() != Naming.Maker.FOREBAY).isPresent()
                    || changelogs.stream().anyMatch(version -> deltas.contains(version.number()));
        }

        long begin() {
            return snapshot.map(Naming.Snapshot::number).orElse(0L);
        }
    }

    History(RemoteFiles remote, Naming naming) {
        this.remote = remote;
        this.naming = naming;
    }

    private List<Path> files() {
        return remote.exists(naming.root()) ? remote.list(naming.root()).stream().map(FileStatus::getPath).toList() : List.of();
    }

    private static Set<Naming.Snapshot> snapshots(List<Path> files) {
        return files.stream().map(Naming::snapshot).flatMap(Optional::stream).collect(Collectors.toSet());
    }

    /** Versions that have changes of Spark's provider that keeps state in memory, and none in a changelog. */
    private static Set<Long> deltas(List<Path> files) {
        Set<Long> deltas = numbers(files, Naming.DELTA);
        if (!deltas.isEmpty()) {
            deltas.removeAll(numbers(files, Naming.CHANGELOG));
        }
        return deltas;
    }

    private static Set<Long> numbers(List<Path> files, String kind) {
        return files.stream().map(path -> Naming.version(path, kind)).flatMap(Optional::stream)
                .map(Naming.Version::number).collect(Collectors.toSet());
    }

    /** The snapshot of a version that is there: ours before another's. */
    private static Optional<Naming.Snapshot> find(Naming.Version version, Predicate<Naming.Snapshot> isThere) {
        return Stream.of(Naming.Maker.values()).map(maker -> new Naming.Snapshot(version, maker)).filter(isThere).findFirst();
    }

    /** Who made a version without an id, where its changelog tells. */
    Optional<Attempt> attempt(long number) {
        try (RemoteFiles.ChangelogReader reader =
                remote.changelogReader(naming.changelog(new Naming.Version(number, Optional.empty())))) {
            return reader.hasNext() ? Attempt.of(reader.next()) : Optional.empty();
        }
    }

    /** Ways to a version without ids, the shortest first. Each is made as it is asked for. */
    Iterator<Way> ways(long number) {
        List<Path> files = files();
        Set<Naming.Snapshot> there = snapshots(files);
        Set<Long> deltas = deltas(files);
        List<Long> newestFirst = there.stream().map(Naming.Snapshot::number)
                .filter(begin -> begin > 0 && begin <= number).distinct().sorted(Comparator.reverseOrder()).toList();
        Stream<Way> found = newestFirst.stream()
                .flatMap(begin -> snapshot(begin, number, there).stream())
                .map(snapshot -> new Way(Optional.of(snapshot), plain(snapshot.number(), number), List.of(), deltas));
        Way whole = new Way(Optional.empty(), plain(0, number), List.of(), deltas);
        return Stream.concat(found, Stream.of(whole)).iterator();
    }

    /** The snapshot of a version without an id from which another one goes on. */
    private Optional<Naming.Snapshot> snapshot(long number, long last, Set<Naming.Snapshot> there) {
        Optional<Naming.Snapshot> ofSpark = find(new Naming.Version(number, Optional.empty()), there::contains);
        if (ofSpark.isPresent() && isOfSpark(number, last)) {
            return ofSpark;
        }
        return ours(number, last, there).map(version -> new Naming.Snapshot(version, Naming.Maker.FOREBAY)).filter(there::contains);
    }

    /** Whether a provider of Spark's made a version, and no attempt of ours since, nor what another version goes on from. */
    private boolean isOfSpark(long number, long last) {
        return ourAttempt(number).isEmpty()
                && (number == last || ourAttempt(number + 1).filter(made -> !made.base().equals(Attempt.UNKNOWN)).isEmpty());
    }

    /** As {@link #attempt}, where such a provider may have left no changelog, or one that it had no need to read. */
    Optional<Attempt> ourAttempt(long number) {
        try {
            return attempt(number);
        } catch (Throwable error) {
            if (!isLost(number)) {
                throw error;
            }
            return Optional.empty();
        }
    }

    /**
     * Which snapshot of ours it is. Others of its number are of attempts that nothing came of. Where the changelog that
     * tells is damaged or gone, it is the only one that is there.
     */
    private Optional<Naming.Version> ours(long number, long last, Set<Naming.Snapshot> there) {
        boolean isLast = number == last;
        long told = isLast ? number : number + 1;
        try {
            return attempt(told).map(made -> new Naming.Version(number, Optional.of(isLast ? made.id() : made.base())));
        } catch (Throwable error) {
            List<Naming.Version> all = there.stream().filter(snapshot -> snapshot.maker() == Naming.Maker.FOREBAY)
                    .map(Naming.Snapshot::version).filter(version -> version.number() == number).toList();
            if (all.size() != 1 || !isLost(told)) {
                throw error;
            }
            LOG.warn("The changelog of version {} in {} is damaged or gone; the only snapshot of version {} is taken", told,
                    naming.root(), number, error);
            return Optional.of(all.get(0));
        }
    }

    /** Whether a changelog is gone, or has bytes that tell nothing: not whether the way to it is cut off for a while. */
    private boolean isLost(long number) {
        try {
            remote.readThrough(naming.changelog(new Naming.Version(number, Optional.empty())));
        } catch (Exception error) {
            return Opener.isDamage(error);
        }
        try {
            // What failed before may have been the way to it.
            attempt(number);
            return false;
        } catch (Throwable error) {
            return true;
        }
    }

    /** From the very snapshot of a version to another version. */
    Way way(Naming.Version snapshot, Naming.Version last) {
        List<Path> files = files();
        Set<Naming.Snapshot> there = snapshots(files);
        Naming.Snapshot ours = new Naming.Snapshot(snapshot, Naming.Maker.FOREBAY);
        Naming.Snapshot exact = find(snapshot, there::contains).orElse(ours);
        if (last.id().isPresent() && last.number() > snapshot.number()) {
            List<LineageItem> items = lineage(snapshot.number() + 1, new LineageItem(last.number(), last.id().get()));
            return new Way(Optional.of(exact), items.stream().map(Lineage::version).toList(), items);
        }
        Naming.Snapshot named = snapshot.id().isPresent() ? exact : snapshot(snapshot.number(), last.number(), there).orElse(ours);
        return new Way(Optional.of(named), plain(snapshot.number(), last.number()), List.of(), deltas(files));
    }

    private static List<Naming.Version> plain(long after, long last) {
        List<Naming.Version> versions = new ArrayList<>();
        for (long number = after + 1; number <= last; number++) {
            versions.add(new Naming.Version(number, Optional.empty()));
        }
        return versions;
    }

    /** Ways to a version with an id, the shortest first. Its changelog is read once the first one has failed. */
    Iterator<Way> ways(LineageItem last) {
        Naming.Version version = Lineage.version(last);
        Optional<Naming.Snapshot> snapshot = find(version, named -> remote.exists(naming.path(named)));
        if (snapshot.isEmpty()) {
            return longer(last).iterator();
        }
        Way own = new Way(snapshot, List.of(), List.of(last));
        return Stream.concat(Stream.of(own), Stream.of(last).flatMap(this::longer)).iterator();
    }

    /** Those that begin before it; where none does that its changelog tells of, older changelogs are asked at once. */
    private Stream<Way> longer(LineageItem last) {
        List<LineageItem> lineage = lineage(last);
        Set<Naming.Snapshot> snapshots = snapshots(files());
        List<Way> ways = ways(lineage, last.version(), snapshots);
        Stream<Way> older = Stream.of(lineage).flatMap(known -> older(known, snapshots));
        if (!ways.isEmpty()) {
            return Stream.concat(ways.stream(), older);
        }
        List<Way> found = older.toList();
        if (found.isEmpty()) {
            throw Raise.it(QueryExecutionErrors.cannotFindBaseSnapshotCheckpoint(Lineage.text(lineage)));
        }
        return found.stream();
    }

    /**
     * Those that begin before a lineage does. Changelogs have it from a snapshot on: that of its oldest version tells what
     * was before. None where this is gone.
     */
    private Stream<Way> older(List<LineageItem> lineage, Set<Naming.Snapshot> snapshots) {
        LineageItem oldest = lineage.get(0);
        if (oldest.version() <= 1) {
            return Stream.of();
        }
        List<LineageItem> whole;
        try {
            whole = lineage(oldest);
        } catch (Exception error) {
            LOG.info("No changelog tells what was before version {} in {}", oldest.version(), naming.root(), error);
            return Stream.of();
        }
        if (whole.get(0).version() >= oldest.version()) {
            return Stream.of();
        }
        whole.addAll(lineage.subList(1, lineage.size()));
        List<Way> ways = ways(whole, oldest.version(), snapshots);
        return Stream.concat(ways.stream(), Stream.of(whole).flatMap(known -> older(known, snapshots)));
    }

    /** Those that begin within a lineage, at a snapshot below a version, the shortest first; and with nothing. */
    private static List<Way> ways(List<LineageItem> lineage, long below, Set<Naming.Snapshot> snapshots) {
        List<Way> ways = new ArrayList<>();
        for (LineageItem item : lineage.stream().sorted(Comparator.comparingLong(LineageItem::version).reversed()).toList()) {
            if (item.version() < below) {
                find(Lineage.version(item), snapshots::contains).ifPresent(found -> ways.add(way(Optional.of(found), lineage)));
            }
        }
        if (lineage.get(0).version() == 1) {
            ways.add(way(Optional.empty(), lineage));
        }
        return ways;
    }

    private static Way way(Optional<Naming.Snapshot> snapshot, List<LineageItem> lineage) {
        long begin = snapshot.map(Naming.Snapshot::number).orElse(0L);
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
        try (RemoteFiles.ChangelogReader reader = remote.changelogReader(naming.changelog(Lineage.version(item)))) {
            return reader.lineage();
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
