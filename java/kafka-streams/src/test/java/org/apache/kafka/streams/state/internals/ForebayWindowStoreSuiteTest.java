package org.apache.kafka.streams.state.internals;

import dev.forebay.kafka.ForebayStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's own suite for stores of windows. It stands in Kafka's package, as what it overrides is not public. */
public class ForebayWindowStoreSuiteTest extends AbstractWindowBytesStoreTest {
    private int built;

    /** The suite has two of them open in one folder, which have names of their own elsewhere. */
    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retention, long windowSize, boolean retainDuplicates, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.windowStoreBuilder(
                        ForebayStores.persistentWindowStore(
                                "window-store-" + built++, Duration.ofMillis(retention), Duration.ofMillis(windowSize), retainDuplicates),
                        keySerde,
                        valueSerde)
                .build();
    }
}
