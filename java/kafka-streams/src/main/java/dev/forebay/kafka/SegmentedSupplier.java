package dev.forebay.kafka;

import java.util.Objects;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;

/** What a supplier of windows and one of sessions have in common: stores whose entries expire, in tables by time. */
abstract class SegmentedSupplier {
    private final String name;
    private final Format format;
    private final long retention;
    private final StrategyType emits;

    SegmentedSupplier(String name, Format format, long retention, StrategyType emits) {
        this.name = Objects.requireNonNull(name, "name cannot be null");
        this.format = format;
        this.retention = retention;
        this.emits = emits;
    }

    StrategyType emits() {
        return emits;
    }

    Format format() {
        return format;
    }

    public String name() {
        return name;
    }

    public long segmentIntervalMs() {
        return ForebayStores.segmentInterval(retention);
    }

    public long retentionPeriod() {
        return retention;
    }
}
