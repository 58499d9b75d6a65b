package dev.forebay.spark;

import java.util.Optional;
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
    /** The folder of those files. */
    static final String FILES = "forebay-files";

    /** A version, and whose: the id of a commit, which changelogs have in checkpoint format 2, and snapshots in both. */
    record Version(long number, Optional<String> id) {
        @Override
        public String toString() {
            return number + id.map(known -> "_" + known).orElse("");
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

    Path files() {
        return new Path(root, FILES);
    }

    Path file(String content) {
        return new Path(files(), content);
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
