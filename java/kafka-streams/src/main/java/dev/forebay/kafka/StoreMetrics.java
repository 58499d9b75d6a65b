package dev.forebay.kafka;

import dev.forebay.ForebayException;
import java.util.Map;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/**
 * Gauges of a store in the group {@code stream-state-metrics}. Where what they tell is the same, they have the names of the
 * built-in store's, so that dashboards find them.
 */
final class StoreMetrics {
    private static final long LATEST_MILLISECONDS = 1000;

    private StoreMetrics() {}

    static void add(StateStoreContext context, String scope, String store, StateDatabase database) {
        if (!(context.metrics() instanceof StreamsMetricsImpl metrics)) {
            return;
        }
        Latest latest = new Latest(database);
        Gauges gauges = (name, description, number) -> metrics.addStoreLevelMutableMetric(
                context.taskId().toString(), scope, store, name, description, RecordingLevel.INFO,
                (config, now) -> number.applyAsLong(latest.at(now)));
        gauges.add("estimate-num-keys", "Records, every version and every delete among them",
                stats -> sum(stats, "list_records", "unlisted_records"));
        gauges.add("size-all-mem-tables", "Bytes of write buffers and their order",
                stats -> sum(stats, "memory.write_buffers", "memory.buffer_indexes"));
        gauges.add("block-cache-usage", "Bytes of pages in memory", stats -> sum(stats, "memory.page_cache"));
        gauges.add("estimate-table-readers-mem", "Bytes of filters, and of what finds pages",
                stats -> sum(stats, "memory.filters", "memory.page_search"));
        gauges.add("total-sst-files-size", "Bytes on disk", stats -> sum(stats, "disk_bytes"));
        gauges.add("estimate-pending-compaction-bytes", "Bytes that wait for a merge", stats -> sum(stats, "debt_bytes"));
        gauges.add("forebay-memory-bytes", "The store's part of the process's one memory", stats -> sum(stats, "memory.total"));
    }

    private interface Gauges {
        void add(String name, String description, ToLongFunction<Map<String, Number>> number);
    }

    /** Also of a store that no wrapper of the host's stands around, which would do it. */
    static void remove(StateStoreContext context, String store) {
        if (context.metrics() instanceof StreamsMetricsImpl metrics) {
            metrics.removeAllStoreLevelSensorsAndMetrics(context.taskId().toString(), store);
        }
    }

    /** What all gauges of a store tell at a time is asked for once. */
    private static final class Latest {
        private final StateDatabase database;
        private long asked = Long.MIN_VALUE;
        private Map<String, Number> stats = Map.of();

        Latest(StateDatabase database) {
            this.database = database;
        }

        synchronized Map<String, Number> at(long milliseconds) {
            if (milliseconds / LATEST_MILLISECONDS != asked) {
                asked = milliseconds / LATEST_MILLISECONDS;
                try {
                    stats = database.stats();
                } catch (ForebayException error) {
                    // Mostly of one that was closed meanwhile. A reporter has no use for an exception.
                    stats = Map.of();
                }
            }
            return stats;
        }
    }

    private static long sum(Map<String, Number> stats, String... names) {
        long sum = 0;
        for (String name : names) {
            sum += stats.getOrDefault(name, 0).longValue();
        }
        return sum;
    }
}
