package dev.forebay.kafka;

import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;

/** Makes key-value stores. */
class KeyValueSupplier implements KeyValueBytesStoreSupplier {
    private final String name;
    private final Format format;

    KeyValueSupplier(String name, Format format) {
        this.name = Objects.requireNonNull(name, "name cannot be null");
        this.format = format;
    }

    static KeyValueSupplier of(String name, Format format) {
        return format == Format.HEADERS ? new Headers(name) : new KeyValueSupplier(name, format);
    }

    private static final class Headers extends KeyValueSupplier implements HeadersBytesStoreSupplier {
        Headers(String name) {
            super(name, Format.HEADERS);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public KeyValueStore<Bytes, byte[]> get() {
        return ForebayKeyValueStore.of(name, format);
    }

    @Override
    public String metricsScope() {
        return ForebayStores.KEY_VALUE_SCOPE;
    }
}
