package dev.forebay.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;
import org.apache.kafka.streams.StreamsConfig;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A host that is killed between and during commits: {@link KilledHost} says what must be there afterwards. */
class KillTest {
    private static final int ROUNDS = Integer.getInteger("forebay.kills", 2);

    @TempDir
    Path dir;

    @ParameterizedTest
    @ValueSource(strings = {StreamsConfig.EXACTLY_ONCE_V2, StreamsConfig.AT_LEAST_ONCE})
    void everyRecordCountsOnce(String guarantee) throws IOException, InterruptedException {
        Random random = new Random(guarantee.hashCode());
        long reached = 0;
        for (int round = 0; round < ROUNDS; round++) {
            // Sometimes each commit is durable, sometimes one of many is.
            int commitRecords = random.nextBoolean() ? 1 : 500;
            long input = host(guarantee, commitRecords, 1 + random.nextInt(100), true);
            assertTrue(input >= reached, input + " after " + reached);
            reached = input;
            if (round % 3 == 2) {
                host(guarantee, commitRecords, random.nextInt(20), false);
            }
        }
        assertTrue(host(guarantee, 1, 0, false) > reached, "nothing was counted");
    }

    /** Lets it run, and kills it after so many transactions, or lets it close its stores. Returns where the input went on. */
    private long host(String guarantee, int commitRecords, int transactions, boolean isKilled) throws IOException, InterruptedException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process process = new ProcessBuilder(
                        java, "-Xmx128m", "-cp", System.getProperty("java.class.path"), KilledHost.class.getName(), dir.toString(),
                        guarantee, Integer.toString(commitRecords), Integer.toString(isKilled ? Integer.MAX_VALUE : transactions))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader lines = process.inputReader()) {
            String first = lines.readLine();
            assertTrue(first != null && first.startsWith("from "), "the host says: " + first);
            // Of the restore, and of each transaction.
            for (int line = 0; line <= transactions; line++) {
                assertEquals(".", lines.readLine());
            }
            if (isKilled) {
                process.toHandle().destroyForcibly();
            }
            assertEquals(isKilled ? 137 : 0, process.waitFor());
            return Long.parseLong(first.substring("from ".length()));
        }
    }
}
