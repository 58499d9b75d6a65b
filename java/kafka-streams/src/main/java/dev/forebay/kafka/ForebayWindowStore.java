package dev.forebay.kafka;

import dev.forebay.Direction;
import java.util.Collection;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.apache.kafka.streams.state.internals.WindowKeySchema;

/** A store of windows. */
class ForebayWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    private final long windowSize;
    private final boolean retainsDuplicates;
    /**
     * Keeps duplicates apart. It begins anew with each opening, as the number that the host puts into the changelog does: one
     * that went on here would not be the one that is restored.
     */
    private int sequence;

    ForebayWindowStore(WindowSupplier of) {
        super(of.name(), of.format(), Keys.WINDOW, of.retentionPeriod(), of.emits(), of.segmentIntervalMs());
        this.windowSize = of.windowSize();
        this.retainsDuplicates = of.retainDuplicates();
    }

    static ForebayWindowStore of(WindowSupplier supplier) {
        return switch (supplier.format()) {
            case TIMESTAMPED -> new Timestamped(supplier);
            case HEADERS -> new Headers(supplier);
            default -> new ForebayWindowStore(supplier);
        };
    }

    private static final class Timestamped extends ForebayWindowStore implements TimestampedBytesStore {
        Timestamped(WindowSupplier of) {
            super(of);
        }
    }

    private static final class Headers extends ForebayWindowStore implements TimestampedBytesStore, HeadersBytesStore {
        Headers(WindowSupplier of) {
            super(of);
        }
    }

    /** What {@code fetch} of one key gives. */
    private static final class Windows extends Entries<Long> implements WindowStoreIterator<byte[]> {
        Windows(ForebayStore store, Collection<Supplier<Part>> parts, Predicate<byte[]> isWithin) {
            super(store, parts.iterator(), isWithin, Keys.WINDOW::time);
        }
    }

    @Override
    String metricsScope() {
        return ForebayStores.WINDOW_SCOPE;
    }

    @Override
    public void put(Bytes key, byte[] value, long windowStart) {
        Objects.requireNonNull(key, "key cannot be null");
        if (retainsDuplicates) {
            if (value == null) {
                return; // There is no telling which of them.
            }
            sequence = (sequence + 1) & Integer.MAX_VALUE;
        }
        putBinary(WindowKeySchema.toStoreKeyBinary(key, windowStart, sequence).get(), value);
    }

    @Override
    public byte[] fetch(Bytes key, long windowStart) {
        Objects.requireNonNull(key, "key cannot be null");
        return getBinary(WindowKeySchema.toStoreKeyBinary(key, windowStart, sequence).get());
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return windows(key, from, to, Direction.FORWARD);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return windows(key, from, to, Direction.BACKWARD);
    }

    private WindowStoreIterator<byte[]> windows(Bytes key, long from, long to, Direction direction) {
        Objects.requireNonNull(key, "key cannot be null");
        return find(new Ask(key, key, living(from), to, to, direction), (parts, isWithin) -> new Windows(this, parts, isWithin));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long from, long to) {
        return windowed(keyFrom, keyTo, from, to, Direction.FORWARD);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo, long from, long to) {
        return windowed(keyFrom, keyTo, from, to, Direction.BACKWARD);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> windowed(Bytes keyFrom, Bytes keyTo, long from, long to, Direction direction) {
        return entries(new Ask(keyFrom, keyTo, living(from), to, to, direction), key -> WindowKeySchema.fromStoreBytesKey(key, windowSize));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long from, long to) {
        return windowed(null, null, from, to, Direction.FORWARD);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long from, long to) {
        return windowed(null, null, from, to, Direction.BACKWARD);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return fetchAll(0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return backwardFetchAll(0, Long.MAX_VALUE);
    }
}
