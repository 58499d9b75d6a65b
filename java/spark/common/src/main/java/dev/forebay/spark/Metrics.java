package dev.forebay.spark;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomSizeMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomSumMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomTimingMetric;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a store tells Spark of a commit. Dashboards know the names that Spark's own persistent store has, so what means the
 * same has such a name beside ours.
 */
final class Metrics {
    private enum Kind {
        SUM,
        BYTES,
        MILLISECONDS
    }

    /** A metric, and the name that Spark's own store has for the same. */
    enum Name {
        GET_MILLISECONDS(Kind.MILLISECONDS, "GetLatency", "total get call latency"),
        PUT_MILLISECONDS(Kind.MILLISECONDS, "PutLatency", "total put call latency"),
        GETS(Kind.SUM, "GetCount", "number of get calls"),
        PUTS(Kind.SUM, "PutCount", "number of put calls"),
        FLUSH_MILLISECONDS(Kind.MILLISECONDS, "CommitFlushLatency", "commit - flush time"),
        CHECKPOINT_MILLISECONDS(Kind.MILLISECONDS, "CommitCheckpointLatency", "commit - checkpoint time"),
        SYNC_MILLISECONDS(Kind.MILLISECONDS, "CommitFileSyncLatencyMs", "commit - file sync to external storage time"),
        CHANGELOG_MILLISECONDS(Kind.MILLISECONDS, "ChangeLogWriterCommitLatencyMs", "commit - changelog commit time"),
        BYTES_COPIED(Kind.BYTES, "BytesCopied", "snapshots - bytes copied"),
        FILES_COPIED(Kind.SUM, "FilesCopied", "snapshots - files copied"),
        FILES_REUSED(Kind.SUM, "FilesReused", "snapshots - files reused"),
        LOAD_MILLISECONDS(Kind.MILLISECONDS, "LoadLatencyMs", "load - time taken to load the store"),
        SNAPSHOT_LOAD_MILLISECONDS(Kind.MILLISECONDS, "LoadFromSnapshotLatencyMs", "load from a snapshot - time taken"),
        REPLAY_MILLISECONDS(Kind.MILLISECONDS, "ReplayChangeLogLatencyMs", "load - time taken to replay changelogs"),
        REPLAYED_FILES(Kind.BYTES, "NumReplayChangelogFiles", "load - number of changelogs replayed"),
        FILE_BYTES(Kind.BYTES, "SstFileSize", "bytes of the local database's files"),
        STALL_MILLISECONDS(Kind.MILLISECONDS, "WriterStallLatencyMs", "write - writer wait time for merges"),
        INTERNAL_KEYS(Kind.BYTES, "NumInternalColFamiliesKeys", "number of keys of internal column families"),
        FAMILIES(Kind.BYTES, "NumExternalColumnFamilies", "number of external column families"),
        INTERNAL_FAMILIES(Kind.BYTES, "NumInternalColumnFamilies", "number of internal column families");

        private final StateStoreCustomMetric ours;
        private final StateStoreCustomMetric theirs;

        Name(Kind kind, String name, String text) {
            ours = metric(kind, "forebay" + name, "Forebay: " + text);
            theirs = metric(kind, "rocksdb" + name, "Forebay, by the name of RocksDB: " + text);
        }

        private static StateStoreCustomMetric metric(Kind kind, String name, String text) {
            return switch (kind) {
                case SUM -> new StateStoreCustomSumMetric(name, text);
                case BYTES -> new StateStoreCustomSizeMetric(name, text);
                case MILLISECONDS -> new StateStoreCustomTimingMetric(name, text);
            };
        }
    }

    /** The numbers of a commit. */
    record Told(long keys, long memoryBytes, Map<Name, Long> numbers, long snapshotUploaded) {
        scala.collection.immutable.Map<StateStoreCustomMetric, Object> custom() {
            Map<StateStoreCustomMetric, Object> all = new HashMap<>();
            numbers.forEach((name, number) -> {
                all.put(name.ours, number);
                all.put(name.theirs, number);
            });
            return scala.collection.immutable.Map.from(CollectionConverters.asScala(all));
        }
    }

    private final Map<Name, Long> numbers = new LinkedHashMap<>();

    private Metrics() {}

    static scala.collection.immutable.Seq<StateStoreCustomMetric> all() {
        java.util.List<StateStoreCustomMetric> all = new java.util.ArrayList<>();
        for (Name name : Name.values()) {
            all.add(name.ours);
            all.add(name.theirs);
        }
        return CollectionConverters.asScala(all).toSeq();
    }

    static Metrics make() {
        return new Metrics();
    }

    void set(Name name, long number) {
        numbers.put(name, number);
    }

    void add(Name name, long number) {
        numbers.merge(name, number, Long::sum);
    }

    void clear() {
        numbers.clear();
    }

    void addTo(Map<Name, Long> out) {
        out.putAll(numbers);
    }
}
