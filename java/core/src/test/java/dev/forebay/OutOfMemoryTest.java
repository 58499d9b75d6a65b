package dev.forebay;

import static dev.forebay.Keys.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An answer that Java has no room for is told as Java tells it, and what comes afterwards works. */
class OutOfMemoryTest {
    private static final int VALUE_BYTES = 1 << 20;

    @TempDir
    Path dir;

    @Test
    void itIsTheJvmsOwnError() throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process process = new ProcessBuilder(java, "-Xmx24m", "-cp", System.getProperty("java.class.path"),
                        OutOfMemoryTest.class.getName(), dir.resolve("db").toString())
                .redirectErrorStream(true)
                .start();
        String told = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), told);
        assertEquals("OutOfMemoryError, then " + VALUE_BYTES, told.trim());
    }

    public static void main(String[] arguments) {
        try (Database db = Database.open(Path.of(arguments[0]))) {
            Table table = db.table("t");
            table.put(bytes("key"), new byte[VALUE_BYTES]);
            List<byte[]> keys = Collections.nCopies(64, bytes("key"));
            String told = "nothing";
            try {
                table.getMany(keys);
            } catch (Throwable error) {
                told = error.getClass().getSimpleName();
            }
            System.out.println(told + ", then " + table.get(bytes("key")).length);
        }
    }
}
