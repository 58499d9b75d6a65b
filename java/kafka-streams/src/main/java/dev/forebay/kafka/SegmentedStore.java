package dev.forebay.kafka;

import dev.forebay.Direction;
import dev.forebay.ForebayException;
import dev.forebay.WriteBatch;
import dev.forebay.kafka.Segments.Segment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Entries that expire, in tables by time. A table goes as a whole once all that is in it has expired: nothing is read for
 * that, and nothing rewritten.
 *
 * <p>Where the host forwards windows once they are closed, it asks for those of a time, of all keys: there {@link Segments}
 * has a second table of each.
 */
abstract class SegmentedStore extends ForebayStore {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentedStore.class);

    final Keys keys;
    private final long retention;
    private final StrategyType emits;
    private final long interval;
    private Segments segments;
    private volatile long streamTime;
    private Sensor expired;

    SegmentedStore(String name, Format format, Keys keys, long retention, StrategyType emits, long interval) {
        super(name, format);
        this.keys = keys;
        this.retention = retention;
        this.emits = emits;
        this.interval = interval;
    }

    @Override
    void open(long committedTime) {
        streamTime = committedTime;
        if (context.metrics() instanceof StreamsMetricsImpl metrics) {
            expired = TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(), context.taskId().toString(), metrics);
        }
        segments = new Segments(database, format, keys, interval, emits == StrategyType.ON_WINDOW_CLOSE, streamTime - retention);
        dropExpired();
    }

    @Override
    long streamTime() {
        return streamTime;
    }

    /** Where what has this time is written, made if need be; null if it has expired. */
    private Segment segment(long time) {
        return segments.at(time, streamTime - retention);
    }

    private void dropExpired() {
        segments.dropBefore(streamTime - retention);
    }

    final void putBinary(byte[] binary, byte[] value) {
        checkOpen();
        try {
            streamTime = Math.max(streamTime, keys.time(binary));
            Segment segment = segment(keys.time(binary));
            dropExpired();
            if (segment == null) {
                tellExpired();
            } else if (segment.byTime() != null) {
                WriteBatch batch = new WriteBatch();
                segment.add(batch, keys, binary, value);
                write(() -> database.write(batch), 0);
            } else if (value == null) {
                write(() -> segment.entries().delete(binary), 1);
            } else {
                write(() -> segment.entries().put(binary, value), 1);
            }
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
        Segment segment = time < oldest() ? null : segments.at(time);
        try {
            return segment == null ? null : segment.entries().get(binary);
        } catch (ForebayException.NotFound dropped) {
            return null;
        } catch (ForebayException error) {
            throw told("reading", error);
        }
    }

    /** The first time that has not expired. What the host forwards once it is closed is still found when it closes. */
    private long oldest() {
        long first = streamTime - retention + 1;
        return emits == StrategyType.ON_WINDOW_CLOSE && keys == Keys.WINDOW ? first - 1 : first;
    }

    /** A time, or what has not expired of it. */
    final long living(long from) {
        return Math.max(from, oldest());
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
        Segment segment = segment(keys.time(key));
        if (segment != null) {
            segment.add(batch, keys, key, value);
        }
        return segment != null;
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
        T make(Collection<Supplier<Entries.Part>> parts, Predicate<byte[]> isWithin);
    }

    final <T extends Entries<?>> T find(Ask ask, Maker<T> maker) {
        checkOpen();
        if (ask.keyFrom() != null && ask.keyTo() != null && ask.keyFrom().compareTo(ask.keyTo()) > 0) {
            LOG.warn(FROM_BEHIND_TO);
            return keep(maker.make(List.of(), key -> false));
        }
        Predicate<byte[]> isWithin =
                key -> keys.isBetween(key, ask.keyFrom(), ask.keyTo()) && keys.isWithin(key, ask.from(), ask.to());
        return keep(maker.make(isByTime(ask) ? partsByTime(ask) : partsByKey(ask), isWithin));
    }

    private boolean isByTime(Ask ask) {
        return emits == StrategyType.ON_WINDOW_CLOSE && ask.keyFrom() == null && ask.keyTo() == null;
    }

    private List<Supplier<Entries.Part>> partsByKey(Ask ask) {
        Bytes first = ask.keyFrom();
        Bytes last = ask.keyTo();
        byte[] lowest = first == null ? null : ask.isOfOneKey() ? keys.lowest(first, ask.from()) : first.get();
        byte[] highest = last == null ? null : ask.isOfOneKey() ? keys.highest(last, ask.to()) : keys.highest(last);
        // The end of a table's range is not in it.
        byte[] end = highest == null ? null : Arrays.copyOf(highest, highest.length + 1);
        return parts(ask, segment -> new Entries.Part(segment.entries().range(lowest, end, ask.direction())));
    }

    private List<Supplier<Entries.Part>> partsByTime(Ask ask) {
        byte[] begin = Keys.time(Math.max(0, ask.from()));
        byte[] end = ask.segmentsTo() == Long.MAX_VALUE ? null : Keys.time(ask.segmentsTo() + 1);
        return parts(ask, segment -> new Entries.Part(segment.byTime().range(begin, end, ask.direction())) {
            @Override
            byte[] key() {
                return keys.ofTime(scan.key());
            }

            @Override
            byte[] value(byte[] key) {
                try {
                    return segment.entries().get(key);
                } catch (ForebayException.NotFound dropped) {
                    return null;
                }
            }
        });
    }

    /** Those of the segments that are asked for; null for one that has expired by then. */
    private List<Supplier<Entries.Part>> parts(Ask ask, Function<Segment, Entries.Part> begin) {
        List<Supplier<Entries.Part>> parts = new ArrayList<>();
        for (long first : segmentsOf(ask)) {
            parts.add(() -> {
                Segment segment = segments.beginning(first);
                try {
                    return segment == null ? null : begin.apply(segment);
                } catch (ForebayException.NotFound dropped) {
                    return null;
                }
            });
        }
        return parts;
    }

    private Collection<Long> segmentsOf(Ask ask) {
        if (ask.segmentsTo() < ask.from() || ask.segmentsTo() < 0) {
            return List.of();
        }
        return segments.within(ask.from(), ask.segmentsTo(), ask.direction());
    }

    final <K> Entries<K> entries(Ask ask, Function<byte[], K> named) {
        return find(ask, (parts, isWithin) -> new Entries<>(this, parts.iterator(), isWithin, named));
    }
}
