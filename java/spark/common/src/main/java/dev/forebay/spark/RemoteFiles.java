package dev.forebay.spark;

import java.io.OutputStream;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;

/**
 * The place of a store's checkpoints, by Spark's own file manager, whose package moved between versions of Spark. A file
 * is there with all its bytes, or not.
 */
interface RemoteFiles {
    /** What {@link #create} writes to. */
    abstract class Output extends OutputStream {
        /** Gives up: the file is not there then. */
        abstract void cancel();
    }

    boolean exists(Path path);

    void makeDirectories(Path path);

    List<FileStatus> list(Path directory);

    FSDataInputStream open(Path path);

    /** The file is there once the stream is closed. */
    Output create(Path path);

    void delete(Path path);

    /** Spark's writer: 1 and 2 without lineage, 3 and 4 with it; 2 and 4 know families and merges. */
    StateStoreChangelogWriter changelogWriter(Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage);

    StateStoreChangelogReader changelogReader(Path path);

    void close();
}
