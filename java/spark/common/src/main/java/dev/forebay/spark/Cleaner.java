package dev.forebay.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileStatus;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Deletes versions that nobody may go back to. What stays: the newest versions, as many as are to be kept; for each of
 * them the snapshot that it is restored from; and changelogs from the oldest such snapshot on. What writers that were
 * killed have left of a version goes with it.
 *
 * <p>A shared file is deleted once no snapshot has named it for the grace time: another executor may be about to upload a
 * snapshot that shares it, and nobody knows of that before the manifest is there.
 */
final class Cleaner {
    private static final Logger LOG = LoggerFactory.getLogger(Cleaner.class);

    /** Files that are being written begin so. Some file systems tell when that began, and not when it ended. */
    private static final String UNFINISHED = ".";
    /** The newest snapshot may be of an attempt that nothing comes of: what stands before it is kept, too. */
    private static final int KEPT_MIN = 2;
    private static final long UNFINISHED_GRACE_MILLISECONDS = 24L * 60 * 60 * 1000;

    private final RemoteFiles remote;
    private final Naming naming;
    private final Snapshots snapshots;
    private final long graceMilliseconds;
    private final LongSupplier clock;
    private final Map<Naming.Version, Manifest> manifests = new HashMap<>();
    /** Files that no snapshot names, and since when. */
    private final Map<String, Long> unnamed = new HashMap<>();
    private long versionMin = 1;
    private boolean hasDeleted = true;
    /** When one of the files that no snapshot names may be old enough. */
    private long due = Long.MAX_VALUE;

    Cleaner(Plan plan, Snapshots snapshots) {
        this.remote = plan.remote();
        this.naming = plan.naming();
        this.snapshots = snapshots;
        this.graceMilliseconds = plan.settings().graceMilliseconds();
        this.clock = plan.clock();
    }

    /**
     * Deletes what is too old.
     *
     * @param versionMax the newest version that this store has seen, or -1
     * @param kept how many versions are kept
     * @param deletedMax how many versions go at a time, or -1; where that is not 0, all before the second snapshot may
     * @param deletedMin of how few versions nothing goes yet
     */
    void clean(long versionMax, int kept, int deletedMax, long deletedMin) throws IOException {
        boolean isDue = deletedMin <= 0 || versionMax < 0 || versionMax - versionMin + 1 - kept >= deletedMin;
        if (isDue && deletedMax != 0) {
            deleteVersions(Math.max(KEPT_MIN, kept), deletedMax);
        }
        long now = clock.getAsLong();
        if (hasDeleted || now >= due) {
            deleteFiles(now);
        }
    }

    private void deleteVersions(int kept, int deletedMax) throws IOException {
        if (!remote.exists(naming.root())) {
            return;
        }
        Map<Naming.Version, Long> snapshotTimes = new HashMap<>();
        List<FileStatus> files = remote.list(naming.root());
        for (FileStatus status : files) {
            Naming.version(status.getPath(), Naming.SNAPSHOT)
                    .ifPresent(version -> snapshotTimes.put(version, status.getModificationTime()));
        }
        Set<Naming.Version> there = snapshotTimes.keySet();
        if (there.isEmpty()) {
            return;
        }
        manifests.keySet().retainAll(there);
        NavigableSet<Long> numbers = there.stream().map(Naming.Version::number).collect(Collectors.toCollection(TreeSet::new));
        long oldest = numbers.first();
        OptionalLong floor = floor(snapshotTimes, numbers.last() - kept + 1);
        if (floor.isEmpty()) {
            return;
        }
        long least = floor.getAsLong();
        Long second = numbers.higher(oldest);
        if (deletedMax > 0 && second != null) {
            // Where snapshots are farther apart than that, nothing would ever go.
            least = Math.min(least, Math.max(second, numbers.floor(oldest + deletedMax)));
        }
        long keptFrom = least;
        there.stream().filter(version -> version.number() < keptFrom).forEach(version -> {
            remote.delete(naming.snapshot(version));
            manifests.remove(version);
            hasDeleted = true;
        });
        deleteSharedOfRocksDb(files, keptFrom);
        for (FileStatus status : files) {
            Optional<Naming.Version> version = Naming.ofSpark(status.getPath()).or(() -> unfinished(status));
            if (version.isPresent() && version.get().number() < keptFrom) {
                remote.delete(status.getPath());
            }
        }
        versionMin = keptFrom;
    }

    /** Where the last snapshots of RocksDB's go, what they share goes, too. */
    private void deleteSharedOfRocksDb(List<FileStatus> files, long keptFrom) {
        boolean isNeeded = files.stream().map(status -> Naming.version(status.getPath(), Naming.Maker.ROCKSDB.kind))
                .flatMap(Optional::stream).anyMatch(version -> version.number() >= keptFrom);
        for (FileStatus status : files) {
            if (!isNeeded && status.isDirectory() && Naming.ROCKSDB_FOLDERS.contains(status.getPath().getName())) {
                remote.delete(status.getPath());
            }
        }
    }

    /** What somebody who was killed has left. One who is slow alone, with a version that nobody needs, may come to an end. */
    private Optional<Naming.Version> unfinished(FileStatus status) {
        long age = clock.getAsLong() - status.getModificationTime();
        return age >= grace(status.getPath().getName()) ? Naming.unfinished(status.getPath()) : Optional.empty();
    }

    /**
     * The oldest snapshot that a kept version is restored from. Attempts that were given up left snapshots, too: each kept one
     * is followed back in its own history.
     */
    private OptionalLong floor(Map<Naming.Version, Long> there, long limit) throws IOException {
        OptionalLong floor = OptionalLong.empty();
        for (Naming.Version version : there.keySet()) {
            if (version.number() >= limit) {
                Optional<Naming.Version> root = back(version, limit, there);
                if (root.isEmpty()) {
                    return OptionalLong.empty();
                }
                long number = root.get().number();
                floor = OptionalLong.of(Math.min(number, floor.orElse(number)));
            }
        }
        return floor;
    }

    private Optional<Naming.Version> back(Naming.Version from, long limit, Map<Naming.Version, Long> there) throws IOException {
        Naming.Version at = from;
        while (at.number() > limit) {
            String base = manifest(at, there.get(at)).base();
            if (base.isEmpty()) {
                // Nothing before it is needed, and nothing before it is known to be in the way.
                return Optional.empty();
            }
            Optional<Naming.Version> before =
                    Naming.version(new org.apache.hadoop.fs.Path(naming.root(), base + Naming.SNAPSHOT), Naming.SNAPSHOT);
            if (before.isEmpty() || !there.containsKey(before.get()) || before.get().number() >= at.number()) {
                return Optional.empty();
            }
            at = before.get();
        }
        return Optional.of(at);
    }

    /** A young one may be written anew yet, once its writer sees that files of it were deleted. */
    private Manifest manifest(Naming.Version version, long modified) throws IOException {
        Manifest known = manifests.get(version);
        if (known == null) {
            known = snapshots.read(version);
            if (clock.getAsLong() - modified >= graceMilliseconds) {
                manifests.put(version, known);
            }
        }
        return known;
    }

    private void deleteFiles(long now) throws IOException {
        if (!remote.exists(naming.files())) {
            return;
        }
        // Files first: what a manifest names that comes meanwhile is then not among them, or is named.
        List<FileStatus> files = remote.list(naming.files());
        Set<Naming.Version> seen = new HashSet<>();
        Set<String> named = new HashSet<>();
        nameFiles(seen, named);
        unnamed.keySet().retainAll(files.stream().map(status -> status.getPath().getName()).toList());
        unnamed.keySet().removeAll(named);
        List<FileStatus> old = files.stream().filter(status -> !named.contains(status.getPath().getName()))
                .filter(status -> isOld(status, unnamed.computeIfAbsent(status.getPath().getName(), first -> now), now)).toList();
        if (!old.isEmpty()) {
            // Reading manifests takes its time, in which others may have come.
            nameFiles(seen, named);
        }
        for (FileStatus status : old) {
            String name = status.getPath().getName();
            // It may have been written anew by somebody who is about to name it. Between this look and the delete it may be, too:
            // who uploads looks whether all is there once the manifest is, and uploads again.
            Optional<FileStatus> latest = remote.status(status.getPath());
            if (!named.contains(name) && latest.isPresent() && isOld(latest.get(), unnamed.get(name), now)) {
                remote.delete(status.getPath());
                unnamed.remove(name);
                LOG.debug("Deleted the file {}, which no snapshot names", status.getPath());
            }
        }
        hasDeleted = false;
        due = unnamed.entrySet().stream().mapToLong(file -> file.getValue() + grace(file.getKey())).min().orElse(Long.MAX_VALUE);
    }

    /** Adds the files of snapshots that were not seen yet. */
    private void nameFiles(Set<Naming.Version> seen, Set<String> named) throws IOException {
        for (FileStatus status : remote.list(naming.root())) {
            Optional<Naming.Version> version = Naming.version(status.getPath(), Naming.SNAPSHOT);
            if (version.isPresent() && seen.add(version.get())) {
                named.addAll(manifest(version.get(), status.getModificationTime()).contents());
            }
        }
    }

    private boolean isOld(FileStatus file, long since, long now) {
        long grace = grace(file.getPath().getName());
        return now - since >= grace && now - file.getModificationTime() >= grace;
    }

    private long grace(String file) {
        return file.startsWith(UNFINISHED) ? Math.max(graceMilliseconds, UNFINISHED_GRACE_MILLISECONDS) : graceMilliseconds;
    }
}
