package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A fault at file operations of a history, each in a run of its own: also where a changelog is committed, and in the middle
 * of what is read and written. A batch that failed is done again, as Spark does. Without more rounds some operations are
 * taken, spread evenly.
 */
class FaultTest {
    private static final int BATCHES = 4;
    private static final int FAULTS_A_ROUND = 4;

    @TempDir
    Path directory;

    /** When the operation fails. */
    private enum When {
        BEFORE,
        AFTER
    }

    private static final class Fault implements WatchedFiles.Watch {
        private final long failing;
        private final When when;
        private long done;
        private boolean hasFailed;

        Fault(long failing, When when) {
            this.failing = failing;
            this.when = when;
        }

        @Override
        public void before(String what) {
            meet(When.BEFORE);
        }

        @Override
        public void after(String what) {
            meet(When.AFTER);
            done += 1;
        }

        private void meet(When now) {
            if (done == failing && now == when && !hasFailed) {
                hasFailed = true;
                throw new UncheckedIOException(new IOException("planted"));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "true, true, BEFORE", "true, true, AFTER", "true, false, BEFORE", "true, false, AFTER", "false, true, BEFORE",
        "false, true, AFTER", "false, false, BEFORE", "false, false, AFTER"
    })
    void aFaultAnywhereLosesNoBatch(boolean hasFamilies, boolean hasIds, When when) throws Exception {
        Executor.Options options = new Executor.Options(hasFamilies, hasIds, 1, 1, 0);
        Fault none = run(Long.MAX_VALUE, options, when);
        assertFalse(none.hasFailed);
        assertTrue(none.done > 50, "only " + none.done + " operations were done");
        long faults = Math.min(none.done, (long) FAULTS_A_ROUND * Rounds.COUNT);
        for (long fault = 0; fault < faults; fault++) {
            long operation = none.done * fault / faults;
            assertTrue(run(operation, options, when).hasFailed, "operation " + operation + " was not met");
        }
    }

    private Fault run(long operation, Executor.Options options, When when) throws Exception {
        Path checkpoints = Files.createDirectory(directory.resolve("run-" + operation));
        Fault fault = new Fault(operation, when);
        Map<Naming.Version, Map<String, String>> models = new HashMap<>();
        Naming.Version at = new Naming.Version(0, Optional.empty());
        models.put(at, new TreeMap<>());
        try (Executor executor = new Executor(checkpoints, options, files -> new WatchedFiles(files, fault))) {
            for (int batch = 1; batch <= BATCHES; batch++) {
                Naming.Version from = at;
                Map<String, String> model = new TreeMap<>(models.get(from));
                int number = batch;
                at = tried(() -> batch(executor, from, model, number, options.hasFamilies()), executor, fault);
                models.put(at, model);
                maintained(executor, fault);
            }
            // Not what is here, but what others find.
            try (Executor fresh = new Executor(checkpoints, options, UnaryOperator.identity())) {
                fresh.load(at);
                assertEquals(models.get(at), fresh.contents(), "with a fault " + when + " operation " + operation);
            }
        }
        return fault;
    }

    private interface Attempt {
        Naming.Version run() throws Exception;
    }

    private static Naming.Version tried(Attempt attempt, Executor executor, Fault fault) throws Exception {
        boolean hadFailed = fault.hasFailed;
        try {
            return attempt.run();
        } catch (Throwable error) {
            if (hadFailed || !fault.hasFailed) {
                throw error;
            }
            // The end of a task aborts its store.
            executor.state.giveUp();
            return attempt.run();
        }
    }

    private static void maintained(Executor executor, Fault fault) throws Exception {
        boolean hadFailed = fault.hasFailed;
        try {
            executor.state.maintain();
        } catch (UncheckedIOException error) {
            if (hadFailed) {
                throw error;
            }
        }
    }

    private static Naming.Version batch(
            Executor executor, Naming.Version from, Map<String, String> model, int batch, boolean hasFamilies) throws Exception {
        executor.load(from);
        if (hasFamilies) {
            executor.makeLists();
            executor.merge(Executor.LISTS, "list", "batch-" + batch);
            List<String> list = new ArrayList<>();
            for (int number = 1; number <= batch; number++) {
                list.add("batch-" + number);
            }
            model.put(Executor.LISTS + "/list", String.join(",", list));
        }
        for (int key = 0; key < 20; key++) {
            executor.put("default", "key-" + key % (batch + 9), "value-" + batch);
            model.put("default/key-" + key % (batch + 9), "value-" + batch);
        }
        return executor.commit();
    }
}
