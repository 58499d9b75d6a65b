package dev.forebay.kafka;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** Makes stores of windows. */
class WindowSupplier extends SegmentedSupplier implements WindowBytesStoreSupplier {
    private final long windowSize;
    private final boolean retainsDuplicates;

    WindowSupplier(String name, Format format, long retention, long windowSize, boolean retainsDuplicates, StrategyType emits) {
        super(name, format, retention, emits);
        this.windowSize = windowSize;
        this.retainsDuplicates = retainsDuplicates;
        if (windowSize < 0 || retention < windowSize) {
            throw new IllegalArgumentException("The windows of store " + name + " are of " + windowSize + " ms, and are kept for "
                    + retention + " ms; the first is not negative, and the second not less.");
        }
    }

    static WindowSupplier of(
            String name, Format format, long retention, long windowSize, boolean retainsDuplicates, StrategyType emits) {
        return format == Format.HEADERS
                ? new Headers(name, retention, windowSize, retainsDuplicates, emits)
                : new WindowSupplier(name, format, retention, windowSize, retainsDuplicates, emits);
    }

    /** The marker stands on the supplier, too. */
    private static final class Headers extends WindowSupplier implements HeadersBytesStoreSupplier {
        Headers(String name, long retention, long windowSize, boolean retainsDuplicates, StrategyType emits) {
            super(name, Format.HEADERS, retention, windowSize, retainsDuplicates, emits);
        }
    }

    @Override
    public WindowStore<Bytes, byte[]> get() {
        return ForebayWindowStore.of(this);
    }

    @Override
    public String metricsScope() {
        return ForebayStores.WINDOW_SCOPE;
    }

    @Override
    public long windowSize() {
        return windowSize;
    }

    @Override
    public boolean retainDuplicates() {
        return retainsDuplicates;
    }
}
