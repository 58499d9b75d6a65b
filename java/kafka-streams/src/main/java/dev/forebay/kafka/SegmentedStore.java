package dev.forebay.kafka;

import dev.forebay.Direction;
import dev.forebay.ForebayException;
import dev.forebay.Scan;
import dev.forebay.Table;
import dev.forebay.WriteBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Entries that expire, in tables by time. A table goes as a whole once all that is in it has expired: nothing is read for
 * that, and nothing rewritten.
 */
abstract class SegmentedStore extends ForebayStore {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentedStore.class);
    /** Between the format and the time that a table begins with. */
    private static final String SEPARATOR = "-";

    final Keys keys;
    private final long retention;
    private final long interval;
    /** By the number of the interval. */
    private final NavigableMap<Long, Table> segments = new ConcurrentSkipListMap<>();
    private volatile long streamTime;
    private Sensor expired;

    SegmentedStore(String name, Format format, Keys keys, long retention, long interval) {
        super(name, format);
        this.keys = keys;
        this.retention = retention;
        this.interval = interval;
    }

    @Override
    void open(long committedTime) {
        streamTime = committedTime;
        segments.clear();
        if (context.metrics() instanceof StreamsMetricsImpl metrics) {
            expired = TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(), context.taskId().toString(), metrics);
        }
        for (String table : database.tables()) {
            checkFormat(table);
            if (table.startsWith(format.text)) {
                long begin = Long.parseLong(table.substring(table.indexOf(SEPARATOR) + 1));
                segments.put(begin / interval, database.table(table));
            }
        }
        dropExpired();
    }

    @Override
    long streamTime() {
        return streamTime;
    }

    /** Where what has this time is written, made if need be; null if it has expired. */
    private Table segment(long time) {
        long segment = time / interval;
        if (segment < (streamTime - retention) / interval) {
            return null;
        }
        Table there = segments.get(segment);
        if (there == null) {
            there = database.table(format.text + SEPARATOR + segment * interval);
            segments.put(segment, there);
        }
        return there;
    }

    private void dropExpired() {
        NavigableMap<Long, Table> past = segments.headMap((streamTime - retention) / interval, false);
        // First out of sight, then away.
        for (var entry = past.pollFirstEntry(); entry != null; entry = past.pollFirstEntry()) {
            database.dropTable(entry.getValue().name());
        }
    }

    final void putBinary(byte[] binary, byte[] value) {
        checkOpen();
        long time = keys.time(binary);
        try {
            streamTime = Math.max(streamTime, time);
            Table segment = segment(time);
            dropExpired();
            if (segment == null) {
                tellExpired();
                return;
            }
            write(() -> {
                if (value == null) {
                    segment.delete(binary);
                } else {
                    segment.put(binary, value);
                }
            }, 1);
        } catch (ForebayException error) {
            throw told("writing to", error);
        }
    }

    private void tellExpired() {
        LOG.debug("A record for store {} has expired", name());
        if (expired != null && context instanceof InternalProcessorContext<?, ?> internal) {
            expired.record(1, internal.currentSystemTimeMs());
        }
    }

    final byte[] getBinary(byte[] binary) {
        checkOpen();
        long time = keys.time(binary);
        Table segment = time < oldest() ? null : segments.get(time / interval);
        try {
            return segment == null ? null : segment.get(binary);
        } catch (ForebayException.NotFound dropped) {
            return null;
        } catch (ForebayException error) {
            throw told("reading", error);
        }
    }

    /** The first time that has not expired. */
    private long oldest() {
        return streamTime - retention + 1;
    }

    @Override
    void beforeRestore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            streamTime = Math.max(streamTime, keys.time(record.key()));
        }
        dropExpired();
    }

    @Override
    boolean restore(WriteBatch batch, byte[] key, byte[] value) {
        Table segment = segment(keys.time(key));
        if (segment == null) {
            return false;
        }
        if (value == null) {
            batch.delete(segment, key);
        } else {
            batch.put(segment, key, value);
        }
        return true;
    }

    /** Whose entries are asked for: those of keys between two, within a time, and in which tables. */
    record Ask(Bytes keyFrom, Bytes keyTo, long from, long to, long segmentsTo, Direction direction) {
        boolean isOfOneKey() {
            return keyFrom != null && keyFrom.equals(keyTo);
        }
    }

    /** What an iterator over entries is made with. */
    @FunctionalInterface
    interface Maker<T extends Entries<?>> {
        T make(Collection<Supplier<Scan>> parts, Predicate<byte[]> isWithin);
    }

    final <T extends Entries<?>> T find(Ask ask, Maker<T> maker) {
        checkOpen();
        if (ask.keyFrom() != null && ask.keyTo() != null && ask.keyFrom().compareTo(ask.keyTo()) > 0) {
            LOG.warn(FROM_BEHIND_TO);
            return keep(maker.make(List.of(), key -> false));
        }
        long from = Math.max(ask.from(), oldest());
        byte[] lowest = ask.keyFrom() == null ? null : ask.isOfOneKey() ? keys.lowest(ask.keyFrom(), from) : ask.keyFrom().get();
        byte[] highest = ask.keyTo() == null ? null : ask.isOfOneKey() ? keys.highest(ask.keyTo(), ask.to()) : keys.highest(ask.keyTo());
        // The end of a table's range is not in it.
        byte[] end = highest == null ? null : Arrays.copyOf(highest, highest.length + 1);
        List<Supplier<Scan>> parts = new ArrayList<>();
        for (long segment : segmentsOf(from, ask)) {
            parts.add(() -> scan(segment, lowest, end, ask.direction()));
        }
        return keep(maker.make(parts,
                key -> keys.isBetween(key, ask.keyFrom(), ask.keyTo()) && keys.isWithin(key, from, ask.to())));
    }

    private Collection<Long> segmentsOf(long from, Ask ask) {
        if (ask.segmentsTo() < from) {
            return List.of();
        }
        NavigableMap<Long, Table> asked = segments.subMap(from / interval, true, ask.segmentsTo() / interval, true);
        return List.copyOf((ask.direction() == Direction.FORWARD ? asked : asked.descendingMap()).keySet());
    }

    /** Null for one that has expired meanwhile. */
    private Scan scan(long segment, byte[] from, byte[] end, Direction direction) {
        Table table = segments.get(segment);
        try {
            return table == null ? null : table.range(from, end, direction);
        } catch (ForebayException.NotFound dropped) {
            return null;
        }
    }

    final <K> Entries<K> entries(Ask ask, Function<byte[], K> named) {
        return find(ask, (parts, isWithin) -> new Entries<>(this, parts.iterator(), isWithin, named));
    }
}
