package dev.forebay.spark;

import dev.forebay.Checkpoint;
import java.nio.file.Path;
import java.util.List;

/** A version as it was committed, in a directory of this executor, which is to be uploaded and removed. */
record LocalSnapshot(
        Naming.Version version,
        Path directory,
        Checkpoint checkpoint,
        List<Family.Shape> families,
        int idMax,
        long keys,
        long internalKeys,
        Incarnation incarnation) {

    void remove() {
        Directories.remove(directory);
    }
}
