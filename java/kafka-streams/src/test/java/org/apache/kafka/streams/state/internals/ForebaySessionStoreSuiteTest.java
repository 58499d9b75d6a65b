package org.apache.kafka.streams.state.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.forebay.kafka.ForebayStores;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Test;

/**
 * Kafka's own suite for stores of sessions. It knows Kafka's kinds of stores only and asks them for what they do; ours
 * expires as its {@code RocksDBSessionStore} does, and finds sessions by time alone, which that one cannot.
 */
public class ForebaySessionStoreSuiteTest extends AbstractSessionBytesStoreTest {
    private int built;

    /** The suite has two of them open in one folder, which have names of their own elsewhere. */
    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retention, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(
                        ForebayStores.persistentSessionStore("session-store-" + built++, Duration.ofMillis(retention)), keySerde, valueSerde)
                .build();
    }

    @Override
    StoreType storeType() {
        return StoreType.RocksDBSessionStore;
    }

    @Test
    @Override
    public void shouldFindSessionsForTimeRange() {
        sessionStore.put(new Windowed<>("a", new SessionWindow(0, 0)), 5L);
        sessionStore.put(new Windowed<>("b", new SessionWindow(10, 20)), 10L);
        sessionStore.put(new Windowed<>("c", new SessionWindow(30, 50)), 20L);
        assertEquals(List.of(5L), values(0, 0));
        assertEquals(List.of(5L, 10L), values(0, 20));
        assertEquals(List.of(10L, 20L), values(20, 50));
        assertEquals(List.of(), values(21, 49));
    }

    /** The suite's restores into a store that is closed; a host opens it before. */
    @Test
    @Override
    public void shouldRestore() {
        List<KeyValue<byte[], byte[]>> changelog = new ArrayList<>();
        for (long end : new long[] {0, 10, 100, 1000}) {
            sessionStore.put(new Windowed<>("a", new SessionWindow(end, end)), end);
            byte[] key = SessionKeySchema.toBinary(Bytes.wrap(new byte[] {'a'}), end, end).get();
            changelog.add(KeyValue.pair(key, new LongSerializer().serialize(null, end)));
        }
        sessionStore.close();
        assertThrows(InvalidStateStoreException.class, () -> sessionStore.fetch("a"));

        sessionStore = buildSessionStore(RETENTION_PERIOD, Serdes.String(), Serdes.Long());
        sessionStore.init(context, sessionStore);
        assertEquals(List.of(), values(0, 1000));
        context.restore(sessionStore.name(), changelog);
        assertEquals(List.of(0L, 10L, 100L, 1000L), values(0, 1000));
    }

    private List<Long> values(long earliestEnd, long latestEnd) {
        List<Long> values = new ArrayList<>();
        try (KeyValueIterator<Windowed<String>, Long> sessions = sessionStore.findSessions(earliestEnd, latestEnd)) {
            while (sessions.hasNext()) {
                KeyValue<Windowed<String>, Long> session = sessions.next();
                values.add(session.value);
            }
        }
        return values;
    }
}
