package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** What is uploaded and deleted, also where something is cut off or comes between. */
class UploadTest extends Checkpoints {
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
        Path unfinished = Files.write(file.resolveSibling(".1.tmp"), new byte[10]);
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
        assertTrue(Files.exists(unfinished), "it may be written for longer than the grace");
        now[0] += 24 * 3_600_000;
        cleaner.state.maintain();
        assertTrue(Files.notExists(unfinished));
    }

    private static long forced(Executor executor) {
        return executor.state.told(Metrics.make()).numbers().get(Metrics.Name.FORCED_SNAPSHOTS);
    }

    @Test
    void aSnapshotThatWaitsIsNotUploadedBehindANewerOne() throws Exception {
        Executor executor = executor(new Executor.Options(true, false, 2, 100, 0));
        Naming.Version at = fill(executor, plain(0), 1);
        at = put(executor, at, "key-2", "value");
        executor.load(at);
        assertEquals(0, forced(executor));
        executor.makeLists();
        executor.commit();
        assertEquals(1, forced(executor));
        executor.state.maintain();
        assertEquals(List.of(), files("2_.*\\.forebay"));
        assertEquals(1, files("3_.*\\.forebay").size());
    }

    @Test
    void aSnapshotThatNothingCameOfIsNotTheOnlyOneThatIsKept() throws Exception {
        boolean[] isCut = {false};
        Executor executor = watched(new Executor.Options(true, false, 2, 1, 0), what -> {
            if (isCut[0] && what.equals("commit .changelog")) {
                throw new UncheckedIOException(new IOException("cut off"));
            }
        });
        Naming.Version at = fill(executor, plain(0), 4);
        executor.load(at);
        executor.makeLists();
        isCut[0] = true;
        assertThrows(UncheckedIOException.class, executor::commit);
        assertEquals(1, files("5_.*\\.forebay").size());
        executor.state.maintain();
        Executor fresh = executor(new Executor.Options(true, false, 2, 1, 0));
        fresh.load(at);
        assertEquals(4, fresh.contents().size());
    }

    @Test
    void anUploadThatFailedIsTriedAgain() throws Exception {
        int[] faults = {1};
        Executor executor = watched(PLAIN, what -> {
            if (what.equals("create .forebay") && faults[0]-- > 0) {
                throw new UncheckedIOException(new IOException("busy"));
            }
        });
        put(executor, put(executor, plain(0), "key-1", "value"), "key-2", "value");
        assertThrows(UncheckedIOException.class, executor.state::maintain);
        assertEquals(List.of(), files("2_.*\\.forebay"));
        executor.state.maintain();
        assertEquals(1, files("2_.*\\.forebay").size());
    }

    @Test
    void noManifestIsThereBeforeItsFilesWereLookedAt() throws Exception {
        Executor executor = watched(PLAIN, what -> {
            if (what.equals("list file")) {
                throw new UncheckedIOException(new IOException("the end of the process"));
            }
        });
        put(executor, put(executor, plain(0), "key-1", "value"), "key-2", "value");
        assertThrows(UncheckedIOException.class, executor.state::maintain);
        assertEquals(List.of(), files("2_.*\\.forebay"));
    }

    /** A list may lag behind what is written: the first one has not a file that the next one has. */
    @Test
    void aManifestThatWasNotWrittenIsNotTakenForOneThatIsThere() throws Exception {
        Path aside = checkpoints.resolve("aside");
        Path[] late = {null};
        Executor executor = watched(PLAIN, what -> {
            if (!what.equals("list file")) {
                return;
            }
            try {
                if (late[0] == null) {
                    late[0] = files("[0-9a-f]{64}").get(0);
                    Files.move(late[0], aside);
                } else if (Files.exists(aside)) {
                    Files.move(aside, late[0], StandardCopyOption.REPLACE_EXISTING);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        });
        Naming.Version at = put(executor, put(executor, plain(0), "key-1", "value"), "key-2", "value");
        executor.state.maintain();
        assertTrue(late[0] != null && Files.notExists(aside), "the file has come");
        assertEquals(1, files("2_.*\\.forebay").size());
        Executor fresh = executor(PLAIN);
        fresh.load(at);
        assertEquals(0, passedOver(fresh));
    }

    @Test
    void whatAKilledWriterLeftGoesWithItsVersion() throws Exception {
        String attempt = Attempt.UNKNOWN;
        for (long version : new long[] {2, 3, 5}) {
            for (String rest : List.of(".changelog." + attempt + ".TID7.tmp", "_" + attempt + ".forebay." + attempt + ".tmp")) {
                Path left = Files.write(checkpoints.resolve("." + version + rest), new byte[10]);
                Files.setLastModifiedTime(left, FileTime.fromMillis(1000));
            }
        }
        long[] now = {24 * 3_600_000};
        Executor executor = executor(new Executor.Options(false, false, 1, 2, 0, () -> now[0]));
        fill(executor, plain(0), 4);
        assertEquals(List.of(), files("2\\.changelog"), "version 3 is the oldest that is kept");
        assertEquals(6, files("\\..*\\.tmp").size(), "a writer may be slow");
        now[0] += 1000;
        executor.state.maintain();
        assertEquals(List.of(), files("\\.2.*\\.tmp"));
        assertEquals(4, files("\\.[35].*\\.tmp").size(), "somebody may be writing them yet");
    }

    /** Were it none, the checkpoint would grow for ever where fewer go at a time than stand between two snapshots. */
    @Test
    void atLeastOneSnapshotGoesAtATimeUnlessNothingMay() throws Exception {
        Executor executor = executor(new Executor.Options(false, false, 3, 100, 0));
        fill(executor, plain(0), 12);
        Cleaner cleaner = new Cleaner(executor.plan, new Snapshots(executor.plan.remote(), executor.plan.naming()));
        cleaner.clean(12, 2, 0, 0);
        assertEquals(4, files("\\d+_.*\\.forebay").size());
        for (int left = 3; left >= 2; left--) {
            cleaner.clean(12, 2, 1, 0);
            assertEquals(left, files("\\d+_.*\\.forebay").size());
            assertEquals(3 * left - 2, files("\\d+\\.changelog").size(), "from the oldest snapshot on");
        }
        cleaner.clean(12, 2, 1, 0);
        assertEquals(2, files("\\d+_.*\\.forebay").size(), "version 11 is made of one of them");
    }

    @Test
    void filesAreListedOnceOneMayBeOld() throws Exception {
        long[] now = {System.currentTimeMillis() + 10_000_000};
        int[] lists = {0};
        fill(executor(PLAIN), plain(0), 2);
        Executor executor = watched(new Executor.Options(false, false, 2, 100, 1000, () -> now[0]), what -> {
            lists[0] += what.equals("list file") ? 1 : 0;
        });
        Files.write(files("[0-9a-f]{64}").get(0).resolveSibling(".1.tmp"), new byte[10]);
        executor.state.maintain();
        now[0] += 2000;
        executor.state.maintain();
        lists[0] = 0;
        for (int round = 0; round < 10; round++) {
            now[0] += 60_000;
            executor.state.maintain();
        }
        assertEquals(10, lists[0], "the folder of versions alone");
    }

    @Test
    void foreignFilesAreNoVersions() {
        for (String name : List.of("x.forebay", "12345678901234567890.forebay", "_a.forebay", "1.zip", ".forebay")) {
            assertEquals(Optional.empty(), Naming.version(new org.apache.hadoop.fs.Path("/" + name), Naming.SNAPSHOT), name);
        }
    }
}
