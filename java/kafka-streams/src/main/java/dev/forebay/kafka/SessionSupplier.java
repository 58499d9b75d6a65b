package dev.forebay.kafka;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;

/** Makes stores of sessions. */
class SessionSupplier extends SegmentedSupplier implements SessionBytesStoreSupplier {
    SessionSupplier(String name, Format format, long retention, StrategyType emits) {
        super(name, format, retention, emits);
        if (retention < 0) {
            throw new IllegalArgumentException("The sessions of store " + name + " are kept for " + retention + " ms; it is not negative.");
        }
    }

    static SessionSupplier of(String name, Format format, long retention, StrategyType emits) {
        return format == Format.HEADERS ? new Headers(name, retention, emits) : new SessionSupplier(name, format, retention, emits);
    }

    private static final class Headers extends SessionSupplier implements HeadersBytesStoreSupplier {
        Headers(String name, long retention, StrategyType emits) {
            super(name, Format.HEADERS, retention, emits);
        }
    }

    @Override
    public SessionStore<Bytes, byte[]> get() {
        return ForebaySessionStore.of(this);
    }

    @Override
    public String metricsScope() {
        return ForebayStores.SESSION_SCOPE;
    }
}
