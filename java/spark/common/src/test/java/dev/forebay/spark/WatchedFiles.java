package dev.forebay.spark;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongSupplier;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import scala.Enumeration;
import scala.Tuple3;

/**
 * Files of which every operation is told before and after: also those in the middle of what is read and written. Where
 * there is a clock, it says when files were written.
 */
final class WatchedFiles implements RemoteFiles {
    /** What is told. */
    interface Watch {
        void before(String what);

        void after(String what);
    }

    /** The record of a changelog that is told. */
    private static final int RECORD = 3;

    private final RemoteFiles files;
    private final Watch watch;
    private final LongSupplier clock;
    private final Map<Path, Long> times;

    WatchedFiles(RemoteFiles files, Watch watch) {
        this(files, watch, null, new HashMap<>());
    }

    WatchedFiles(RemoteFiles files, Watch watch, LongSupplier clock, Map<Path, Long> times) {
        this.files = files;
        this.watch = watch;
        this.clock = clock;
        this.times = times;
    }

    private interface Operation<T> {
        T run() throws IOException;
    }

    private <T> T run(String act, Path path, Operation<T> operation) {
        // Names that are drawn at random, or tell contents, are told by what they are.
        String name = path.getName();
        String what = act + " " + (name.contains(".") ? name.substring(name.lastIndexOf('.')) : "file");
        watch.before(what);
        T result;
        try {
            result = operation.run();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        watch.after(what);
        return result;
    }

    private void act(String act, Path path, Runnable operation) {
        run(act, path, () -> {
            operation.run();
            return null;
        });
    }

    private FileStatus timed(FileStatus status) {
        Long time = times.get(status.getPath());
        return time == null
                ? status
                : new FileStatus(status.getLen(), status.isDirectory(), 1, status.getBlockSize(), time, status.getPath());
    }

    @Override
    public boolean exists(Path path) {
        return run("exists", path, () -> files.exists(path));
    }

    @Override
    public void makeDirectories(Path path) {
        act("make", path, () -> files.makeDirectories(path));
    }

    @Override
    public List<FileStatus> list(Path directory) {
        return run("list", directory, () -> files.list(directory).stream().map(this::timed).toList());
    }

    @Override
    public Optional<FileStatus> status(Path path) {
        return run("status", path, () -> files.status(path).map(this::timed));
    }

    @Override
    public InputStream open(Path path) {
        InputStream in = run("open", path, () -> files.open(path));
        return new FilterInputStream(in) {
            @Override
            public int read() {
                return run("read", path, in::read);
            }

            @Override
            public int read(byte[] bytes, int offset, int length) {
                return run("read", path, () -> in.read(bytes, offset, length));
            }
        };
    }

    @Override
    public Output create(Path path) {
        Output out = run("create", path, () -> files.create(path));
        return new Output() {
            @Override
            public void write(int one) throws IOException {
                out.write(one);
            }

            @Override
            public void write(byte[] many, int offset, int length) {
                run("write", path, () -> {
                    out.write(many, offset, length);
                    return null;
                });
            }

            @Override
            public void close() {
                run("close", path, () -> {
                    out.close();
                    if (clock != null) {
                        times.put(path, clock.getAsLong());
                    }
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
        act("delete", path, () -> files.delete(path));
    }

    @Override
    public ChangelogWriter changelogWriter(Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage) {
        ChangelogWriter writer = run("create", path, () -> files.changelogWriter(path, hasFamilies, lineage));
        return new ChangelogWriter() {
            private int records;

            private void counted(Runnable operation) {
                records += 1;
                if (records == RECORD) {
                    act("record", path, operation);
                } else {
                    operation.run();
                }
            }

            @Override
            public void put(byte[] key, byte[] value) {
                counted(() -> writer.put(key, value));
            }

            @Override
            public void delete(byte[] key) {
                counted(() -> writer.delete(key));
            }

            @Override
            public void merge(byte[] key, byte[] operand) {
                counted(() -> writer.merge(key, operand));
            }

            @Override
            public void commit() {
                act("commit", path, writer::commit);
            }

            @Override
            public void abort() {
                writer.abort();
            }
        };
    }

    @Override
    public ChangelogReader changelogReader(Path path) {
        ChangelogReader reader = run("open", path, () -> files.changelogReader(path));
        return new ChangelogReader() {
            private int records;

            @Override
            public boolean hasNext() {
                return reader.hasNext();
            }

            @Override
            public Tuple3<Enumeration.Value, byte[], byte[]> next() {
                records += 1;
                return records == RECORD ? run("record", path, reader::next) : reader.next();
            }

            @Override
            public List<LineageItem> lineage() {
                return run("lineage", path, reader::lineage);
            }

            @Override
            public void close() {
                reader.close();
            }
        };
    }

    @Override
    public void close() {
        files.close();
    }
}
