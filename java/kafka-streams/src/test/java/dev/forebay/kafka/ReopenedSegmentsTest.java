package dev.forebay.kafka;

import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.key;
import static dev.forebay.kafka.Host.texts;
import static org.apache.kafka.streams.StreamsConfig.AT_LEAST_ONCE;
import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.apache.kafka.streams.StreamsConfig.PROCESSING_GUARANTEE_CONFIG;
import static org.apache.kafka.streams.kstream.EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
import static org.apache.kafka.streams.kstream.EmitStrategy.StrategyType.ON_WINDOW_UPDATE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Windows and sessions that are opened again, as they were and otherwise. */
class ReopenedSegmentsTest {
    private static final long MINUTE = 60_000;

    @TempDir
    Path dir;

    private ForebayWindowStore windows(Path folder, String guarantee, long retention, StrategyType emits) {
        WindowSupplier supplier = WindowSupplier.of("windows", Format.PLAIN, retention, 10, false, emits);
        return Host.open(ForebayWindowStore.of(supplier), Host.context(folder, Map.of(PROCESSING_GUARANTEE_CONFIG, guarantee)));
    }

    private ForebayWindowStore windows(long retention, StrategyType emits) {
        return windows(dir.resolve("a"), AT_LEAST_ONCE, retention, emits);
    }

    private static void commitAndClose(ForebayStore store) {
        store.commit(Map.of(Host.CHANGELOG, 1L));
        store.close();
    }

    private static Set<String> values(KeyValueIterator<Windowed<Bytes>, byte[]> entries) {
        Set<String> values = new TreeSet<>();
        for (String text : texts(entries)) {
            assertTrue(values.add(text.substring(text.lastIndexOf('=') + 1)), text);
        }
        return values;
    }

    @Test
    void anotherRetentionFindsWhatIsThere() {
        ForebayWindowStore store = windows(2 * MINUTE, ON_WINDOW_UPDATE);
        for (long minute = 0; minute < 3; minute++) {
            store.put(key("a"), bytes("" + minute), minute * MINUTE);
        }
        commitAndClose(store);

        store = windows(20 * MINUTE, ON_WINDOW_UPDATE);
        store.put(key("a"), bytes("3"), 3 * MINUTE);
        store.put(key("a"), bytes("9"), 19 * MINUTE);
        assertEquals(Set.of("0", "1", "2", "3", "9"), values(store.all()));
        assertTrue(store.database.tables().contains("plain-0..599999"), store.database.tables().toString());
        commitAndClose(store);

        store = windows(2 * MINUTE, ON_WINDOW_UPDATE);
        store.put(key("a"), bytes("8"), 18 * MINUTE);
        assertEquals(Set.of("8", "9"), values(store.all()));
        commitAndClose(store);
        store = windows(2 * MINUTE, ON_WINDOW_UPDATE);
        store.put(key("a"), bytes("x"), 30 * MINUTE);
        store.commit(Map.of(Host.CHANGELOG, 1L));
        assertEquals(1, store.database.tables().stream().filter(table -> table.startsWith("plain-")).count());
        store.close();
    }

    /** Expired tables go with a commit, once that is durable which comes before it. */
    @Test
    void aKillBeforeExpiredTablesGoLeavesNoTimeToTwo() throws IOException {
        ForebayWindowStore store = windows(2 * MINUTE, ON_WINDOW_UPDATE);
        for (long minute = 0; minute < 3; minute++) {
            store.put(key("a"), bytes("" + minute), minute * MINUTE);
        }
        commitAndClose(store);

        store = windows(20 * MINUTE, ON_WINDOW_UPDATE);
        store.put(key("b"), bytes("latest"), 23 * MINUTE + 20_000);
        store.put(key("b"), bytes("late"), 5 * MINUTE);
        Path killed = Host.afterAKill(dir.resolve("a"));
        store.close();

        // The host restores it.
        store = windows(killed, AT_LEAST_ONCE, 20 * MINUTE, ON_WINDOW_UPDATE);
        store.put(key("b"), bytes("latest"), 23 * MINUTE + 20_000);
        store.put(key("b"), bytes("late"), 5 * MINUTE);
        assertArrayEquals(bytes("late"), store.fetch(key("b"), 5 * MINUTE));
        commitAndClose(store);
        store = windows(killed, AT_LEAST_ONCE, 20 * MINUTE, ON_WINDOW_UPDATE);
        assertEquals(Set.of("late", "latest"), values(store.all()));
        assertEquals(2, store.database.tables().stream().filter(table -> table.startsWith("plain-")).count());
        store.close();
    }

    /** What no retention had let expire is there, and nothing else; in both orders, and however often it is asked for. */
    @Test
    void anyRetentionsAndStrategiesFindWhatHasNotExpired() throws IOException {
        Random random = new Random(5);
        Path folder = dir.resolve("a");
        Set<Integer> put = new HashSet<>();
        long[] times = new long[1200];
        long latest = 0;
        long kept = 0;
        for (int round = 0; round < 30; round++) {
            long retention = (1 + random.nextInt(12)) * MINUTE + random.nextInt(2) * 7;
            StrategyType emits = random.nextBoolean() ? ON_WINDOW_CLOSE : ON_WINDOW_UPDATE;
            ForebayWindowStore store = windows(folder, AT_LEAST_ONCE, retention, emits);
            for (int index = round * 40; index < (round + 1) * 40; index++) {
                times[index] = Math.max(0, latest - 2 * MINUTE + random.nextInt((int) (3 * MINUTE)));
                latest = Math.max(latest, times[index]);
                kept = Math.max(kept, latest - retention + 1);
                if (times[index] >= latest - retention + 1) {
                    put.add(index);
                }
                store.put(key("key" + index), bytes("" + index), times[index]);
            }
            long oldest = kept;
            Set<String> expected = new TreeSet<>();
            put.stream().filter(index -> times[index] >= oldest).forEach(index -> expected.add("" + index));
            Set<String> byTime = values(store.fetchAll(oldest, Long.MAX_VALUE));
            assertEquals(expected, byTime, "round " + round);
            assertEquals(expected, values(store.fetch(key("k"), key("l"), oldest, Long.MAX_VALUE)), "round " + round);
            assertEquals(expected, values(store.backwardFetchAll(oldest, Long.MAX_VALUE)), "round " + round);
            assertInOrder(store.fetch(key("k"), key("l"), oldest, Long.MAX_VALUE), Math.max(MINUTE, retention / 2));
            if (random.nextBoolean()) {
                commitAndClose(store);
            } else {
                // As under at-least-once: what was written since the last flush is restored.
                store.commit(Map.of(Host.CHANGELOG, 1L));
                store.flush();
                store.put(key("lost"), bytes("lost"), latest);
                Path killed = Host.afterAKill(folder);
                store.close();
                folder = killed;
            }
        }
    }

    /** The order of Kafka's own segments, in which the host merges its cache with them. */
    private static void assertInOrder(KeyValueIterator<Windowed<Bytes>, byte[]> entries, long interval) {
        try (entries) {
            long segment = 0;
            Bytes key = Bytes.wrap(new byte[0]);
            while (entries.hasNext()) {
                Windowed<Bytes> next = entries.next().key;
                long here = next.window().start() / interval;
                assertTrue(here > segment || here == segment && next.key().compareTo(key) >= 0, next + " behind " + key);
                segment = here;
                key = next.key();
            }
        }
    }

    @Test
    void windowsThatAreWrittenUnderAnotherStrategyAreForwarded() {
        ForebayWindowStore store = windows(10 * MINUTE, ON_WINDOW_CLOSE);
        store.put(key("a"), bytes("1"), 10);
        commitAndClose(store);

        store = windows(10 * MINUTE, ON_WINDOW_UPDATE);
        assertTrue(store.database.tables().stream().noneMatch(table -> table.startsWith("time-")));
        store.put(key("b"), bytes("2"), 20);
        store.put(key("a"), null, 10);
        commitAndClose(store);

        store = windows(10 * MINUTE, ON_WINDOW_CLOSE);
        assertEquals(Set.of("2"), values(store.fetchAll(0, 100)));
        store.put(key("c"), bytes("3"), 5);
        commitAndClose(store);
        store = windows(10 * MINUTE, ON_WINDOW_CLOSE);
        assertEquals(List.of("3", "2"), texts(store.fetchAll(0, 100)).stream().map(text -> text.split("=")[1]).toList());
        commitAndClose(store);
    }

    @Test
    void anOrderOfTimeThatIsLeftAloneGoes() {
        ForebayWindowStore store = windows(10 * MINUTE, ON_WINDOW_CLOSE);
        store.put(key("a"), bytes("1"), 10);
        store.database.table("time-plain-600000..899999");
        commitAndClose(store);
        store = windows(10 * MINUTE, ON_WINDOW_CLOSE);
        Set<String> tables = new TreeSet<>(store.database.tables());
        tables.removeIf(table -> !table.contains("plain-"));
        assertEquals(Set.of("plain-0..299999", "time-plain-0..299999"), tables);
        store.close();
    }

    /** The order of time is made in memory, though its table is on disk. */
    @ParameterizedTest
    @ValueSource(strings = {EXACTLY_ONCE_V2, AT_LEAST_ONCE})
    void aKillBeforeTheOrderOfTimeIsDurableLeavesItToTheNext(String guarantee) throws IOException {
        ForebayWindowStore store = windows(dir.resolve("a"), guarantee, 10 * MINUTE, ON_WINDOW_UPDATE);
        for (int index = 0; index < 3000; index++) {
            store.put(key("key" + index), bytes("" + index), index);
        }
        commitAndClose(store);

        store = windows(dir.resolve("a"), guarantee, 10 * MINUTE, ON_WINDOW_CLOSE);
        assertEquals(3000, values(store.fetchAll(0, MINUTE)).size());
        Path killed = Host.afterAKill(dir.resolve("a"));
        store.close();

        store = windows(killed, guarantee, 10 * MINUTE, ON_WINDOW_CLOSE);
        assertEquals(3000, values(store.fetchAll(0, MINUTE)).size());
        store.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {EXACTLY_ONCE_V2, AT_LEAST_ONCE})
    void sessionsThatWereCommittedAreThere(String guarantee) throws IOException {
        SessionSupplier supplier = SessionSupplier.of("sessions", Format.PLAIN, 10 * MINUTE, ON_WINDOW_CLOSE);
        Map<String, Object> settings = Map.of(PROCESSING_GUARANTEE_CONFIG, guarantee, Settings.COMMIT_RECORDS, 1);
        ForebaySessionStore store = Host.open(ForebaySessionStore.of(supplier), Host.context(dir.resolve("a"), settings));
        store.put(new Windowed<>(key("a"), new SessionWindow(0, 10)), bytes("1"));
        store.put(new Windowed<>(key("b"), new SessionWindow(5, MINUTE * 9)), bytes("2"));
        store.commit(Map.of(Host.CHANGELOG, 2L));
        store.remove(new Windowed<>(key("a"), new SessionWindow(0, 10)));
        Path killed = Host.afterAKill(dir.resolve("a"));
        store.close();

        store = Host.open(ForebaySessionStore.of(supplier), Host.context(killed, settings));
        assertEquals(Set.of("1", "2"), values(store.findSessions(0, 9 * MINUTE)));
        assertEquals(Set.of("1"), values(store.fetch(key("a"))));
        assertEquals(Set.of("2"), values(store.findSessions(key("a"), key("c"), 20, MINUTE)));
        assertEquals(2, store.committedOffset(Host.CHANGELOG));
        // What has expired by then goes, in both orders.
        store.put(new Windowed<>(key("c"), new SessionWindow(90 * MINUTE, 90 * MINUTE)), bytes("3"));
        commitAndClose(store);
        store = Host.open(ForebaySessionStore.of(supplier), Host.context(killed, settings));
        assertEquals(Set.of("3"), values(store.findSessions(0, 90 * MINUTE)));
        assertEquals(3, store.database.tables().size(), () -> "the rest of " + killed);
        store.close();
    }
}
