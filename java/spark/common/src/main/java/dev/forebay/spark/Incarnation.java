package dev.forebay.spark;

import dev.forebay.Checkpoint.CheckpointFile;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A life of the local database: from the snapshot that it was made of, on. In one life a file's name is never used
 * again, so the content that a name had is known for good. The next life begins with the same numbers for names.
 */
final class Incarnation {
    private volatile Map<String, Manifest.Shared> contents = Map.of();
    private volatile Optional<Naming.Version> base = Optional.empty();

    /** The newest snapshot that is where others see it: what is uploaded next shares files with it. */
    Optional<Naming.Version> base() {
        return base;
    }

    /** Its snapshot is where it belongs, and these are its files. */
    void rebase(Naming.Version version, Manifest manifest) {
        // What only older snapshots have is not needed to share, and there is more of it with each.
        contents = manifest.shared().stream()
                .collect(Collectors.toMap(Manifest.Shared::name, Function.identity(), (one, other) -> other));
        base = Optional.of(version);
    }

    /** Its snapshots are gone: all files are uploaded anew. */
    void forget() {
        contents = Map.of();
        base = Optional.empty();
    }

    /** The file as some snapshot has it. */
    Optional<Manifest.Shared> known(CheckpointFile file) {
        Manifest.Shared known = contents.get(file.name());
        boolean isSame = known != null && known.digest() != null && file.digest().isPresent()
                && known.digest() == file.digest().getAsLong() && known.bytes() == file.bytes();
        return isSame ? Optional.of(known) : Optional.empty();
    }

    /** What is known of the content of a local file. */
    Optional<Manifest.Shared> known(String name) {
        return Optional.ofNullable(contents.get(name));
    }
}
