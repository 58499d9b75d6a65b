package dev.forebay.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Deletes versions that nobody may go back to. What stays: the newest versions, as many as are to be kept; for each of
 * them the snapshot that it is restored from; and changelogs from the oldest such snapshot on.
 *
 * <p>A shared file is deleted once no snapshot has named it for the grace time: another executor may be about to upload a
 * snapshot that shares it, and nobody knows of that before the manifest is there.
 */
final class Cleaner {
    private static final Logger LOG = LoggerFactory.getLogger(Cleaner.class);

    private final RemoteFiles remote;
    private final Naming naming;
    private final Snapshots snapshots;
    private final long graceMilliseconds;
    private final Map<Naming.Version, Manifest> manifests = new HashMap<>();
    /** Files that no snapshot names, and since when. */
    private final Map<String, Long> unnamed = new HashMap<>();
    private long versionMin = 1;
    private boolean hasDeleted = true;

    Cleaner(RemoteFiles remote, Naming naming, Snapshots snapshots, long graceMilliseconds) {
        this.remote = remote;
        this.naming = naming;
        this.snapshots = snapshots;
        this.graceMilliseconds = graceMilliseconds;
    }

    /**
     * Deletes what is too old.
     *
     * @param versionMax the newest version that this store has seen, or -1
     * @param kept how many versions are kept
     * @param deletedMax how many versions go at a time, or -1
     * @param deletedMin of how few versions nothing goes yet
     */
    void clean(long versionMax, int kept, int deletedMax, long deletedMin) throws IOException {
        boolean isDue = deletedMin <= 0 || versionMax < 0 || versionMax - versionMin + 1 - kept >= deletedMin;
        if (isDue) {
            deleteVersions(kept, deletedMax);
        }
        if (hasDeleted || !unnamed.isEmpty()) {
            deleteFiles(System.currentTimeMillis());
        }
    }

    private void deleteVersions(int kept, int deletedMax) throws IOException {
        if (!remote.exists(naming.root())) {
            return;
        }
        List<Naming.Version> there = new ArrayList<>();
        List<Naming.Version> changelogs = new ArrayList<>();
        for (FileStatus status : remote.list(naming.root())) {
            Naming.version(status.getPath(), Naming.SNAPSHOT).ifPresent(there::add);
            Naming.version(status.getPath(), Naming.CHANGELOG).ifPresent(changelogs::add);
        }
        if (there.isEmpty()) {
            return;
        }
        manifests.keySet().retainAll(there);
        long newest = there.stream().mapToLong(Naming.Version::number).max().getAsLong();
        long oldest = there.stream().mapToLong(Naming.Version::number).min().getAsLong();
        OptionalLong floor = floor(there, newest - kept + 1);
        if (floor.isEmpty()) {
            return;
        }
        long least = floor.getAsLong();
        if (deletedMax >= 0) {
            long bound = least;
            least = there.stream().mapToLong(Naming.Version::number)
                    .filter(number -> number <= bound && number <= oldest + deletedMax).max().orElse(oldest);
        }
        long keptFrom = least;
        there.stream().filter(version -> version.number() < keptFrom).forEach(version -> {
            remote.delete(naming.snapshot(version));
            manifests.remove(version);
            hasDeleted = true;
        });
        changelogs.stream().filter(version -> version.number() < keptFrom).forEach(version -> remote.delete(naming.changelog(version)));
        versionMin = keptFrom;
    }

    /** The oldest snapshot that a kept version is restored from. */
    private OptionalLong floor(List<Naming.Version> there, long limit) throws IOException {
        boolean hasIds = there.stream().anyMatch(version -> version.id().isPresent());
        if (!hasIds) {
            return there.stream().mapToLong(Naming.Version::number).filter(number -> number <= limit).max();
        }
        // Attempts that were given up left snapshots, too. Each kept one is followed back in its own history.
        OptionalLong floor = OptionalLong.empty();
        for (Naming.Version version : there) {
            if (version.number() >= limit) {
                Optional<Naming.Version> root = back(version, limit, new HashSet<>(there));
                if (root.isEmpty()) {
                    return OptionalLong.empty();
                }
                long number = root.get().number();
                floor = OptionalLong.of(Math.min(number, floor.orElse(number)));
            }
        }
        return floor;
    }

    private Optional<Naming.Version> back(Naming.Version from, long limit, Set<Naming.Version> there) throws IOException {
        Naming.Version at = from;
        while (at.number() > limit) {
            String base = manifest(at).base();
            if (base.isEmpty()) {
                // Nothing before it is needed, and nothing before it is known to be in the way.
                return Optional.empty();
            }
            Optional<Naming.Version> before =
                    Naming.version(new org.apache.hadoop.fs.Path(naming.root(), base + Naming.SNAPSHOT), Naming.SNAPSHOT);
            if (before.isEmpty() || !there.contains(before.get()) || before.get().number() >= at.number()) {
                return Optional.empty();
            }
            at = before.get();
        }
        return Optional.of(at);
    }

    private Manifest manifest(Naming.Version version) throws IOException {
        Manifest known = manifests.get(version);
        if (known == null) {
            known = snapshots.read(version);
            manifests.put(version, known);
        }
        return known;
    }

    private void deleteFiles(long now) throws IOException {
        if (!remote.exists(naming.files())) {
            return;
        }
        // Files first: what a manifest names that comes meanwhile is then not among them, or is named.
        List<FileStatus> files = remote.list(naming.files());
        Set<String> named = new HashSet<>();
        for (FileStatus status : remote.list(naming.root())) {
            Optional<Naming.Version> version = Naming.version(status.getPath(), Naming.SNAPSHOT);
            if (version.isPresent()) {
                // It may have been written anew in checkpoint format 1.
                named.addAll((version.get().id().isPresent() ? manifest(version.get()) : snapshots.read(version.get())).contents());
            }
        }
        unnamed.keySet().retainAll(files.stream().map(status -> status.getPath().getName()).toList());
        unnamed.keySet().removeAll(named);
        for (FileStatus status : files) {
            String name = status.getPath().getName();
            if (named.contains(name)) {
                continue;
            }
            long since = unnamed.computeIfAbsent(name, first -> now);
            if (now - since >= graceMilliseconds && now - status.getModificationTime() >= graceMilliseconds) {
                remote.delete(status.getPath());
                unnamed.remove(name);
                LOG.debug("Deleted the file {}, which no snapshot names", status.getPath());
            }
        }
        hasDeleted = false;
    }
}
