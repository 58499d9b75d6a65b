package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A fault at every file operation of a history, each in a run of its own: a batch that failed is done again, as Spark does. */
class FaultTest {
    private static final int BATCHES = 2;

    @TempDir
    Path directory;

    @ParameterizedTest
    @CsvSource({"true, true, BEFORE", "false, false, AFTER"})
    void aFaultAnywhereLosesNoBatch(boolean hasFamilies, boolean hasIds, FaultyFiles.When when) throws Exception {
        int operation = 0;
        while (run(operation, new Executor.Options(hasFamilies, hasIds, 1, 1, 0), when)) {
            operation += 1;
        }
        assertTrue(operation > 10, "only " + operation + " operations were done");
    }

    /** Returns whether the fault was met. */
    private boolean run(int operation, Executor.Options options, FaultyFiles.When when) throws Exception {
        Path checkpoints = Files.createDirectory(directory.resolve("run-" + operation));
        FaultyFiles[] faulty = new FaultyFiles[1];
        UnaryOperator<RemoteFiles> around = files -> faulty[0] = new FaultyFiles(files, operation, when);
        Map<Naming.Version, Map<String, String>> models = new HashMap<>();
        Naming.Version at = new Naming.Version(0, Optional.empty());
        models.put(at, new TreeMap<>());
        try (Executor executor = new Executor(checkpoints, options, around)) {
            for (int batch = 1; batch <= BATCHES; batch++) {
                Naming.Version from = at;
                Map<String, String> model = new TreeMap<>(models.get(from));
                int number = batch;
                at = tried(() -> batch(executor, from, model, number, options.hasFamilies()), faulty[0]);
                models.put(at, model);
                maintained(executor, faulty[0]);
            }
            // Not what is here, but what others find.
            try (Executor fresh = new Executor(checkpoints, options, UnaryOperator.identity())) {
                fresh.load(at);
                assertEquals(models.get(at), fresh.contents(), "with a fault " + when + " operation " + operation);
            }
        }
        return faulty[0].hasFailed;
    }

    private interface Attempt {
        Naming.Version run() throws Exception;
    }

    private static Naming.Version tried(Attempt attempt, FaultyFiles faulty) throws Exception {
        boolean hadFailed = faulty.hasFailed;
        try {
            return attempt.run();
        } catch (Throwable error) {
            if (hadFailed || !faulty.hasFailed) {
                throw error;
            }
            return attempt.run();
        }
    }

    private static void maintained(Executor executor, FaultyFiles faulty) throws Exception {
        boolean hadFailed = faulty.hasFailed;
        try {
            executor.state.maintain();
        } catch (java.io.UncheckedIOException error) {
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
            String older = batch == 1 ? "" : "batch-1";
            StringBuilder list = new StringBuilder(older);
            for (int number = 2; number <= batch; number++) {
                list.append(",batch-").append(number);
            }
            model.put(Executor.LISTS + "/list", batch == 1 ? "batch-1" : list.toString());
        }
        for (int key = 0; key < 20; key++) {
            executor.put("default", "key-" + key % (batch + 9), "value-" + batch);
            model.put("default/key-" + key % (batch + 9), "value-" + batch);
        }
        return executor.commit();
    }
}
