package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a version is made of where something is damaged, gone, or of another attempt; and what is uploaded and deleted. */
class LoadTest {
    private static final Executor.Options PLAIN = new Executor.Options(false, false, 2, 100, 0);
    private static final Executor.Options NAMED = new Executor.Options(false, true, 2, 100, 0);

    @TempDir
    Path checkpoints;

    private final List<Executor> executors = new ArrayList<>();

    @AfterEach
    void close() {
        executors.forEach(Executor::close);
    }

    private Executor executor(Executor.Options options) throws Exception {
        return watched(options, what -> { });
    }

    private Executor watched(Executor.Options options, Consumer<String> before) throws Exception {
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

    private static Naming.Version plain(long number) {
        return new Naming.Version(number, Optional.empty());
    }

    /** Commits versions up to one, each of which puts a key, and uploads what there is. Returns the last one's name. */
    private static Naming.Version fill(Executor executor, Naming.Version from, int last) throws Exception {
        Naming.Version at = from;
        while (at.number() < last) {
            at = put(executor, at, "key-" + (at.number() + 1), "value");
            executor.state.maintain();
        }
        return at;
    }

    private static Naming.Version put(Executor executor, Naming.Version from, String key, String value) throws Exception {
        executor.load(from);
        executor.put("default", key, value);
        return executor.commit();
    }

    private List<Path> files(String name) throws IOException {
        try (Stream<Path> walk = Files.walk(checkpoints)) {
            return walk.filter(Files::isRegularFile).filter(path -> path.getFileName().toString().matches(name)).toList();
        }
    }

    private void damage(String name) throws IOException {
        List<Path> files = files(name);
        assertEquals(1, files.size(), name);
        byte[] bytes = Files.readAllBytes(files.get(0));
        bytes[bytes.length / 2] ^= 1;
        Files.write(files.get(0), bytes);
        // The local file system keeps sums of its own beside it.
        Files.deleteIfExists(files.get(0).resolveSibling("." + files.get(0).getFileName() + ".crc"));
    }

    private static long passedOver(Executor executor) {
        return executor.state.told(Metrics.make()).numbers().get(Metrics.Name.SNAPSHOTS_PASSED_OVER);
    }

    @Test
    void aDamagedSnapshotIsPassedOverAndCounted() throws Exception {
        fill(executor(PLAIN), plain(0), 4);
        damage("4_.*\\.forebay");
        Executor fresh = executor(PLAIN);
        fresh.load(plain(4));
        assertEquals(4, fresh.contents().size());
        assertEquals(1, passedOver(fresh));
        try (Stream<Path> local = Files.list(fresh.local)) {
            assertEquals(1, local.filter(path -> path.getFileName().toString().startsWith("database")).count(),
                    "what was fetched for the damaged one is gone");
        }
        fresh.load(plain(4));
        assertEquals(0, passedOver(fresh), "it was told");
    }

    @Test
    void anErrorThatMayPassIsTold() throws Exception {
        fill(executor(PLAIN), plain(0), 4);
        boolean[] isBusy = {true};
        Executor fresh = watched(PLAIN, what -> {
            if (isBusy[0] && what.equals("read .forebay")) {
                throw new UncheckedIOException(new IOException("busy"));
            }
        });
        Throwable error = assertThrows(UncheckedIOException.class, () -> fresh.load(plain(4)));
        assertTrue(error.getMessage().contains("busy"), error.getMessage());
        isBusy[0] = false;
        fresh.load(plain(4));
        assertEquals(0, passedOver(fresh));
        assertEquals(4, fresh.contents().size());
    }

    @Test
    void aWholeSnapshotNeedsNoChangelogOfItsVersion() throws Exception {
        Naming.Version last = fill(executor(NAMED), plain(0), 4);
        damage("4_.*\\.changelog");
        Executor fresh = executor(NAMED);
        fresh.load(last);
        assertEquals(4, fresh.contents().size());
        assertEquals(0, passedOver(fresh));
    }

    @Test
    void aSnapshotOfAnotherAttemptIsNotTaken() throws Exception {
        Executor lost = executor(PLAIN);
        fill(lost, plain(0), 3);
        put(lost, plain(3), "key-4", "of one that was lost");
        Executor other = executor(PLAIN);
        put(other, plain(3), "key-4", "of the one that Spark was told of");
        lost.state.maintain();
        for (long version = 4; version <= 5; version++) {
            Executor fresh = executor(PLAIN);
            fresh.load(plain(version));
            assertEquals("of the one that Spark was told of", fresh.get("default", "key-4"), "version " + version);
            assertEquals(0, passedOver(fresh));
            if (version == 4) {
                // It had its own in memory, and goes on with what is there.
                put(lost, plain(4), "key-5", "value");
            }
        }
    }

    @Test
    void whatBeganAnewKnowsNothingOfBefore() throws Exception {
        Executor old = executor(PLAIN);
        fill(old, plain(0), 6);
        Executor anew = executor(PLAIN);
        anew.state.loadNothing(5, Access.WRITE);
        anew.state.database().put(anew.state.database().family("default"), Executor.bytes("new"), Executor.bytes("value"));
        assertEquals(6, anew.commit().number());
        Executor fresh = executor(PLAIN);
        fresh.load(plain(6));
        assertEquals(Map.of("default/new", "value"), fresh.contents());
        put(anew, plain(6), "newer", "value");
        for (Path snapshot : files("6_.*\\.forebay")) {
            Files.delete(snapshot);
        }
        for (long version = 6; version <= 7; version++) {
            Executor last = executor(PLAIN);
            long number = version;
            String error = assertThrows(IllegalStateException.class, () -> last.load(plain(number))).getMessage();
            assertTrue(error.contains("version 6 was made of nothing"), error);
        }
    }

    @Test
    void aVersionThatIsNotThereIsNamed() throws Exception {
        fill(executor(PLAIN), plain(0), 4);
        Throwable error = assertThrows(Exception.class, () -> executor(PLAIN).load(plain(5)));
        assertTrue(error.getMessage().contains("5.changelog"), error.getMessage());
        assertTrue(error.getCause() instanceof FileNotFoundException, error.toString());
    }

    @Test
    void filesThatWereDeletedMeanwhileAreUploadedAgain() throws Exception {
        int[] deletes = {1};
        Executor executor = watched(PLAIN, what -> {
            if (what.equals("create .forebay") && deletes[0] > 0) {
                deletes[0] -= 1;
                try {
                    for (Path file : files("[0-9a-f]{64}")) {
                        Files.delete(file);
                    }
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        });
        Naming.Version at = fill(executor, plain(0), 2);
        assertEquals(0, deletes[0]);
        Executor fresh = executor(PLAIN);
        fresh.load(at);
        assertEquals(0, passedOver(fresh));
        deletes[0] = 100;
        put(executor, at, "key-3", "value");
        put(executor, plain(3), "key-4", "value");
        String error = assertThrows(IOException.class, executor.state::maintain).getMessage();
        assertTrue(error.contains("fileGraceMs"), error);
        assertEquals(List.of(), files("4_.*\\.forebay"), "no snapshot names files that are gone");
    }

    @Test
    void aFileThatIsWrittenAnewMeanwhileStays() throws Exception {
        fill(executor(PLAIN), plain(0), 2);
        Path file = Files.write(files("[0-9a-f]{64}").get(0).resolveSibling("0".repeat(64)), new byte[10]);
        long[] now = {System.currentTimeMillis() + 10_000_000};
        Executor.Options options = new Executor.Options(false, false, 2, 100, 1000, () -> now[0]);
        boolean[] isWritten = {true};
        Executor cleaner = watched(options, what -> {
            if (what.equals("status file") && isWritten[0] && !file.toFile().setLastModified(now[0])) {
                throw new IllegalStateException("the time of a file could not be set");
            }
        });
        cleaner.state.maintain();
        now[0] += 2000;
        cleaner.state.maintain();
        assertTrue(Files.exists(file));
        isWritten[0] = false;
        now[0] += 2000;
        cleaner.state.maintain();
        assertTrue(Files.notExists(file));
    }

    @Test
    void aSnapshotThatWaitsIsNotUploadedBehindANewerOne() throws Exception {
        Executor executor = executor(new Executor.Options(true, false, 2, 100, 0));
        Naming.Version at = fill(executor, plain(0), 1);
        at = put(executor, at, "key-2", "value");
        executor.load(at);
        executor.makeLists();
        executor.commit();
        executor.state.maintain();
        assertEquals(List.of(), files("2_.*\\.forebay"));
        assertEquals(1, files("3_.*\\.forebay").size());
    }

    @Test
    void foreignFilesAreNoVersions() {
        for (String name : List.of("x.forebay", "12345678901234567890.forebay", "_a.forebay", "1.zip", ".forebay")) {
            assertEquals(Optional.empty(), Naming.version(new org.apache.hadoop.fs.Path("/" + name), Naming.SNAPSHOT), name);
        }
    }
}
