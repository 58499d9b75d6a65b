package dev.forebay.spark;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReaderFactory;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV1;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV2;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV3;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV4;
import scala.Enumeration;
import scala.Tuple3;

/** Files by Spark's manager of checkpoint files. Its type is nowhere named, as its package is not that of Spark 4.0. */
final class SparkFiles {
    private SparkFiles() {}

    static SparkConf conf() {
        SparkEnv env = SparkEnv.get();
        return env == null ? new SparkConf() : env.conf();
    }

    static RemoteFiles of(Path root, String codecName, Configuration configuration) {
        var files = Minor.checkpointFiles(root, configuration);
        CompressionCodec codec = CompressionCodec$.MODULE$.createCodec(conf(), codecName);
        return new RemoteFiles() {
            @Override
            public boolean exists(Path path) {
                return files.exists(path);
            }

            @Override
            public void makeDirectories(Path path) {
                files.mkdirs(path);
            }

            @Override
            public List<FileStatus> list(Path directory) {
                return List.of(files.list(directory));
            }

            @Override
            public Optional<FileStatus> status(Path path) {
                // The manager has no call for it; the list of a file is the file.
                return files.exists(path) ? Arrays.stream(files.list(path)).findFirst() : Optional.empty();
            }

            @Override
            public InputStream open(Path path) {
                return files.open(path);
            }

            @Override
            public Output create(Path path) {
                var stream = files.createAtomic(path, true);
                return output(stream, stream::cancel);
            }

            @Override
            public void delete(Path path) {
                files.delete(path);
            }

            @Override
            public ChangelogWriter changelogWriter(Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage) {
                if (lineage.isEmpty()) {
                    return writer(hasFamilies
                            ? new StateStoreChangelogWriterV2(files, path, codec)
                            : new StateStoreChangelogWriterV1(files, path, codec));
                }
                LineageItem[] items = lineage.get().toArray(new LineageItem[0]);
                return writer(hasFamilies
                        ? new StateStoreChangelogWriterV4(files, path, codec, items)
                        : new StateStoreChangelogWriterV3(files, path, codec, items));
            }

            @Override
            public ChangelogReader changelogReader(Path path) {
                return reader(new StateStoreChangelogReaderFactory(files, path, codec).constructChangelogReader());
            }

            @Override
            public void close() {
                Minor.close(files);
            }
        };
    }

    private static RemoteFiles.ChangelogWriter writer(StateStoreChangelogWriter writer) {
        return new RemoteFiles.ChangelogWriter() {
            @Override
            public void put(byte[] key, byte[] value) {
                writer.put(key, value);
            }

            @Override
            public void delete(byte[] key) {
                writer.delete(key);
            }

            @Override
            public void merge(byte[] key, byte[] operand) {
                writer.merge(key, operand);
            }

            @Override
            public void commit() {
                writer.commit();
            }

            @Override
            public void abort() {
                writer.abort();
            }
        };
    }

    private static RemoteFiles.ChangelogReader reader(StateStoreChangelogReader reader) {
        return new RemoteFiles.ChangelogReader() {
            @Override
            public boolean hasNext() {
                return reader.hasNext();
            }

            @Override
            public Tuple3<Enumeration.Value, byte[], byte[]> next() {
                return reader.next();
            }

            @Override
            public List<LineageItem> lineage() {
                return List.of(reader.lineage());
            }

            @Override
            public void close() {
                reader.closeIfNeeded();
            }
        };
    }

    private static RemoteFiles.Output output(FSDataOutputStream stream, Runnable cancel) {
        return new RemoteFiles.Output() {
            @Override
            public void write(int one) throws IOException {
                stream.write(one);
            }

            @Override
            public void write(byte[] many, int offset, int length) throws IOException {
                stream.write(many, offset, length);
            }

            @Override
            public void flush() throws IOException {
                stream.flush();
            }

            @Override
            public void close() throws IOException {
                stream.close();
            }

            @Override
            void cancel() {
                cancel.run();
            }
        };
    }
}
