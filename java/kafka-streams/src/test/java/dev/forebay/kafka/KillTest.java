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
            long input = killed(guarantee, random.nextBoolean() ? 1 : 500, 1 + random.nextInt(150));
            assertTrue(input >= reached, input + " after " + reached);
            reached = input;
        }
        assertTrue(killed(guarantee, 1, 0) > reached, "nothing was counted");
    }

    /** Kills it once it has told that many commits; none is a run that only looks. Returns where the input went on. */
    private long killed(String guarantee, int commitRecords, int commits) throws IOException, InterruptedException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process process = new ProcessBuilder(
                        java, "-Xmx128m", "-cp", System.getProperty("java.class.path"), KilledHost.class.getName(), dir.toString(),
                        guarantee, Integer.toString(commitRecords), Integer.toString(commits))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader lines = process.inputReader()) {
            String first = lines.readLine();
            assertTrue(first != null && first.startsWith("from "), "the host says: " + first);
            for (int line = 0; line < commits; line++) {
                assertEquals(".", lines.readLine());
            }
            process.toHandle().destroyForcibly();
            int code = process.waitFor();
            assertTrue(commits == 0 ? code == 0 || code == 137 : code == 137, "it ended with " + code);
            return Long.parseLong(first.substring("from ".length()));
        }
    }
}
