package dev.forebay.spark;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.sql.execution.streaming.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReaderFactory;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV1;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV2;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV3;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriterV4;

/** Files by Spark's manager of checkpoint files. */
final class SparkFiles implements RemoteFiles {
    private final CheckpointFileManager files;
    private final CompressionCodec codec;

    SparkFiles(CheckpointFileManager files, String codec) {
        this.files = files;
        SparkEnv env = SparkEnv.get();
        SparkConf conf = env == null ? new SparkConf() : env.conf();
        this.codec = CompressionCodec$.MODULE$.createCodec(conf, codec);
    }

    static SparkFiles of(Path root, String codec, Configuration configuration) {
        return new SparkFiles(CheckpointFileManager.create(root, configuration), codec);
    }

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
        CancellableFSDataOutputStream stream = files.createAtomic(path, true);
        return new Output() {
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
                stream.cancel();
            }
        };
    }

    @Override
    public void delete(Path path) {
        files.delete(path);
    }

    @Override
    public StateStoreChangelogWriter changelogWriter(Path path, boolean hasFamilies, Optional<List<LineageItem>> lineage) {
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
        // It holds nothing.
    }
}
