package dev.forebay;

import static dev.forebay.Keys.bytes;
import static dev.forebay.Keys.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A process that is killed: the tables are as the metadata of the last batch that was kept says. */
class KillTest {
    private static final int KEYS = 500;

    @TempDir
    Path dir;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void theTablesAreAsTheMetadataSays(long seed) throws IOException, InterruptedException {
        System.out.println("KillTest, seed " + seed);
        Random random = new Random(seed);
        long reached = 0;
        for (int round = 0; round < 3; round++) {
            long told = killed(200 + random.nextInt(600));
            long kept = check();
            // What was told to be flushed is kept, and nothing that was kept goes.
            assertTrue(kept >= told && kept >= reached, kept + " of " + told + ", and of " + reached);
            reached = kept;
        }
        assertTrue(reached > 0);
    }

    /** Runs until it is killed, and returns up to where it had said that it had flushed. */
    private long killed(long milliseconds) throws IOException, InterruptedException {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        ProcessBuilder builder = new ProcessBuilder(
                java, "-Xmx128m", "-cp", System.getProperty("java.class.path"), KillTest.class.getName(), dir.toString());
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        Process process = builder.start();
        long told = 0;
        try (BufferedReader lines = process.inputReader()) {
            told = Long.parseLong(lines.readLine());
            Thread.sleep(milliseconds);
            // By its handle: what it had written can still be read.
            process.toHandle().destroyForcibly();
            // A line that was cut short has no end.
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.endsWith(".")) {
                    told = Long.parseLong(line.substring(0, line.length() - 1));
                }
            }
        }
        assertEquals(137, process.waitFor());
        return told;
    }

    private static Database open(Path dir) {
        Options options = new Options().set("memory", "4M").set("log", "false");
        return Database.open(dir.resolve("db"), options);
    }

    private static Table sums(Database db) {
        return db.table("sums", TableOptions.layout("wb-tree:ordered").set("merge_rule", "add"));
    }

    /** Each batch adds 1 to each of ten keys of both tables, and says which number it has. */
    public static void main(String[] arguments) {
        Database db = open(Path.of(arguments[0]));
        Table table = db.table("last");
        Table sums = sums(db);
        WriteBatch batch = new WriteBatch();
        byte[] one = {1, 0, 0, 0, 0, 0, 0, 0};
        long number = next(db);
        System.out.println(number);
        for (; ; number++) {
            for (int index = 0; index < 10; index++) {
                byte[] key = key(number, index);
                batch.put(table, key, bytes(Long.toString(number)));
                batch.merge(sums, key, one);
            }
            db.write(batch, Durability.MEMORY, bytes(Long.toString(number)));
            if (number % 4096 == 0) {
                db.flush();
                System.out.println(number + ".");
            }
        }
    }

    private static long next(Database db) {
        byte[] metadata = db.metadata();
        return metadata == null ? 0 : Long.parseLong(text(metadata)) + 1;
    }

    private static byte[] key(long number, int index) {
        return bytes("key " + (number * 10 + index) % KEYS);
    }

    /** Holds both tables against the batches up to the one that the metadata names, and returns how many those are. */
    private long check() {
        try (Database db = open(dir)) {
            long batches = next(db);
            Table table = db.table("last");
            Table sums = sums(db);
            long rounds = KEYS / 10;
            for (long place = 0; place < Math.min(rounds, batches); place++) {
                long times = (batches - 1 - place) / rounds + 1;
                long last = place + (times - 1) * rounds;
                for (int index = 0; index < 10; index++) {
                    byte[] key = key(place, index);
                    assertEquals(Long.toString(last), text(table.get(key)));
                    assertEquals(times, (long) Items.LONG.get(sums.get(key), 0));
                }
            }
            assertEquals(Math.min(KEYS, 10 * batches), table.count());
            return batches;
        }
    }
}
