package dev.forebay.kafka;

import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.key;
import static dev.forebay.kafka.Host.texts;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Windows are in tables by time, and a table goes as a whole. */
class SegmentsTest {
    private static final long RETENTION = 120_000;
    private static final long INTERVAL = 60_000;

    @TempDir
    Path dir;

    private InternalMockProcessorContext<?, ?> context;
    private ForebayWindowStore store;

    @BeforeEach
    void open() {
        context = Host.context(dir, Map.of());
        store = windows();
    }

    @AfterEach
    void close() {
        store.close();
    }

    private ForebayWindowStore windows() {
        WindowSupplier supplier = WindowSupplier.of("windows", Format.PLAIN, RETENTION, 10, false, StrategyType.ON_WINDOW_UPDATE);
        return Host.open(ForebayWindowStore.of(supplier), context);
    }

    /** Where they begin, once what has expired went with a commit. */
    private List<Long> tables() {
        store.commit(Map.of(Host.CHANGELOG, 1L));
        List<Long> begins = new ArrayList<>();
        for (String table : store.database.tables()) {
            if (table.startsWith("plain-")) {
                begins.add(Long.parseLong(table.substring("plain-".length(), table.indexOf(".."))));
            }
        }
        begins.sort(null);
        return begins;
    }

    @Test
    void aTableGoesOnceAllInItHasExpired() {
        for (long segment = 2; segment < 8; segment++) {
            store.put(key("a"), bytes("" + segment), segment * INTERVAL);
            store.put(key("b"), bytes("" + segment), segment * INTERVAL + INTERVAL / 2);
            long first = Math.max(2, segment - 2);
            List<Long> expected = new ArrayList<>();
            for (long live = first; live <= segment; live++) {
                expected.add(live * INTERVAL);
            }
            assertEquals(expected, tables());
        }
        // That what has expired is not written anew.
        store.put(key("a"), bytes("late"), 4 * INTERVAL);
        assertEquals(List.of(5 * INTERVAL, 6 * INTERVAL, 7 * INTERVAL), tables());
        assertNull(store.fetch(key("a"), 4 * INTERVAL));
    }

    @Test
    void whatWasThereIsThereWhenItIsOpenedAgain() {
        store.put(key("a"), bytes("1"), INTERVAL);
        store.put(key("a"), bytes("2"), 3 * INTERVAL);
        store.commit(Map.of(Host.CHANGELOG, 2L));
        store.close();

        store = windows();
        assertEquals(List.of(INTERVAL, 3 * INTERVAL), tables());
        assertArrayEquals(bytes("2"), store.fetch(key("a"), 3 * INTERVAL));
        // It knows how late it is, too.
        assertNull(store.fetch(key("a"), INTERVAL));
        store.put(key("a"), bytes("late"), 0);
        assertEquals(List.of(INTERVAL, 3 * INTERVAL), tables());
    }

    @Test
    void aTableThatGoesIsPassedOver() {
        for (long segment = 0; segment < 3; segment++) {
            store.put(key("a"), bytes("" + segment), segment * INTERVAL + 1);
        }
        try (WindowStoreIterator<byte[]> found = store.fetch(key("a"), 0, 3 * INTERVAL)) {
            store.put(key("a"), bytes("3"), 3 * INTERVAL + 1);
            assertEquals(INTERVAL + 1, found.next().key);
            assertEquals(2 * INTERVAL + 1, found.next().key);
            assertFalse(found.hasNext());
        }
    }

    @Test
    void aRestoreDropsWhatHasExpired() {
        store.put(key("a"), bytes("1"), 0);
        byte[] late = Arrays.copyOf(bytes("b"), 13);
        byte[] early = late.clone();
        early[6] = 0x10; // 1,048,576 ms
        context.restore("windows", List.of(KeyValue.pair(late, bytes("2")), KeyValue.pair(early, bytes("3"))));
        assertEquals(List.of(0x100000 / INTERVAL * INTERVAL), tables());
        assertEquals(1, texts(store.all()).size());
    }

    /** Keys that begin others, and times between them, against all entries one by one. */
    @Test
    void rangesOfKeysHaveExactlyWhatIsInThem() {
        Random random = new Random(7);
        TreeSet<String> expected = new TreeSet<>();
        List<Bytes> keys = new ArrayList<>();
        for (int index = 0; index < 60; index++) {
            byte[] key = new byte[random.nextInt(4)];
            for (int place = 0; place < key.length; place++) {
                key[place] = (byte) new int[] {0, 1, 0x7F, 0x80, 0xFF}[random.nextInt(5)];
            }
            keys.add(Bytes.wrap(key));
            store.put(keys.get(index), bytes("" + index), index * 1000);
        }
        for (int round = 0; round < 300; round++) {
            Bytes from = random.nextInt(5) == 0 ? null : keys.get(random.nextInt(60));
            Bytes to = random.nextInt(5) == 0 ? null : random.nextInt(4) == 0 ? from : keys.get(random.nextInt(60));
            long begin = random.nextInt(60_000);
            long end = begin + random.nextInt(60_000);
            expected.clear();
            for (int index = 0; index < 60; index++) {
                Bytes key = keys.get(index);
                boolean isBetween = (from == null || from.compareTo(key) <= 0) && (to == null || key.compareTo(to) <= 0);
                if (isBetween && index * 1000 >= begin && index * 1000 <= end) {
                    expected.add("" + index);
                }
            }
            TreeSet<String> found = new TreeSet<>();
            texts(store.fetch(from, to, begin, end)).forEach(text -> found.add(text.substring(text.lastIndexOf('=') + 1)));
            assertEquals(expected, found, from + " " + to + " " + begin + " " + end);
            TreeSet<String> backward = new TreeSet<>();
            texts(store.backwardFetch(from, to, begin, end)).forEach(text -> backward.add(text.substring(text.lastIndexOf('=') + 1)));
            assertEquals(expected, backward);
        }
        assertTrue(store.isOpen());
    }
}
