package dev.forebay.kafka;

import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.key;
import static org.apache.kafka.streams.StreamsConfig.AT_LEAST_ONCE;
import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.apache.kafka.streams.StreamsConfig.PROCESSING_GUARANTEE_CONFIG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.forebay.Held;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Some ask while another one writes, drops what has expired, and closes the store. */
class SharedStoreTest {
    private static final long RETENTION = 120_000;
    private static final int ASKERS = 3;

    @TempDir
    Path dir;

    private ForebayWindowStore windows(String guarantee) {
        WindowSupplier supplier = WindowSupplier.of("windows", Format.PLAIN, RETENTION, 10, false, StrategyType.ON_WINDOW_CLOSE);
        return Host.open(ForebayWindowStore.of(supplier), Host.context(dir, Map.of(PROCESSING_GUARANTEE_CONFIG, guarantee)));
    }

    /** In order of time, where each value is looked up when its turn comes. */
    @ParameterizedTest
    @ValueSource(strings = {EXACTLY_ONCE_V2, AT_LEAST_ONCE})
    void whatExpiresAmidAWalkIsPassedOver(String guarantee) {
        ForebayWindowStore store = windows(guarantee);
        for (int index = 0; index < 10; index++) {
            store.put(key("key" + index), bytes("" + index), index);
        }
        try (KeyValueIterator<Windowed<Bytes>, byte[]> all = store.all()) {
            assertEquals(key("key0"), all.next().key.key());
            store.put(key("late"), bytes("late"), 10 * RETENTION);
            store.commit(Map.of(Host.CHANGELOG, 1L));
            while (all.hasNext()) {
                assertTrue(all.next().value.length > 0);
            }
        }
        store.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {EXACTLY_ONCE_V2, AT_LEAST_ONCE})
    void whoAsksIsToldOfTheCloseAndOfNothingElse(String guarantee) throws InterruptedException, ExecutionException {
        long before = Held.now();
        ForebayWindowStore store = windows(guarantee);
        AtomicLong latest = new AtomicLong();
        AtomicLong found = new AtomicLong();
        ExecutorService threads = Executors.newFixedThreadPool(ASKERS);
        List<Future<?>> asked = new ArrayList<>();
        for (int asker = 0; asker < ASKERS; asker++) {
            int kind = asker;
            asked.add(threads.submit(() -> ask(store, kind, latest, found)));
        }
        for (int index = 0; index < 4000 || found.get() < 100 && index < 400_000; index++) {
            store.put(key("key" + index % 7), bytes("" + index), index * 500L);
            latest.set(index * 500L);
            if (index % 100 == 99) {
                store.commit(Map.of(Host.CHANGELOG, (long) index));
            }
        }
        store.close();
        for (Future<?> one : asked) {
            one.get();
        }
        threads.shutdown();
        assertEquals(before, Held.now());
        assertEquals(0, SharedPool.users());
    }

    /** Until the store is closed. */
    private static void ask(ForebayWindowStore store, int kind, AtomicLong latest, AtomicLong found) {
        try {
            while (true) {
                long now = latest.get();
                if (kind == 0) {
                    found.addAndGet(store.fetch(key("key0"), now / 3500 * 3500) == null ? 0 : 1);
                } else {
                    try (KeyValueIterator<Windowed<Bytes>, byte[]> some =
                            kind == 1 ? store.all() : store.fetch(key("key1"), key("key5"), 0, now)) {
                        while (some.hasNext()) {
                            found.addAndGet(some.next().value.length > 0 ? 1 : 0);
                        }
                    }
                }
            }
        } catch (InvalidStateStoreException closed) {
            assertTrue(!store.isOpen(), closed::toString);
        }
    }

    @Test
    void anIteratorOfAnotherThreadEndsWithTheStore() throws InterruptedException, ExecutionException {
        ForebayKeyValueStore store = Host.keyValues(Host.context(dir, Map.of()));
        for (int index = 0; index < 2000; index++) {
            store.put(key("key" + index), bytes("value"));
        }
        AtomicLong seen = new AtomicLong();
        ExecutorService threads = Executors.newFixedThreadPool(ASKERS);
        List<Future<?>> asked = new ArrayList<>();
        for (int asker = 0; asker < ASKERS; asker++) {
            asked.add(threads.submit(() -> {
                try {
                    while (true) {
                        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
                            all.forEachRemaining(entry -> seen.incrementAndGet());
                        }
                    }
                } catch (InvalidStateStoreException closed) {
                    assertTrue(!store.isOpen(), closed::toString);
                }
            }));
        }
        while (seen.get() < 10_000) {
            Thread.onSpinWait();
        }
        store.close();
        for (Future<?> one : asked) {
            one.get();
        }
        threads.shutdown();
        assertEquals(0, SharedPool.users());
    }
}
