package dev.forebay.kafka;

import static dev.forebay.kafka.Host.CHANGELOG;
import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.key;
import static dev.forebay.kafka.Host.texts;
import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.apache.kafka.streams.StreamsConfig.PROCESSING_GUARANTEE_CONFIG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Offsets are kept with the data: what a store has when it is opened again is what its offset says. */
class CommitTest {
    private static final Map<String, Object> EXACTLY_ONCE =
            Map.of(PROCESSING_GUARANTEE_CONFIG, EXACTLY_ONCE_V2, Settings.COMMIT_RECORDS, 1);
    private static final Map<String, Object> AT_LEAST_ONCE = Map.of(Settings.COMMIT_RECORDS, 1);

    @TempDir
    Path dir;

    private ForebayKeyValueStore open(String folder, Map<String, ?> settings) {
        return Host.keyValues(Host.context(dir.resolve(folder), settings));
    }

    @Test
    void offsetsAreSetRemovedAndCleared() {
        ForebayKeyValueStore store = open("a", AT_LEAST_ONCE);
        TopicPartition other = new TopicPartition("other", 3);
        assertTrue(store.managesOffsets() && store.persistent());
        assertNull(store.committedOffset(CHANGELOG));
        store.commit(Map.of(CHANGELOG, 5L, other, 6L));
        store.commit(Map.of(CHANGELOG, 7L));
        store.close();

        store = open("a", AT_LEAST_ONCE);
        assertEquals(7, store.committedOffset(CHANGELOG));
        assertEquals(6, store.committedOffset(other));
        Map<TopicPartition, Long> removed = new HashMap<>();
        removed.put(other, null);
        store.commit(removed);
        assertNull(store.committedOffset(other));
        assertEquals(7, store.committedOffset(CHANGELOG));
        store.commit(Map.of());
        store.close();

        store = open("a", AT_LEAST_ONCE);
        assertNull(store.committedOffset(CHANGELOG));
        store.close();
    }

    /** Kafka Streams 4.3 brings the offsets of its own earlier stores to whatever is there now. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void offsetsOfAnotherStoreAreNotTaken(boolean isExactlyOnce) throws IOException {
        Map<String, Object> settings = isExactlyOnce ? EXACTLY_ONCE : AT_LEAST_ONCE;
        Path task = Files.createDirectories(dir.resolve("a"));
        Files.writeString(task.resolve(".checkpoint"), "0\n1\n" + CHANGELOG.topic() + " 0 7\n");
        ForebayKeyValueStore store = open("a", settings);
        store.commit(Map.of(CHANGELOG, 7L));
        assertNull(store.committedOffset(CHANGELOG));
        store.put(key("1"), bytes("a"));
        store.commit(Map.of(CHANGELOG, 8L));
        store.close();
        store = open("a", settings);
        store.commit(Map.of(CHANGELOG, 9L));
        assertEquals(8, store.committedOffset(CHANGELOG), "its own are those of its data");
        store.close();
    }

    /** Nobody could restore it. */
    @Test
    void aStoreWithoutAChangelogKeepsWhatItHasAsExactlyOnceBegins() {
        ForebayKeyValueStore store = Host.keyValues(unlogged(AT_LEAST_ONCE));
        store.put(key("1"), bytes("a"));
        store.commit(Map.of());
        store.close();
        for (int run = 0; run < 2; run++) {
            store = Host.keyValues(unlogged(EXACTLY_ONCE));
            assertEquals(List.of("1=a"), texts(store.all()));
            store.put(key("2"), bytes("not committed"));
            store.close();
        }
    }

    private InternalMockProcessorContext<?, ?> unlogged(Map<String, ?> settings) {
        return Host.context(dir.resolve("unlogged"), settings, false);
    }

    @Test
    void underExactlyOnceNothingIsThereThatWasNotCommitted() {
        ForebayKeyValueStore store = open("a", EXACTLY_ONCE);
        store.put(key("1"), bytes("a"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("1"), bytes("b"));
        store.put(key("2"), bytes("b"));
        store.close(); // All of it is durable, and still not committed.

        store = open("a", EXACTLY_ONCE);
        assertEquals(List.of("1=a"), texts(store.all()));
        assertEquals(1, store.committedOffset(CHANGELOG));
        store.put(key("3"), bytes("c"));
        store.commit(Map.of(CHANGELOG, 2L));
        store.close();

        store = open("a", EXACTLY_ONCE);
        assertEquals(List.of("1=a", "3=c"), texts(store.all()));
        assertEquals(2, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void beforeTheFirstCommitThereIsNothing() {
        ForebayKeyValueStore store = open("a", EXACTLY_ONCE);
        store.put(key("1"), bytes("a"));
        store.close();

        store = open("a", EXACTLY_ONCE);
        assertEquals(List.of(), texts(store.all()));
        assertNull(store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void aSmallCommitIsDurableOnceTheStoreIsClosed() {
        Map<String, Object> settings = Map.of(PROCESSING_GUARANTEE_CONFIG, EXACTLY_ONCE_V2, Settings.COMMIT_RECORDS, 1000);
        ForebayKeyValueStore store = open("a", settings);
        store.put(key("1"), bytes("a"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();

        store = open("a", settings);
        assertEquals(1, store.committedOffset(CHANGELOG));
        assertEquals(List.of("1=a"), texts(store.all()));
        store.close();
    }

    /** A drop leaves no record behind: what expired behind the last commit is there again after a kill. */
    @Test
    void aSegmentThatWasDroppedBehindTheLastCommitIsThereAgain() throws IOException {
        WindowSupplier supplier = WindowSupplier.of("windows", Format.PLAIN, 120_000, 10, false, StrategyType.ON_WINDOW_UPDATE);
        ForebayWindowStore store = Host.open(ForebayWindowStore.of(supplier), Host.context(dir.resolve("a"), EXACTLY_ONCE));
        store.put(key("a"), bytes("41"), 0);
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("b"), bytes("1"), 1_000_000);
        assertNull(store.fetch(key("a"), 0L));
        Path killed = Host.afterAKill(dir.resolve("a"));
        store.close();

        store = Host.open(ForebayWindowStore.of(supplier), Host.context(killed, EXACTLY_ONCE));
        assertEquals("41", Host.text(store.fetch(key("a"), 0L)));
        assertEquals(1, store.committedOffset(CHANGELOG));
        store.close();
    }

    /** At least once: what made a segment expire must be durable before the segment goes. */
    @Test
    void aSegmentGoesWithTheCommitOfWhatMadeItExpire() throws IOException {
        WindowSupplier supplier = WindowSupplier.of("windows", Format.PLAIN, 120_000, 10, false, StrategyType.ON_WINDOW_CLOSE);
        Map<String, Object> settings = Map.of(Settings.COMMIT_RECORDS, 1000);
        ForebayWindowStore store = Host.open(ForebayWindowStore.of(supplier), Host.context(dir.resolve("a"), settings));
        store.put(key("a"), bytes("41"), 0);
        store.commit(Map.of(CHANGELOG, 1L));
        store.flush();
        store.put(key("b"), bytes("1"), 1_000_000);
        assertNull(store.fetch(key("a"), 0L));
        Path before = Host.afterAKill(dir.resolve("a"));
        store.commit(Map.of(CHANGELOG, 2L));
        Path behind = Host.afterAKill(dir.resolve("a"));
        store.close();

        store = Host.open(ForebayWindowStore.of(supplier), Host.context(before, settings));
        assertEquals("41", Host.text(store.fetch(key("a"), 0L)));
        assertEquals(1, texts(store.fetchAll(0, 10)).size());
        assertEquals(1, store.committedOffset(CHANGELOG));
        store.close();
        store = Host.open(ForebayWindowStore.of(supplier), Host.context(behind, settings));
        assertEquals(1, store.database.tables().stream().filter(table -> table.startsWith("plain-")).count());
        assertEquals("1", Host.text(store.fetch(key("b"), 1_000_000L)));
        assertEquals(2, store.committedOffset(CHANGELOG));
        store.close();
    }

    /** Not even by a flush, which 4.3 asks for nowhere. */
    @Test
    void aFlushUnderExactlyOnceKeepsNothingThatWasNotCommitted() {
        ForebayKeyValueStore store = open("a", EXACTLY_ONCE);
        store.put(key("1"), bytes("a"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("2"), bytes("b"));
        store.flush();
        store.close();

        store = open("a", EXACTLY_ONCE);
        assertEquals(List.of("1=a"), texts(store.all()));
        store.close();
    }

    /** The offset goes with the values, so the host restores all of it; so also after a kill amid that. */
    @ParameterizedTest
    @ValueSource(strings = {EXACTLY_ONCE_V2, StreamsConfig.AT_LEAST_ONCE})
    void aStoreThatIsLoggedGoesOverToAnotherFormat(String guarantee) throws IOException {
        Map<String, Object> settings = Map.of(PROCESSING_GUARANTEE_CONFIG, guarantee);
        ForebayKeyValueStore store = open("a", settings);
        store.put(key("1"), bytes("a"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();

        store = withHeaders(dir.resolve("a"), settings);
        assertNull(store.committedOffset(CHANGELOG));
        assertEquals(List.of(), texts(store.all()));
        Path killed = Host.afterAKill(dir.resolve("a"));
        store.put(key("1"), bytes("b"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        store = withHeaders(dir.resolve("a"), settings);
        assertEquals(1, store.committedOffset(CHANGELOG));
        assertEquals(List.of("1=b"), texts(store.all()));
        store.close();

        store = withHeaders(killed, settings);
        assertNull(store.committedOffset(CHANGELOG));
        assertEquals(List.of(), texts(store.all()));
        store.close();
    }

    private static ForebayKeyValueStore withHeaders(Path folder, Map<String, ?> settings) {
        InternalMockProcessorContext<?, ?> context = Host.context(folder, settings);
        context.addChangelogForStore("store", CHANGELOG.topic());
        return Host.open(ForebayKeyValueStore.of("store", Format.HEADERS), context);
    }

    /** Else the host, which finds no offset after a kill, wipes the other stores of the task, too. */
    @Test
    void theFirstCommitUnderExactlyOnceIsDurable() {
        Map<String, Object> settings = Map.of(PROCESSING_GUARANTEE_CONFIG, EXACTLY_ONCE_V2, Settings.COMMIT_RECORDS, 1000);
        ForebayKeyValueStore store = open("a", settings);
        store.put(key("1"), bytes("a"));
        store.commit(Map.of(CHANGELOG, 1L));
        store.put(key("1"), bytes("b")); // So the close keeps nothing more.
        store.close();

        store = open("a", settings);
        assertEquals(1, store.committedOffset(CHANGELOG));
        assertEquals(List.of("1=a"), texts(store.all()));
        store.close();
    }

    @Test
    void aProcessHasOneMemory() {
        ForebayKeyValueStore store = open("a", Map.of());
        ConfigException told =
                assertThrows(ConfigException.class, () -> open("b", Map.of(Settings.MEMORY_BYTES, 32 << 20)));
        assertTrue(told.getMessage().contains(Settings.MEMORY_BYTES), told.getMessage());
        Map<String, Object> wrong = Map.of(Settings.THREADS, "few", Settings.COMMIT_RECORDS, 0, Settings.MEMORY_BYTES, 1 << 20,
                Settings.LAYOUT, "wb-tree");
        for (Map.Entry<String, Object> setting : wrong.entrySet()) {
            told = assertThrows(ConfigException.class, () -> open("b", Map.of(setting.getKey(), setting.getValue())));
            assertTrue(told.getMessage().contains(setting.getKey()), told.getMessage());
        }
        assertThrows(ConfigException.class, () -> open("b", Map.of(Settings.THREADS, 1L << 32)));
        assertEquals(1, SharedPool.users());
        store.close();
        open("b", Map.of(Settings.MEMORY_BYTES, 32 << 20)).close();
        assertEquals(0, SharedPool.users());
    }
}
