package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import dev.forebay.Database;
import dev.forebay.Options;
import dev.forebay.Table;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What waits to be written is what was given, and what was given stays as it was. */
class PendingTest {
    private static final int LONG_BYTES = 200_000;

    @TempDir
    Path dir;

    private static final byte[] KEY = Executor.bytes("key");

    private final Pending pending = new Pending(null);

    private String found() {
        assertEquals(Pending.Known.PRESENT, pending.lookup(KEY));
        return Executor.text(pending.found);
    }

    @Test
    void appendsStandOneBehindTheOther() {
        pending.delete(KEY);
        StringBuilder expected = new StringBuilder();
        for (int append = 0; append < 1000; append++) {
            pending.merge(KEY, Executor.bytes("value-" + append));
            expected.append(append == 0 ? "" : ",").append("value-").append(append);
            assertEquals(expected.toString(), found());
        }
        assertEquals(1, pending.writes());
        pending.put(KEY, Executor.bytes("short"));
        assertEquals("short", found());
        pending.merge(KEY, Executor.bytes("x"));
        assertEquals("short,x", found());
    }

    @Test
    void arraysOfOthersStayAsTheyAre() {
        byte[] first = Executor.bytes("first");
        pending.put(KEY, first);
        pending.lookup(KEY);
        assertSame(first, pending.found);
        pending.merge(KEY, Executor.bytes("a"));
        pending.lookup(KEY);
        byte[] read = pending.found;
        byte[] copy = Arrays.copyOf(read, read.length);
        for (int append = 0; append < 100; append++) {
            pending.merge(KEY, Executor.bytes("b"));
        }
        assertArrayEquals(Executor.bytes("first"), first);
        assertArrayEquals(copy, read);
        assertNotSame(first, read);
    }

    @Test
    void bytesAreThoseThatWait() {
        pending.merge(KEY, new byte[100]);
        long one = pending.bytes();
        pending.merge(KEY, new byte[100]);
        assertEquals(one + 101, pending.bytes());
        pending.put(KEY, new byte[10]);
        assertEquals(one - 90, pending.bytes());
        pending.delete(KEY);
        assertEquals(one - 100, pending.bytes());
    }

    /** Keys that are not there come first, as a jump to many at a time would bring all long values at once. */
    @Test
    void countingKeysBringsNoValues() {
        try (Database database = Database.open(dir.resolve("db"), new Options().set("log", "false"))) {
            Table table = database.table("family");
            Family family = new Family(new Family.Shape("f", (short) 0, false, Family.Order.HASH, Family.Values.ONE), table);
            Pending counted = new Pending(family);
            for (int key = 0; key < 400; key++) {
                byte[] name = Executor.bytes("key-" + key);
                if (key % 2 == 0) {
                    table.put(name, new byte[LONG_BYTES]);
                }
                if (key % 5 == 0) {
                    counted.delete(name);
                } else {
                    counted.put(name, name);
                }
            }
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            long before = threads.getCurrentThreadAllocatedBytes();
            assertEquals(160 - 40, counted.growth());
            long taken = threads.getCurrentThreadAllocatedBytes() - before;
            assertTrue(taken < LONG_BYTES, taken + " bytes came to the heap");
            assertEquals(160 - 40, counted.growth(), "what was looked up is known");
        }
    }
}
