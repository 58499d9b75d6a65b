package dev.forebay.kafka;

import java.time.Duration;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Suppliers of stores, for {@code Materialized.as} and for the builders of {@code org.apache.kafka.streams.state.Stores}.
 * They have the names of those that {@code Stores} makes, and go in their place.
 */
public final class ForebayStores {
    static final String KEY_VALUE_SCOPE = "forebay";
    static final String WINDOW_SCOPE = "forebay-window";
    static final String SESSION_SCOPE = "forebay-session";
    /** Shorter ones would make many tables of little. */
    private static final long SEGMENT_MILLISECONDS_MIN = 60_000;

    private ForebayStores() {}

    /** A key-value store. */
    public static KeyValueBytesStoreSupplier persistentKeyValueStore(String name) {
        return KeyValueSupplier.of(name, Format.PLAIN);
    }

    /** A key-value store whose values have timestamps. */
    public static KeyValueBytesStoreSupplier persistentTimestampedKeyValueStore(String name) {
        return KeyValueSupplier.of(name, Format.TIMESTAMPED);
    }

    /** A key-value store whose values have timestamps and headers. */
    public static KeyValueBytesStoreSupplier persistentTimestampedKeyValueStoreWithHeaders(String name) {
        return KeyValueSupplier.of(name, Format.HEADERS);
    }

    /** A store of windows. */
    public static WindowBytesStoreSupplier persistentWindowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windows(name, Format.PLAIN, retention, windowSize, retainDuplicates);
    }

    /** A store of windows whose values have timestamps. */
    public static WindowBytesStoreSupplier persistentTimestampedWindowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windows(name, Format.TIMESTAMPED, retention, windowSize, retainDuplicates);
    }

    /** A store of windows whose values have timestamps and headers. */
    public static WindowBytesStoreSupplier persistentTimestampedWindowStoreWithHeaders(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return windows(name, Format.HEADERS, retention, windowSize, retainDuplicates);
    }

    /** A store of sessions. */
    public static SessionBytesStoreSupplier persistentSessionStore(String name, Duration retention) {
        return SessionSupplier.of(name, Format.PLAIN, retention.toMillis(), StrategyType.ON_WINDOW_UPDATE);
    }

    /** A store of sessions whose values have headers. */
    public static SessionBytesStoreSupplier persistentSessionStoreWithHeaders(String name, Duration retention) {
        return SessionSupplier.of(name, Format.HEADERS, retention.toMillis(), StrategyType.ON_WINDOW_UPDATE);
    }

    private static WindowBytesStoreSupplier windows(
            String name, Format format, Duration retention, Duration windowSize, boolean retainDuplicates) {
        return WindowSupplier.of(
                name, format, retention.toMillis(), windowSize.toMillis(), retainDuplicates, StrategyType.ON_WINDOW_UPDATE);
    }

    /** How long a time one table has: half of what is kept, as the built-in stores have it. */
    static long segmentInterval(long retention) {
        return Math.max(retention / 2, SEGMENT_MILLISECONDS_MIN);
    }
}
