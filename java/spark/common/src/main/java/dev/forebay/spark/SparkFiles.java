package dev.forebay.spark;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
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
            public FSDataInputStream open(Path path) {
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
            public StateStoreChangelogWriter changelogWriter(
                    Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage) {
                if (lineage.isEmpty()) {
                    return hasFamilies
                            ? new StateStoreChangelogWriterV2(files, path, codec)
                            : new StateStoreChangelogWriterV1(files, path, codec);
                }
                LineageItem[] items = lineage.get().toArray(new LineageItem[0]);
                return hasFamilies
                        ? new StateStoreChangelogWriterV4(files, path, codec, items)
                        : new StateStoreChangelogWriterV3(files, path, codec, items);
            }

            @Override
            public StateStoreChangelogReader changelogReader(Path path) {
                return new StateStoreChangelogReaderFactory(files, path, codec).constructChangelogReader();
            }

            @Override
            public void close() {
                Minor.close(files);
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
