package dev.forebay;

import java.lang.ref.Reference;

/** Groups in memory that is bounded, and beyond that in files of a directory. */
public final class Aggregator extends Groups {
    /** No groups yet. */
    public Aggregator(AggregatorOptions options) {
        super(null, made(options));
    }

    private static long made(AggregatorOptions options) {
        ArrowStream schema = options.schema();
        try {
            return newAggregator(options.items(), options.keys(), options.aggs(), schema == null ? 0 : schema.number);
        } finally {
            Reference.reachabilityFence(schema);
        }
    }

    /** How many bytes of memory they take now. */
    public long memoryBytes() {
        try {
            return aggregatorMemory(number);
        } finally {
            fence();
        }
    }
}
