package dev.forebay.spark;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;

/**
 * How files are named where a store's checkpoints are: changelogs by version, and with checkpoint format 2 by their own id,
 * too; snapshots by both in either.
 */
final class Naming {
    /** Changes of one version, in Spark's format. */
    static final String CHANGELOG = ".changelog";
    /** All of a version: which files it is made of. */
    static final String SNAPSHOT = ".forebay";
    /** Changes of one version, and all of one, by Spark's provider that keeps state in memory. */
    static final String DELTA = ".delta";
    /** What such snapshots share: the folders of tables, and of logs. */
    static final List<String> ROCKSDB_FOLDERS = List.of("SSTs", "logs");
    /** The folder of those files. */
    static final String FILES = "forebay-files";

    /** A version, and whose: the id of a commit, which changelogs have in checkpoint format 2, and snapshots in both. */
    record Version(long number, Optional<String> id) {
        @Override
        public String toString() {
            return number + id.map(known -> "_" + known).orElse("");
        }
    }

    /** Who made a snapshot: this provider, or one of Spark's from before this one took the checkpoint over. */
    enum Maker {
        FOREBAY(SNAPSHOT),
        ROCKSDB(".zip"),
        IN_MEMORY(".snapshot");

        final String kind;

        Maker(String kind) {
            this.kind = kind;
        }
    }

    /** All of a version, as it stands where checkpoints are. */
    record Snapshot(Version version, Maker maker) {
        Optional<String> id() {
            return version.id();
        }

        long number() {
            return version.number();
        }
    }

    private final Path root;

    Naming(Path root) {
        this.root = root;
    }

    Path root() {
        return root;
    }

    Path changelog(Version version) {
        return new Path(root, version + CHANGELOG);
    }

    Path snapshot(Version version) {
        return new Path(root, version + SNAPSHOT);
    }

    Path path(Snapshot snapshot) {
        return new Path(root, snapshot.version() + snapshot.maker().kind);
    }

    Path delta(Version version) {
        return new Path(root, version + DELTA);
    }

    /** Where a file is that a snapshot of RocksDB's shares. */
    Path rocksDbFile(String name) {
        String folder = ROCKSDB_FOLDERS.get(name.endsWith(".sst") ? 0 : 1);
        return new Path(new Path(root, folder), name);
    }

    Path files() {
        return new Path(root, FILES);
    }

    Path file(String content) {
        return new Path(files(), content);
    }

    /** The snapshot that a file is, if it is one. */
    static Optional<Snapshot> snapshot(Path path) {
        return Stream.of(Maker.values())
                .flatMap(maker -> version(path, maker.kind).map(version -> new Snapshot(version, maker)).stream()).findFirst();
    }

    /** More digits than a version has. */
    private static final int DIGITS_MAX = 18;

    /** The version in a file's name, if it is a file of that kind. */
    static Optional<Version> version(Path path, String kind) {
        String name = path.getName();
        if (!name.endsWith(kind)) {
            return Optional.empty();
        }
        String stem = name.substring(0, name.length() - kind.length());
        int split = stem.indexOf('_');
        String number = split < 0 ? stem : stem.substring(0, split);
        if (number.isEmpty() || number.length() > DIGITS_MAX || !number.chars().allMatch(digit -> digit >= '0' && digit <= '9')) {
            return Optional.empty();
        }
        Optional<String> id = split < 0 ? Optional.empty() : Optional.of(stem.substring(split + 1));
        return Optional.of(new Version(Long.parseLong(number), id));
    }

    /** The version of changes, of a snapshot of Spark's providers, or of a sum that Spark keeps beside one. */
    static Optional<Version> ofSpark(Path path) {
        return Stream.of(CHANGELOG, DELTA, Maker.ROCKSDB.kind, Maker.IN_MEMORY.kind)
                .flatMap(kind -> Stream.of(kind, kind + ".crc"))
                .flatMap(kind -> version(path, kind).stream()).findFirst();
    }

    /**
     * The version of a changelog or snapshot that is being written, or was when its writer was killed: until it is whole,
     * Spark has it beside its place, as {@code .NAME.RANDOM.tmp}.
     */
    static Optional<Version> unfinished(Path path) {
        String name = path.getName();
        int end = name.indexOf('.', 1);
        if (!name.startsWith(".") || !name.endsWith(".tmp") || end < 0) {
            return Optional.empty();
        }
        return version(new Path(path.getParent(), name.substring(1, end) + CHANGELOG), CHANGELOG);
    }
}
