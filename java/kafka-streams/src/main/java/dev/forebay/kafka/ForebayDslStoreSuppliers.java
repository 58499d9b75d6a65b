package dev.forebay.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** All stores of the DSL: {@code dsl.store.suppliers.class=dev.forebay.kafka.ForebayDslStoreSuppliers}. */
public final class ForebayDslStoreSuppliers implements DslStoreSuppliers {
    /** For Kafka Streams, which makes it by its name. */
    public ForebayDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return KeyValueSupplier.of(params.name(), format(params.dslStoreFormat()));
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return WindowSupplier.of(params.name(), format(params.dslStoreFormat()),
                params.retentionPeriod().toMillis(), params.windowSize().toMillis(), params.retainDuplicates(), params.emitStrategy().type());
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        Format format = params.storeFormat() == DslStoreFormat.HEADERS ? Format.HEADERS : Format.PLAIN;
        return SessionSupplier.of(params.name(), format, params.retentionPeriod().toMillis(), params.emitStrategy().type());
    }

    /** Of nothing, as windows of joins have it, they are as they were before there were formats. */
    private static Format format(DslStoreFormat format) {
        return switch (format == null ? DslStoreFormat.TIMESTAMPED : format) {
            case PLAIN -> Format.PLAIN;
            case TIMESTAMPED -> Format.TIMESTAMPED;
            case HEADERS -> Format.HEADERS;
        };
    }
}
