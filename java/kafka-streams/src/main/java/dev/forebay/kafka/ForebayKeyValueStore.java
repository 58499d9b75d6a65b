package dev.forebay.kafka;

import dev.forebay.Direction;
import dev.forebay.ForebayException;
import dev.forebay.Scan;
import dev.forebay.Table;
import dev.forebay.WriteBatch;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A key-value store: a table in key order. */
class ForebayKeyValueStore extends ForebayStore implements KeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(ForebayKeyValueStore.class);

    private Table table;

    ForebayKeyValueStore(String name, Format format) {
        super(name, format);
    }

    static ForebayKeyValueStore of(String name, Format format) {
        return switch (format) {
            case TIMESTAMPED -> new Timestamped(name);
            case HEADERS -> new Headers(name);
            default -> new ForebayKeyValueStore(name, format);
        };
    }

    /** Without the marker the host takes the timestamps away. */
    private static final class Timestamped extends ForebayKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name, Format.TIMESTAMPED);
        }
    }

    private static final class Headers extends ForebayKeyValueStore implements HeadersBytesStore {
        Headers(String name) {
            super(name, Format.HEADERS);
        }
    }

    @Override
    void open(long streamTime) {
        table = database.table(format.text);
    }

    @Override
    String metricsScope() {
        return ForebayStores.KEY_VALUE_SCOPE;
    }

    @Override
    long streamTime() {
        return -1;
    }

    @Override
    boolean restore(WriteBatch batch, byte[] key, byte[] value) {
        add(batch, key, value);
        return true;
    }

    private void add(WriteBatch batch, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(table, key);
        } else {
            batch.put(table, key, value);
        }
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        checkOpen();
        try {
            return table.get(key.get());
        } catch (ForebayException error) {
            throw told("reading", error);
        }
    }

    @Override
    public void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        checkOpen();
        write(() -> {
            if (value == null) {
                table.delete(key.get());
            } else {
                table.put(key.get(), value);
            }
        }, 1);
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] before = get(key);
        if (before == null && value != null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        checkOpen();
        write(() -> {
            WriteBatch batch = new WriteBatch();
            for (KeyValue<Bytes, byte[]> entry : entries) {
                add(batch, Objects.requireNonNull(entry.key, "key cannot be null").get(), entry.value);
            }
            database.write(batch);
        }, 0);
    }

    @Override
    public byte[] delete(Bytes key) {
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, Direction.FORWARD);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, Direction.BACKWARD);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, Direction direction) {
        checkOpen();
        if (from != null && to != null && from.compareTo(to) > 0) {
            LOG.warn(FROM_BEHIND_TO);
            return iterator(null);
        }
        // The store's ranges have their end in them, a table's do not.
        byte[] end = to == null ? null : Arrays.copyOf(to.get(), to.get().length + 1);
        return now(() -> table.range(from == null ? null : from.get(), end, direction));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, Direction.FORWARD);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, Direction.BACKWARD);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
        checkOpen();
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        return now(() -> table.prefix(serializer.serialize(null, prefix)));
    }

    /** The entries are those of the moment of the call. */
    private KeyValueIterator<Bytes, byte[]> now(Supplier<Scan> begin) {
        try {
            return iterator(new Entries.Part(begin.get()));
        } catch (ForebayException error) {
            throw told("reading", error);
        }
    }

    private KeyValueIterator<Bytes, byte[]> iterator(Entries.Part part) {
        Entries<Bytes> entries = new Entries<>(this, part, Collections.emptyIterator(), key -> true, Bytes::wrap);
        try {
            return keep(entries);
        } catch (InvalidStateStoreException closed) {
            entries.close();
            throw closed;
        }
    }

    @Override
    public long approximateNumEntries() {
        checkOpen();
        try {
            return table.approximateCount(null, null);
        } catch (ForebayException error) {
            throw told("counting", error);
        }
    }
}
