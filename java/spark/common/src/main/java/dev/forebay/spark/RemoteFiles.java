package dev.forebay.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import scala.Enumeration;
import scala.Tuple3;

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

    /** Changes of a version: a file that is there once they are committed. */
    interface ChangelogWriter {
        void put(byte[] key, byte[] value);

        void delete(byte[] key);

        void merge(byte[] key, byte[] operand);

        void commit();

        void abort();
    }

    /** The same, to be read: kind, key and value of each. */
    interface ChangelogReader extends AutoCloseable {
        boolean hasNext();

        Tuple3<Enumeration.Value, byte[], byte[]> next();

        /** What stands before it, where its writer was told. */
        List<LineageItem> lineage();

        @Override
        void close();
    }

    boolean exists(Path path);

    void makeDirectories(Path path);

    List<FileStatus> list(Path directory);

    /** What is known of a file, if it is there. */
    Optional<FileStatus> status(Path path);

    InputStream open(Path path);

    /** Reads all of a file, for who wants to know whether that can be done. */
    default void readThrough(Path path) throws IOException {
        try (InputStream in = open(path)) {
            in.transferTo(OutputStream.nullOutputStream());
        }
    }

    /** The file is there once the stream is closed. */
    Output create(Path path);

    void delete(Path path);

    /** By Spark's writer: 1 and 2 without lineage, 3 and 4 with it; 2 and 4 know families and merges. */
    ChangelogWriter changelogWriter(Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage);

    ChangelogReader changelogReader(Path path);

    void close();
}
