package dev.forebay.spark;

/** How long tests with seeds are: {@code -Dforebay.test.rounds} times what they are without, from {@code -Dforebay.test.seed} on. */
final class Rounds {
    static final int COUNT = Integer.getInteger("forebay.test.rounds", 1);
    private static final long FIRST = Long.getLong("forebay.test.seed", 1);

    private Rounds() {}

    interface Round {
        void run(long seed) throws Exception;
    }

    /** Runs it with each seed. A failure tells how to run it again. */
    static void run(Class<?> test, Round round) {
        for (long seed = FIRST; seed < FIRST + COUNT; seed++) {
            try {
                round.run(seed);
            } catch (Throwable error) {
                throw new AssertionError("seed " + seed + "; again by: make jvm-test JVM='-pl core,spark,spark/spark-4.1 -Dtest="
                        + test.getSimpleName() + " -Dsurefire.failIfNoSpecifiedTests=false -Djvm.arguments=-Dforebay.test.seed="
                        + seed + "'", error);
            }
        }
    }
}
