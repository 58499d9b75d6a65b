package dev.forebay.spark;

import java.util.UUID;
import java.util.function.LongSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.UnifiedMemoryManager;
import org.apache.spark.memory.UnmanagedMemoryConsumer;
import org.apache.spark.memory.UnmanagedMemoryConsumerId;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.state.StateSchemaProvider;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreErrors;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreInstanceMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreInvalidStateMachineTransition;
import org.apache.spark.sql.execution.streaming.state.StateStoreMetrics;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider$;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;
import org.apache.spark.sql.execution.streaming.state.StateStoreSnapshotLastUploadInstanceMetric;
import org.apache.spark.sql.execution.streaming.state.TestStateSchemaProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/** What Spark calls otherwise since 4.1. */
final class Minor {
    private static final Logger LOG = LoggerFactory.getLogger(Minor.class);

    static final Stamps.Reentry REENTRY = Stamps.Reentry.REFUSED;

    private Minor() {}

    static CheckpointFileManager checkpointFiles(Path root, Configuration configuration) {
        return CheckpointFileManager.create(root, configuration);
    }

    static void close(CheckpointFileManager files) {
        files.close();
    }

    /** How many versions maintenance deletes at a time, or -1. */
    static int deletedMax(StateStoreConf conf) {
        return conf.maxVersionsToDeletePerMaintenance();
    }

    static java.nio.file.Path localDirectory(String name) {
        return Utils.createExecutorLocalTempDir(SparkFiles.conf(), name).toPath();
    }

    static void capture(Option<StateSchemaProvider> schemas, String family, StructType key, StructType value) {
        if (schemas.isDefined() && schemas.get() instanceof TestStateSchemaProvider captured) {
            captured.captureSchema(family, key, value, (short) 0, (short) 0);
        }
    }

    static void validate(UnsafeRow key, StructType keySchema, UnsafeRow value, StructType valueSchema, StateStoreId id,
            StateStoreConf conf) {
        StateStoreProvider.validateStateRowFormat(key, keySchema, value, valueSchema, id, conf);
    }

    static RuntimeException wrongTransition(String from, String to, String operation, StateStoreId id) {
        return Raise.it(StateStoreErrors.invalidStateMachineTransition(from, to, operation, id));
    }

    static RuntimeException wrongStamp(long given, long current) {
        return Raise.it(StateStoreErrors.invalidStamp(given, current));
    }

    static Throwable outOfOrder(String text) {
        return StateStoreErrors.stateStoreOperationOutOfOrder(text);
    }

    static RuntimeException wrongLineage(String lineage, String text) {
        return Raise.it(QueryExecutionErrors.invalidCheckpointLineage(lineage, text));
    }

    static Throwable cannotLoad(Throwable error) {
        return error instanceof StateStoreInvalidStateMachineTransition ? error : StateStoreErrors.cannotLoadStore(error);
    }

    static void reportCommit(long version, StateStoreId id, StateStoreConf conf, Configuration configuration) {
        if (conf.commitValidationEnabled()) {
            StateStore.reportCommitToCoordinator(version, id, configuration);
        }
    }

    /**
     * A report for those who watch, which nothing hangs on: a session that only reads has no coordinator, and Spark's way to
     * ask for one fails there.
     */
    static void snapshotUploaded(StateStoreId id, String runId, StateStoreConf conf, long version) {
        if (!conf.reportSnapshotUploadLag()) {
            return;
        }
        try {
            var coordinator = StateStoreProvider$.MODULE$.coordinatorRef();
            if (coordinator.isDefined()) {
                StateStoreProviderId provider = new StateStoreProviderId(id, UUID.fromString(runId));
                coordinator.get().snapshotUploaded(provider, version, System.currentTimeMillis());
            }
        } catch (Exception error) {
            if (error instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            }
            LOG.info("The coordinator was not told of the snapshot of version {} of {}", version, id, error);
        }
    }

    static StateStoreMetrics metrics(Metrics.Told told, StateStoreId id) {
        StateStoreInstanceMetric uploaded =
                SNAPSHOT_UPLOADED.withNewId(id.partitionId(), id.storeName());
        java.util.Map<StateStoreInstanceMetric, Object> instances =
                told.numbers().isEmpty() ? java.util.Map.of() : java.util.Map.of(uploaded, told.snapshotUploaded());
        Map<StateStoreInstanceMetric, Object> instance = Map.from(CollectionConverters.asScala(instances));
        return new StateStoreMetrics(told.keys(), told.memoryBytes(), told.custom(), instance);
    }

    static final StateStoreInstanceMetric SNAPSHOT_UPLOADED =
            new StateStoreSnapshotLastUploadInstanceMetric(Option.empty(), "default");

    /** Spark takes what the pool holds off its memory outside the heap, where it asks for that from time to time. */
    static void tellMemory(LongSupplier used) {
        UnifiedMemoryManager.registerUnmanagedMemoryConsumer(new UnmanagedMemoryConsumer() {
            private final UnmanagedMemoryConsumerId id = new UnmanagedMemoryConsumerId("Forebay", UUID.randomUUID().toString());

            @Override
            public UnmanagedMemoryConsumerId unmanagedMemoryConsumerId() {
                return id;
            }

            @Override
            public MemoryMode memoryMode() {
                return MemoryMode.OFF_HEAP;
            }

            @Override
            public long getMemBytesUsed() {
                return used.getAsLong();
            }
        });
    }
}
