package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/** A place for checkpoints, executors that use it, and what tests do to both. */
abstract class Checkpoints {
    static final Executor.Options PLAIN = new Executor.Options(false, false, 2, 100, 0);
    static final Executor.Options NAMED = new Executor.Options(false, true, 2, 100, 0);

    @TempDir
    Path checkpoints;

    private final List<Executor> executors = new ArrayList<>();

    @AfterEach
    void close() {
        executors.forEach(Executor::close);
    }

    Executor executor(Executor.Options options) throws Exception {
        return watched(options, what -> { });
    }

    Executor watched(Executor.Options options, Consumer<String> before) throws Exception {
        WatchedFiles.Watch watch = new WatchedFiles.Watch() {
            @Override
            public void before(String what) {
                before.accept(what);
            }

            @Override
            public void after(String what) {
                // Nothing is done then.
            }
        };
        UnaryOperator<RemoteFiles> around = files -> new WatchedFiles(files, watch);
        Executor executor = new Executor(checkpoints, options, around);
        executors.add(executor);
        return executor;
    }

    static Naming.Version plain(long number) {
        return new Naming.Version(number, Optional.empty());
    }

    /** Commits versions up to one, each of which puts a key, and uploads what there is. Returns the last one's name. */
    static Naming.Version fill(Executor executor, Naming.Version from, int last) throws Exception {
        Naming.Version at = from;
        while (at.number() < last) {
            at = put(executor, at, "key-" + (at.number() + 1), "value");
            executor.state.maintain();
        }
        return at;
    }

    static Naming.Version put(Executor executor, Naming.Version from, String key, String value) throws Exception {
        executor.load(from);
        executor.put("default", key, value);
        return executor.commit();
    }

    List<Path> files(String name) throws IOException {
        try (Stream<Path> walk = Files.walk(checkpoints)) {
            return walk.filter(Files::isRegularFile).filter(path -> path.getFileName().toString().matches(name)).toList();
        }
    }

    void damage(String name) throws IOException {
        List<Path> files = files(name);
        assertEquals(1, files.size(), name);
        byte[] bytes = Files.readAllBytes(files.get(0));
        bytes[bytes.length / 2] ^= 1;
        Files.write(files.get(0), bytes);
        // The local file system keeps sums of its own beside it.
        Files.deleteIfExists(files.get(0).resolveSibling("." + files.get(0).getFileName() + ".crc"));
    }

    static long passedOver(Executor executor) {
        return executor.state.told(Metrics.make()).numbers().get(Metrics.Name.SNAPSHOTS_PASSED_OVER);
    }
}
