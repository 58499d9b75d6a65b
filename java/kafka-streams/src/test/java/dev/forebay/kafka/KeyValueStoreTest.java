package dev.forebay.kafka;

import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.changed;
import static dev.forebay.kafka.Host.key;
import static dev.forebay.kafka.Host.text;
import static dev.forebay.kafka.Host.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.forebay.Held;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.serialization.UUIDSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What Kafka's own test of its persistent store asks, of ours; but for what is of RocksDB alone, such as its options,
 * its column families, and iterators that the caller closes.
 */
class KeyValueStoreTest {
    @TempDir
    Path dir;

    private InternalMockProcessorContext<?, ?> context;
    private ForebayKeyValueStore store;

    @BeforeEach
    void open() {
        context = Host.context(dir, Map.of());
        store = Host.keyValues(context);
    }

    @AfterEach
    void close() {
        store.close();
        assertEquals(0, SharedPool.users());
    }

    private void putAll(String... texts) {
        List<KeyValue<Bytes, byte[]>> entries = new ArrayList<>();
        for (int index = 0; index < texts.length; index += 2) {
            entries.add(KeyValue.pair(key(texts[index]), bytes(texts[index + 1])));
        }
        store.putAll(entries);
    }

    @Test
    void allOfABatchIsThere() {
        putAll("1", "a", "2", "b", "3", "c", "2", null);
        assertEquals(List.of("1=a", "3=c"), texts(store.all()));
        assertEquals(List.of("3=c", "1=a"), texts(store.reverseAll()));
    }

    @Test
    void thePositionIsThatOfTheRecordsThatWereWritten() {
        context.setRecordContext(new ProcessorRecordContext(0, 1, 0, "", new RecordHeaders()));
        store.put(key("1"), bytes("a"));
        context.setRecordContext(new ProcessorRecordContext(0, 2, 0, "", new RecordHeaders()));
        putAll("2", "b");
        Position expected = Position.fromMap(Map.of("", Map.of(0, 2L)));
        assertEquals(expected, store.getPosition());
        store.commit(Map.of(Host.CHANGELOG, 7L));
        store.close();
        store = Host.keyValues(context);
        assertEquals(expected, store.getPosition());
    }

    @Test
    void aPrefixIsFoundAndNothingBehindIt() {
        putAll("abc", "1", "abcd", "2", "abd", "3", "ab", "4");
        assertEquals(List.of("abc=1", "abcd=2"), texts(store.prefixScan("abc", new StringSerializer())));
        assertEquals(List.of("ab=4", "abc=1", "abcd=2", "abd=3"), texts(store.prefixScan("ab", new StringSerializer())));
        assertEquals(List.of(), texts(store.prefixScan("bb", new StringSerializer())));
        byte[] largest = {(byte) 255, (byte) 255};
        store.put(Bytes.wrap(largest), bytes("5"));
        assertEquals(1, texts(store.prefixScan(largest, (topic, data) -> data)).size());
    }

    @Test
    void keysOfAnyBytesAreFoundByAPrefix() {
        UUID one = UUID.fromString("12345678-1234-1234-1234-123456789012");
        byte[] binary = ByteBuffer.allocate(16).putLong(one.getMostSignificantBits()).putLong(one.getLeastSignificantBits()).array();
        store.put(Bytes.wrap(binary), bytes("a"));
        byte[] name = new UUIDSerializer().serialize("", one);
        store.put(Bytes.wrap(name), bytes("b"));
        try (KeyValueIterator<Bytes, byte[]> found = store.prefixScan("12345678", new StringSerializer())) {
            assertEquals("b", text(found.next().value));
            assertTrue(!found.hasNext());
        }
    }

    @Test
    void recordsAreRestoredInTheirOrder() {
        store.restore(List.of(
                changed("1", "a", "A", 1), changed("2", "b", "B", 2), changed("3", "c", "A", 3),
                changed("1", null, "A", 4), changed("2", null, "B", 3), changed("2", "d", "B", 4)));
        assertEquals(List.of("2=d", "3=c"), texts(store.all()));
        assertEquals(Map.of(0, 4L), store.getPosition().getPartitionPositions("A"));
        assertEquals(Map.of(0, 4L), store.getPosition().getPartitionPositions("B"));
    }

    @Test
    void recordsWithoutAPositionAreRestored() {
        context.restore("store", List.of(KeyValue.pair(bytes("1"), bytes("a")), KeyValue.pair(bytes("2"), bytes("b"))));
        assertEquals(List.of("1=a", "2=b"), texts(store.all()));
        assertEquals(Position.emptyPosition(), store.getPosition());
    }

    @Test
    void onlyAnAbsentKeyIsPut() {
        assertNull(store.putIfAbsent(key("1"), bytes("a")));
        assertEquals("a", text(store.putIfAbsent(key("1"), bytes("b"))));
        assertNull(store.putIfAbsent(key("2"), null));
        assertEquals(List.of("1=a"), texts(store.all()));
    }

    @Test
    void aDeleteTellsWhatWasThere() {
        store.put(key("1"), bytes("a"));
        assertEquals("a", text(store.delete(key("1"))));
        assertNull(store.delete(key("1")));
        assertEquals(List.of(), texts(store.all()));
    }

    @Test
    void noKeyIsAnException() {
        assertThrows(NullPointerException.class, () -> store.put(null, bytes("a")));
        assertThrows(NullPointerException.class, () -> store.putAll(List.of(KeyValue.pair(null, bytes("a")))));
        assertThrows(NullPointerException.class, () -> store.get(null));
        assertThrows(NullPointerException.class, () -> store.delete(null));
    }

    @Test
    void aRangeHasBothEnds() {
        putAll("0", "a", "1", "b", "10", "c", "2", "d", "3", "e");
        assertEquals(List.of("1=b", "10=c", "2=d"), texts(store.range(key("1"), key("2"))));
        assertEquals(List.of("2=d", "10=c", "1=b"), texts(store.reverseRange(key("1"), key("2"))));
        assertEquals(List.of("2=d", "3=e"), texts(store.range(key("2"), null)));
        assertEquals(List.of("0=a", "1=b"), texts(store.range(null, key("1"))));
        assertEquals(List.of(), texts(store.range(key("2"), key("1"))));
    }

    @Test
    void whatIsOpenEndsWithTheStore() {
        putAll("1", "a", "2", "b");
        KeyValueIterator<Bytes, byte[]> range = store.range(key("1"), key("2"));
        assertEquals(key("1"), range.peekNextKey());
        store.close();
        assertThrows(InvalidStateStoreException.class, range::hasNext);
        assertThrows(InvalidStateStoreException.class, range::next);
        range.close();
        assertThrows(InvalidStateStoreException.class, () -> store.get(key("1")));
        assertThrows(InvalidStateStoreException.class, () -> store.put(key("1"), bytes("a")));
        assertThrows(InvalidStateStoreException.class, () -> store.committedOffset(Host.CHANGELOG));
        store.close();
        store.commit(Map.of());
    }

    @Test
    void aFolderThatCannotBeIsTold() throws Exception {
        Path file = Files.writeString(dir.resolve("file"), "");
        ProcessorStateException told = assertThrows(
                ProcessorStateException.class, () -> Host.keyValues(Host.context(file, Map.of())));
        assertTrue(told.getMessage().contains("store"), told.getMessage());
    }

    @Test
    void anotherFormatIsToldAndNotRead() {
        store.put(key("1"), bytes("a"));
        store.close();
        context = Host.context(dir, Map.of(), false);
        ProcessorStateException told = assertThrows(ProcessorStateException.class,
                () -> Host.open(ForebayKeyValueStore.of("store", Format.TIMESTAMPED), context));
        assertTrue(told.getMessage().contains("plain") && told.getMessage().contains("timestamped"), told.getMessage());
        store = Host.keyValues(context);
        assertEquals(List.of("1=a"), texts(store.all()));
    }

    @Test
    void anotherLayoutIsForTablesThatAreNew() {
        store.put(key("1"), bytes("a"));
        store.close();
        Map<String, Object> settings = Map.of(Settings.LAYOUT, "leveling:t=10");
        store = Host.keyValues(Host.context(dir, settings));
        assertEquals(List.of("1=a"), texts(store.all()));
        ForebayKeyValueStore another = Host.keyValues(Host.context(dir.resolve("another"), settings));
        assertTrue(another.database.table("plain").layout().startsWith("leveling"), another.database.table("plain").layout());
        another.close();
    }

    /** Also one that nobody has asked for anything, of more than comes at once. */
    @Test
    void anIteratorThatIsClosedHoldsNothing() {
        for (int index = 0; index < 1000; index++) {
            store.put(key("key" + index), new byte[100]);
        }
        long before = Held.now();
        KeyValueIterator<Bytes, byte[]> all = store.all();
        assertTrue(Held.now() > before);
        all.close();
        assertEquals(before, Held.now());
        all = store.all();
        all.next();
        all.close();
        assertEquals(before, Held.now());
        store.range(key("2"), key("1")).close();
        assertEquals(before, Held.now());
    }

    /** Seven gauges are one question, and go with the store. */
    @Test
    void gaugesTellWhatThereIsWhileItIsOpen() {
        store.put(key("1"), bytes("a"));
        assertEquals(1L, gauge("estimate-num-keys"));
        assertTrue(gauge("forebay-memory-bytes") > 0);
        store.close();
        assertEquals(-1, gauge("estimate-num-keys"));
        store = Host.keyValues(context);
        assertTrue(gauge("estimate-num-keys") >= 1);
    }

    /** Or -1. */
    private long gauge(String name) {
        return context.metrics().metrics().entrySet().stream()
                .filter(metric -> metric.getKey().name().equals(name))
                .mapToLong(metric -> ((Number) metric.getValue().metricValue()).longValue())
                .findFirst().orElse(-1);
    }

    @Test
    void aKeyThatIsTooLongIsTold() {
        ProcessorStateException told = assertThrows(
                ProcessorStateException.class, () -> store.put(Bytes.wrap(new byte[70_000]), bytes("a")));
        assertTrue(told.getCause().getMessage().contains("key"), told.getCause().getMessage());
    }
}
