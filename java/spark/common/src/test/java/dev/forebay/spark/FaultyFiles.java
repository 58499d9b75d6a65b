package dev.forebay.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;

/** Files of which one operation fails: before it has done anything, or after it has done all. */
final class FaultyFiles implements RemoteFiles {
    /** When an operation fails. */
    enum When {
        BEFORE,
        AFTER
    }

    private final RemoteFiles files;
    private final When when;
    private long left;
    boolean hasFailed;

    FaultyFiles(RemoteFiles files, long failing, When when) {
        this.files = files;
        this.left = failing;
        this.when = when;
    }

    private interface Operation<T> {
        T run() throws IOException;
    }

    private <T> T run(Operation<T> operation) {
        boolean isIt = left == 0;
        left -= 1;
        if (isIt && when == When.BEFORE) {
            throw fail();
        }
        T result;
        try {
            result = operation.run();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        if (isIt) {
            throw fail();
        }
        return result;
    }

    private UncheckedIOException fail() {
        hasFailed = true;
        return new UncheckedIOException(new IOException("planted"));
    }

    @Override
    public boolean exists(Path path) {
        return run(() -> files.exists(path));
    }

    @Override
    public void makeDirectories(Path path) {
        run(() -> {
            files.makeDirectories(path);
            return null;
        });
    }

    @Override
    public List<FileStatus> list(Path directory) {
        return run(() -> files.list(directory));
    }

    @Override
    public FSDataInputStream open(Path path) {
        return run(() -> files.open(path));
    }

    @Override
    public Output create(Path path) {
        Output out = run(() -> files.create(path));
        return new Output() {
            @Override
            public void write(int one) throws IOException {
                out.write(one);
            }

            @Override
            public void write(byte[] many, int offset, int length) throws IOException {
                out.write(many, offset, length);
            }

            @Override
            public void close() {
                run(() -> {
                    out.close();
                    return null;
                });
            }

            @Override
            void cancel() {
                out.cancel();
            }
        };
    }

    @Override
    public void delete(Path path) {
        run(() -> {
            files.delete(path);
            return null;
        });
    }

    @Override
    public StateStoreChangelogWriter changelogWriter(Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage) {
        return run(() -> files.changelogWriter(path, hasFamilies, lineage));
    }

    @Override
    public StateStoreChangelogReader changelogReader(Path path) {
        return run(() -> files.changelogReader(path));
    }

    @Override
    public void close() {
        files.close();
    }
}
