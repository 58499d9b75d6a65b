package dev.forebay.kafka;

import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.text;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.test.InternalMockProcessorContext;

/** The changelog of a store of {@link KilledHost}: what committed transactions wrote, and what that of now has written. */
final class KilledChangelog {
    private static final HexFormat HEX = HexFormat.of();

    private final ForebayStore store;
    private final Keys keys;
    private final long retention;
    private final Supplier<List<KeyValue<byte[], byte[]>>> there;
    private final TopicPartition partition;
    private final List<KeyValue<byte[], byte[]>> records = new ArrayList<>();
    private final List<KeyValue<byte[], byte[]>> begun = new ArrayList<>();

    /**
     * @param keys where the time stands in keys whose entries expire, or null
     * @param there all entries of the store
     */
    KilledChangelog(ForebayStore store, Keys keys, long retention, Supplier<List<KeyValue<byte[], byte[]>>> there) {
        this.store = store;
        this.keys = keys;
        this.retention = retention;
        this.there = there;
        this.partition = new TopicPartition(store.name(), 0);
    }

    String name() {
        return store.name();
    }

    int size() {
        return records.size();
    }

    Long offset() {
        return store.committedOffset(partition);
    }

    void commit(long offset) {
        store.commit(Map.of(partition, offset));
    }

    /** A line of the file, if it is one of this. */
    void read(String[] parts) {
        if (parts[0].equals(name())) {
            records.add(KeyValue.pair(HEX.parseHex(parts[1]), parts[2].equals("-") ? null : bytes(parts[2])));
        }
    }

    void add(byte[] key, byte[] value) {
        begun.add(KeyValue.pair(key, value));
    }

    void write(StringBuilder lines) {
        for (KeyValue<byte[], byte[]> record : begun) {
            String value = record.value == null ? "-" : text(record.value);
            lines.append(name()).append(' ').append(HEX.formatHex(record.key)).append(' ').append(value).append('\n');
        }
    }

    /** Of the transaction. */
    void end() {
        records.addAll(begun);
        begun.clear();
    }

    void restore(InternalMockProcessorContext<?, ?> context, int from, int to) {
        context.restore(name(), records.subList(from, to));
    }

    /** Holds the store against so many records. */
    void check(String when, int count) {
        Map<String, String> expected = new TreeMap<>();
        long latest = -1;
        for (KeyValue<byte[], byte[]> record : records.subList(0, count)) {
            if (keys != null) {
                latest = Math.max(latest, keys.time(record.key));
            }
            if (record.value == null) {
                expected.remove(HEX.formatHex(record.key));
            } else {
                expected.put(HEX.formatHex(record.key), text(record.value));
            }
        }
        long oldest = latest - retention + 1;
        expected.keySet().removeIf(key -> keys != null && keys.time(HEX.parseHex(key)) < oldest);
        Map<String, String> found = new TreeMap<>();
        there.get().forEach(entry -> found.put(HEX.formatHex(entry.key), text(entry.value)));
        if (!expected.equals(found)) {
            throw new IllegalStateException(name() + " " + when + ": expected " + expected + ", found " + found);
        }
    }
}
