package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Random histories on several executors against maps: each version that was committed is what it was, wherever it is loaded. */
class HistoryTest {
    private static final Naming.Version NOTHING = new Naming.Version(0, Optional.empty());

    private static final int KEPT = 6;

    @TempDir
    Path directory;

    private Path checkpoints;

    private final Map<Naming.Version, Map<String, String>> models = new HashMap<>();
    private final Map<Naming.Version, Naming.Version> before = new HashMap<>();
    private long numberMax;

    @ParameterizedTest
    @CsvSource({
        // families, ids, executors
        "false, false, 1", "true, false, 1", "false, true, 2", "true, true, 3"
    })
    void everyVersionIsWhatWasCommitted(boolean hasFamilies, boolean hasIds, int executorCount) {
        Rounds.run(HistoryTest.class, seed -> {
            models.clear();
            before.clear();
            numberMax = 0;
            checkpoints = Files.createDirectory(directory.resolve("seed-" + seed));
            run(new Random(seed), hasFamilies, hasIds, executorCount);
        });
    }

    private void run(Random random, boolean hasFamilies, boolean hasIds, int executorCount) throws Exception {
        Executor.Options options = new Executor.Options(hasFamilies, hasIds, 3, KEPT, 0);
        List<Executor> executors = new ArrayList<>();
        for (int count = 0; count < executorCount; count++) {
            executors.add(new Executor(checkpoints, options, UnaryOperator.identity()));
        }
        models.put(NOTHING, new TreeMap<>());
        Naming.Version newest = NOTHING;
        for (int step = 0; step < 40; step++) {
            Executor executor = executors.get(random.nextInt(executorCount));
            Naming.Version from = random.nextInt(8) == 0 ? back(newest, random.nextInt(4)) : newest;
            executor.load(from);
            assertEquals(models.get(from), executor.contents(), "version " + from + " in step " + step);
            assertEquals(models.get(from).size(), executor.state.database().counts().keys(), "keys of " + from + " in step " + step);
            Map<String, String> model = new TreeMap<>(models.get(from));
            change(executor, model, random, hasFamilies);
            switch (random.nextInt(10)) {
                case 0 -> executor.state.giveUp();
                case 1 -> {
                    executor.close();
                    executors.set(executors.indexOf(executor), new Executor(checkpoints, options, UnaryOperator.identity()));
                }
                default -> {
                    Naming.Version made = executor.commit();
                    models.put(made, model);
                    before.put(made, from);
                    newest = made;
                    numberMax = Math.max(numberMax, made.number());
                }
            }
            if (random.nextInt(3) == 0) {
                executors.get(random.nextInt(executorCount)).state.maintain();
            }
        }
        checkKept(options, newest);
        executors.forEach(Executor::close);
    }

    /** A version before this one, but not one that may have been deleted. */
    private Naming.Version back(Naming.Version from, int steps) {
        Naming.Version at = from;
        for (int step = 0; step < steps && at.number() > Math.max(0, numberMax - KEPT + 1); step++) {
            at = before.get(at);
        }
        return at;
    }

    private void checkKept(Executor.Options options, Naming.Version newest) throws Exception {
        Naming.Version at = newest;
        while (at.number() > Math.max(0, numberMax - KEPT)) {
            try (Executor fresh = new Executor(checkpoints, options, UnaryOperator.identity())) {
                fresh.load(at);
                assertEquals(models.get(at), fresh.contents(), "version " + at + " on a new executor");
            }
            at = before.get(at);
        }
    }

    private static void change(Executor executor, Map<String, String> model, Random random, boolean hasFamilies) {
        if (hasFamilies) {
            executor.makeLists();
        }
        for (int write = random.nextInt(40); write > 0; write--) {
            String family = hasFamilies && random.nextBoolean() ? Executor.LISTS : "default";
            String key = "key-" + random.nextInt(60);
            String name = family + "/" + key;
            switch (random.nextInt(5)) {
                case 0 -> {
                    executor.delete(family, key);
                    model.remove(name);
                }
                case 1 -> assertEquals(model.get(name), executor.get(family, key), name);
                case 2 -> {
                    if (family.equals(Executor.LISTS)) {
                        String value = "m" + random.nextInt(1000);
                        executor.merge(family, key, value);
                        model.merge(name, value, (older, newer) -> older + "," + newer);
                    }
                }
                default -> {
                    String value = "v" + random.nextInt(1000);
                    executor.put(family, key, value);
                    model.put(name, value);
                }
            }
        }
    }
}
