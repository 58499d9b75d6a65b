package dev.forebay.spark;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomMetric;
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
        /** What is there after a commit, and no part of what a sum of commits is. */
        GAUGE,
        MILLISECONDS
    }

    /** A metric, and the name that Spark's own store has for the same. */
    enum Name {
        GET_MILLISECONDS(Kind.MILLISECONDS, "GetLatency", "total get call latency"),
        PUT_MILLISECONDS(Kind.MILLISECONDS, "PutLatency", "total put call latency"),
        GETS(Kind.SUM, "GetCount", "number of get calls"),
        PUTS(Kind.SUM, "PutCount", "number of put calls"),
        FLUSH_MILLISECONDS(Kind.MILLISECONDS, "CommitFlushLatency", "commit - flush time"),
        FORCED_SNAPSHOTS(Kind.SUM, "ForceSnapshotCount", "commit - number of stores whose commit had to have a snapshot"),
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
        SNAPSHOTS_PASSED_OVER(Kind.SUM, "NumSnapshotsAutoRepaired",
                "load - number of snapshots passed over, as they were damaged or not whole"),
        FILE_BYTES(Kind.GAUGE, "SstFileSize", "bytes of the local database's files"),
        STALL_MILLISECONDS(Kind.MILLISECONDS, "WriterStallLatencyMs", "write - writer wait time for merges"),
        INTERNAL_KEYS(Kind.GAUGE, "NumInternalColFamiliesKeys", "number of keys of internal column families"),
        FAMILIES(Kind.GAUGE, "NumExternalColumnFamilies", "number of external column families"),
        INTERNAL_FAMILIES(Kind.GAUGE, "NumInternalColumnFamilies", "number of internal column families");

        private final StateStoreCustomMetric ours;
        private final StateStoreCustomMetric theirs;

        Name(Kind kind, String name, String text) {
            ours = metric(kind, "forebay" + name, "Forebay: " + text);
            theirs = metric(kind, "rocksdb" + name, "Forebay, by the name of RocksDB: " + text);
        }

        private static StateStoreCustomMetric metric(Kind kind, String name, String text) {
            return switch (kind) {
                case SUM -> new StateStoreCustomSumMetric(name, text);
                case BYTES -> new SizeMetric(name, text, false);
                case GAUGE -> new SizeMetric(name, text, true);
                case MILLISECONDS -> new StateStoreCustomTimingMetric(name, text);
            };
        }
    }

    /** The numbers of a commit. */
    record Told(long keys, long memoryBytes, Map<Name, Long> numbers, long snapshotUploaded) {
        static Told of(StateDatabase database, Uploads uploads, List<Metrics> counted) {
            Map<Name, Long> numbers = new EnumMap<>(Name.class);
            for (Name name : Name.values()) {
                numbers.put(name, 0L);
            }
            counted.forEach(metrics -> numbers.putAll(metrics.numbers));
            Snapshots.Upload upload = uploads.last();
            numbers.put(Name.BYTES_COPIED, upload.bytesCopied());
            numbers.put(Name.FILES_COPIED, upload.filesCopied());
            numbers.put(Name.FILES_REUSED, upload.filesReused());
            long internal = database.families().stream().filter(family -> family.shape.internal()).count();
            numbers.put(Name.INTERNAL_KEYS, database.counts().internalKeys());
            numbers.put(Name.INTERNAL_FAMILIES, internal);
            numbers.put(Name.FAMILIES, database.families().size() - internal);
            Map<String, Number> stats = database.stats();
            numbers.put(Name.FILE_BYTES, stats.getOrDefault("disk_bytes", 0).longValue());
            numbers.put(Name.STALL_MILLISECONDS, database.stallMillisecondsMore(stats));
            long memoryBytes = stats.getOrDefault("memory.total", 0).longValue();
            return new Told(database.counts().keys(), memoryBytes, numbers, uploads.versionMax());
        }

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
        List<StateStoreCustomMetric> all = new ArrayList<>();
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
}
