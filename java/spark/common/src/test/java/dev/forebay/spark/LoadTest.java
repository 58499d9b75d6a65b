package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.forebay.ForebayException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What a version is made of where something is damaged, gone, or of another attempt. */
class LoadTest extends Checkpoints {
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

    /** A changelog tells what is behind it as far as to its snapshot: what was before stands in that one's own changelog. */
    @Test
    void withIdsADamagedSnapshotIsPassedOverToo() throws Exception {
        Naming.Version last = fill(executor(NAMED), plain(0), 7);
        for (int damaged = 1; damaged <= 2; damaged++) {
            damage((8 - 2 * damaged) + "_.*\\.forebay");
            Executor fresh = executor(NAMED);
            fresh.load(last);
            assertEquals(7, fresh.contents().size());
            assertEquals(damaged, passedOver(fresh));
            put(fresh, last, "key-1", "new");
        }
        Files.delete(files("4_.*\\.changelog").get(0));
        Throwable error = assertThrows(Throwable.class, () -> executor(NAMED).load(last));
        assertTrue(error.getMessage().contains("6_"), error.getMessage());
    }

    /** Readers of changes have loaded a version, and given it up again. */
    @Test
    void familiesAreKnownByTheirNumbersAfterATaskGaveUp() throws Exception {
        Executor.Options options = new Executor.Options(true, true, 2, 100, 0);
        Executor executor = executor(options);
        executor.load(plain(0));
        executor.makeLists();
        Naming.Version made = executor.commit();
        short number = executor.state.familyNumber(Executor.LISTS);
        Executor reader = executor(options);
        reader.load(made);
        reader.makeLists();
        reader.state.giveUp();
        reader.state.endTask();
        assertEquals(number, reader.state.familyNumber(Executor.LISTS));
    }

    /** A content is known by its name only while the newest snapshot has it: an executor would remember ever more. */
    @Test
    void filesThatOnlyOlderSnapshotsHaveAreForgotten() {
        Incarnation life = new Incarnation();
        life.rebase(plain(1), manifest("a", "b"));
        life.rebase(plain(2), manifest("b", "c"));
        assertTrue(life.known("a").isEmpty() && life.known("b").isPresent() && life.known("c").isPresent());
    }

    private static Manifest manifest(String... names) {
        List<Manifest.Shared> shared = Stream.of(names).map(name -> new Manifest.Shared(name, 1, 1L, name)).toList();
        return new Manifest(0, 0, 0, List.of(), "", shared, List.of());
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
    void aWholeSnapshotIsTakenWhereNoChangelogTellsItsAttempt() throws Exception {
        fill(executor(PLAIN), plain(0), 4);
        Files.delete(files("4\\.changelog").get(0));
        for (boolean isBusy : new boolean[] {false, true}) {
            Executor fresh = watched(PLAIN, what -> {
                if (isBusy && (what.equals("open .changelog") || what.equals("read .changelog"))) {
                    throw new UncheckedIOException(new IOException("busy"));
                }
            });
            if (isBusy) {
                assertThrows(UncheckedIOException.class, () -> fresh.load(plain(4)), "what may pass is told");
            } else {
                fresh.load(plain(4));
                assertEquals(4, fresh.contents().size());
            }
        }
        damage("3\\.changelog");
        executor(PLAIN).load(plain(4));
        // Of two nobody knows which one it is.
        Path snapshot = files("4_.*\\.forebay").get(0);
        Files.copy(snapshot, snapshot.resolveSibling("4_" + Attempt.UNKNOWN + ".forebay"));
        Throwable error = assertThrows(Exception.class, () -> executor(PLAIN).load(plain(4)));
        assertTrue(error.getMessage().contains("4.changelog"), error.getMessage());
    }

    @Test
    void aLocalFileThatIsDamagedIsFetchedAnew() throws Exception {
        Executor executor = executor(PLAIN);
        Naming.Version at = fill(executor, plain(0), 4);
        executor.load(at);
        try (Stream<Path> walk = Files.walk(executor.local)) {
            for (Path file : walk.filter(Files::isRegularFile).toList()) {
                Files.write(file, new byte[(int) Files.size(file)]);
            }
        }
        // Wherever it is met, Spark's next attempt begins with what is here, and the one behind that does not.
        executor.state.giveUp();
        executor.state.endTask();
        assertThrows(ForebayException.Corruption.class, () -> {
            executor.load(at);
            executor.contents();
        });
        executor.state.giveUp();
        executor.state.endTask();
        executor.load(at);
        assertEquals(4, executor.contents().size());
        assertEquals(0, passedOver(executor), "the checkpoint is whole");
    }

    @Test
    void eachTaskLooksWhetherWhatIsLoadedIsStillThere() throws Exception {
        Executor executor = executor(PLAIN);
        Naming.Version at = fill(executor, plain(0), 3);
        executor.state.load(at.number(), Optional.empty(), Access.READ);
        executor.state.endTask();
        put(executor(PLAIN), plain(2), "key-3", "of a task that came late");
        executor.load(at);
        assertEquals("of a task that came late", executor.get("default", "key-3"));
    }
}
