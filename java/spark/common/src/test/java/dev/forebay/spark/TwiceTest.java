package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Two executors in checkpoint format 1, where names do not tell attempts apart. Batches are run by both; the one whose
 * attempt nothing came of goes on with what it has: it uploads and deletes, between file operations of the other one. What
 * Spark was told last is what everybody finds.
 */
class TwiceTest {
    private static final int STEPS = 24;
    private static final int KEPT = 4;
    private static final long GRACE = 1000;

    /** What another attempt at a batch comes to. */
    private enum Results {
        SAME,
        /** Then none is committed after that which Spark was told of: format 1 promises nothing there. */
        OTHER
    }

    @TempDir
    Path directory;

    @ParameterizedTest
    @CsvSource({"false, SAME", "true, SAME", "false, OTHER", "true, OTHER"})
    void whatSparkWasToldOfIsFound(boolean hasFamilies, Results results) {
        Rounds.run(TwiceTest.class, seed -> {
            World world = new World(seed, hasFamilies, results, Files.createDirectory(directory.resolve("seed-" + seed)));
            world.run();
        });
    }

    private static final class World {
        private final long seed;
        private final boolean hasFamilies;
        private final Results results;
        private final Path checkpoints;
        private final Random random;
        private final Executor.Options options;
        private final Executor[] executors = new Executor[2];
        /** Whether it has written a batch, and has not committed it. */
        private final boolean[] isWaiting = new boolean[2];
        private final Map<org.apache.hadoop.fs.Path, Long> times = new HashMap<>();
        /** What each version has, by its number. */
        private final List<Map<String, String>> models = new ArrayList<>(List.of(new TreeMap<>()));
        private final Map<String, Integer> met = new HashMap<>();
        private long now;
        private int step;
        private int attempts;
        private boolean isBetween = true;

        World(long seed, boolean hasFamilies, Results results, Path checkpoints) throws Exception {
            this.seed = seed;
            this.hasFamilies = hasFamilies;
            this.results = results;
            this.checkpoints = checkpoints;
            this.random = new Random(seed);
            this.options = new Executor.Options(hasFamilies, false, 2, KEPT, GRACE, () -> now);
            executors[0] = executor(0);
            executors[1] = executor(1);
        }

        private Executor executor(int which) throws Exception {
            WatchedFiles.Watch watch = new WatchedFiles.Watch() {
                @Override
                public void before(String what) {
                    between(1 - which, what);
                }

                @Override
                public void after(String what) {
                    // The next one's before is the same moment.
                }
            };
            return new Executor(checkpoints, options, files -> new WatchedFiles(files, watch, () -> now, times));
        }

        private int newest() {
            return models.size() - 1;
        }

        void run() throws Exception {
            for (step = 0; step < STEPS; step++) {
                met.clear();
                isBetween = false;
                act(random.nextInt(2), random.nextInt(10));
                isBetween = true;
                if (random.nextInt(3) == 0) {
                    check(Math.max(0, newest() - random.nextInt(KEPT)));
                }
            }
            for (int version = newest(); version >= Math.max(0, newest() - KEPT + 1); version--) {
                check(version);
            }
            for (Executor executor : executors) {
                executor.close();
            }
        }

        private void act(int which, int what) throws Exception {
            switch (what) {
                case 0, 1, 2 -> batch(which);
                case 3, 4, 5, 6 -> {
                    attempt(which);
                    if (random.nextBoolean()) {
                        executors[which].commit();
                        isWaiting[which] = false;
                    }
                    batch(1 - which);
                }
                case 7 -> executors[which].state.maintain();
                case 8 -> now += GRACE * random.nextInt(3) / 2;
                default -> {
                    executors[which].close();
                    executors[which] = executor(which);
                    isWaiting[which] = false;
                }
            }
        }

        /** What the other executor does meanwhile; drawn by what is about to happen, as threads of its own work behind it. */
        private void between(int which, String what) {
            int count = met.merge(what, 1, Integer::sum);
            Random drawn = new Random(Objects.hash(seed, step, what, count) * 0x9E3779B97F4A7C15L);
            if (isBetween || count > 3 || drawn.nextInt(6) > 0) {
                return;
            }
            isBetween = true;
            try {
                if (isWaiting[which] && results == Results.SAME && drawn.nextBoolean()) {
                    isWaiting[which] = false;
                    executors[which].commit();
                } else if (drawn.nextInt(4) == 0) {
                    now += GRACE / 20;
                } else {
                    executors[which].state.maintain();
                }
            } catch (Exception error) {
                throw new IllegalStateException("between, before: " + what, error);
            } finally {
                isBetween = false;
            }
        }

        private Map<String, String> attempt(int which) throws Exception {
            Executor executor = executors[which];
            isWaiting[which] = false;
            load(executor, newest());
            isWaiting[which] = true;
            Map<String, String> model = new TreeMap<>(models.get(newest()));
            assertEquals(model, executor.contents(), "version " + newest() + " in step " + step);
            attempts += 1;
            String name = newest() + (results == Results.SAME ? "" : "/" + attempts);
            Random drawn = new Random(name.hashCode());
            if (hasFamilies) {
                executor.makeLists();
                executor.merge(Executor.LISTS, "list", name);
                model.merge(Executor.LISTS + "/list", name, (older, newer) -> older + "," + newer);
            }
            for (int write = 0; write < 6; write++) {
                String key = "key-" + drawn.nextInt(30);
                if (drawn.nextInt(4) == 0) {
                    executor.delete("default", key);
                    model.remove("default/" + key);
                } else {
                    executor.put("default", key, name);
                    model.put("default/" + key, name);
                }
            }
            return model;
        }

        /** A batch that Spark is told of. */
        private void batch(int which) throws Exception {
            Map<String, String> model = attempt(which);
            isWaiting[which] = false;
            assertEquals(newest() + 1, executors[which].commit().number());
            models.add(model);
        }

        private void check(int version) throws Exception {
            try (Executor fresh = new Executor(checkpoints, options, UnaryOperator.identity())) {
                load(fresh, version);
                assertEquals(models.get(version), fresh.contents(), "version " + version + " after step " + step);
            }
        }

        private static void load(Executor executor, long version) throws Exception {
            executor.load(new Naming.Version(version, Optional.empty()));
        }
    }
}
