package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import org.apache.spark.sql.execution.streaming.state.WrappedReadStateStore;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** What Spark calls since 4.3. */
class MaintenanceTest {
    private static final StructType SCHEMA = new StructType().add("n", DataTypes.LongType);

    @TempDir
    Path checkpoints;

    private ForebayStateStoreProvider provider(boolean hasFamilies) {
        SQLConf conf = new SQLConf();
        conf.setConfString("spark.sql.streaming.stateStore.minDeltasForSnapshot", "2");
        conf.setConfString("spark.sql.streaming.stateStore.forebay.fileGraceMs", "0");
        conf.setConfString("spark.sql.streaming.minBatchesToRetain", "3");
        conf.setConfString("spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint", "0");
        Configuration hadoop = new Configuration();
        hadoop.set("sql.streaming.runId", UUID.randomUUID().toString());
        ForebayStateStoreProvider provider = new ForebayStateStoreProvider();
        provider.init(new StateStoreId(checkpoints.toUri().toString(), 0, 0, "default"), SCHEMA, SCHEMA,
                new NoPrefixKeyStateEncoderSpec(SCHEMA), hasFamilies, StateStoreConf.apply(conf), hadoop, false, Option.empty());
        return provider;
    }

    private static UnsafeRow row(long number) {
        return UnsafeProjection.create(SCHEMA).apply(new GenericInternalRow(new Object[] {number})).copy();
    }

    private static void batch(ForebayStateStoreProvider provider, long version) {
        StateStore store = provider.getStore(version, Option.empty(), false, false);
        store.put(row(version % 7), row(version), "default");
        assertEquals(version + 1, store.commit());
    }

    private long count(String name) throws IOException {
        try (Stream<Path> walk = Files.walk(checkpoints)) {
            return walk.filter(path -> path.getFileName().toString().matches(name)).count();
        }
    }

    @Test
    void snapshotsAreUploadedAndOldVersionsDeletedByTwoCalls() throws Exception {
        ForebayStateStoreProvider provider = provider(false);
        for (long version = 0; version < 12; version++) {
            batch(provider, version);
            provider.doCleanupMaintenance();
        }
        assertEquals(0, count(".*\\.forebay"));
        for (long version = 12; version < 24; version++) {
            batch(provider, version);
            provider.doSnapshotMaintenance();
        }
        assertEquals(7, count(".*\\.forebay"));
        assertEquals(24, count("\\d+\\.changelog"));
        provider.doCleanupMaintenance();
        assertTrue(count(".*\\.forebay") < 4 && count("\\d+\\.changelog") < 6);
        provider.close();
    }

    @Test
    void bothCallsAndTasksDoNotMeet() {
        ForebayStateStoreProvider provider = provider(false);
        CompletableFuture<Void> tasks = CompletableFuture.runAsync(() -> {
            for (long version = 0; version < 60; version++) {
                batch(provider, version);
            }
        });
        CompletableFuture<Void> uploads = CompletableFuture.runAsync(() -> {
            while (!tasks.isDone()) {
                provider.doSnapshotMaintenance();
            }
        });
        while (!tasks.isDone()) {
            provider.doCleanupMaintenance();
        }
        tasks.join();
        uploads.join();
        provider.doMaintenance();
        provider.close();
        ForebayStateStoreProvider other = provider(false);
        for (long version = 58; version <= 60; version++) {
            var read = other.getReadStore(version, Option.empty());
            assertEquals(row(version - 1), read.get(row((version - 1) % 7), "default"));
            read.release();
        }
        other.close();
    }

    @Test
    void sparkClosesItOnce() {
        ForebayStateStoreProvider provider = provider(false);
        batch(provider, 0);
        StateStoreProviderId id = new StateStoreProviderId(provider.stateStoreId(), UUID.randomUUID());
        provider.maintenanceLock().writeLock().lock();
        assertFalse(provider.unloaded());
        StateStore.closeProvider(id, provider);
        assertTrue(provider.unloaded());
        StateStore.closeProvider(id, provider);
        provider.maintenanceLock().writeLock().unlock();
        assertThrows(Exception.class, provider::doSnapshotMaintenance);
        assertThrows(Exception.class, provider::doCleanupMaintenance);
    }

    @Test
    void aReaderRegistersFamilies() {
        ForebayStateStoreProvider provider = provider(true);
        NoPrefixKeyStateEncoderSpec spec = new NoPrefixKeyStateEncoderSpec(SCHEMA);
        StateStore store = provider.getStore(0, Option.empty(), false, false);
        store.createColFamilyIfAbsent("$there", SCHEMA, SCHEMA, spec, false, true);
        store.put(row(1), row(2), "$there");
        store.commit();
        ForebayStateStoreProvider other = provider(true);
        var read = new WrappedReadStateStore(other.getStore(1, Option.empty(), false, false));
        read.registerColFamily("$there", SCHEMA, SCHEMA, spec, false, true);
        read.registerColFamily("$absent", SCHEMA, SCHEMA, spec, false, true);
        assertEquals(row(2), read.get(row(1), "$there"));
        assertFalse(read.iterator("$absent").hasNext());
        read.abort();
        var next = other.getReadStore(1, Option.empty());
        assertFalse(next.allColumnFamilyNames().contains("$absent"));
        next.release();
        provider.close();
        other.close();
    }

    @Test
    void whatIsThereIsToldFromWhatCame() {
        var gauges = CollectionConverters.asJava(new ForebayStateStoreProvider().supportedCustomMetrics()).stream()
                .filter(StateStoreCustomMetric::isSnapshot).map(StateStoreCustomMetric::name).toList();
        assertTrue(gauges.contains("rocksdbSstFileSize") && gauges.contains("forebayNumExternalColumnFamilies"), gauges.toString());
        assertFalse(gauges.contains("rocksdbBytesCopied"), gauges.toString());
    }
}
