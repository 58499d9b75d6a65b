package dev.forebay.spark;

import java.util.function.LongSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.state.StateSchemaProvider;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreErrors;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreMetrics;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.TestStateSchemaProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;
import scala.Option;

/** What Spark calls otherwise before 4.1. */
final class Minor {
    static final Stamps.Reentry REENTRY = Stamps.Reentry.SAME_THREAD;

    private Minor() {}

    static CheckpointFileManager checkpointFiles(Path root, Configuration configuration) {
        return CheckpointFileManager.create(root, configuration);
    }

    static void close(CheckpointFileManager files) {
        // It holds nothing.
    }

    /** How many versions maintenance deletes at a time, or -1. */
    static int deletedMax(StateStoreConf conf) {
        return -1;
    }

    static java.nio.file.Path localDirectory(String name) {
        return Utils.createTempDir(Utils.getLocalDir(SparkFiles.conf()), name).toPath();
    }

    static void capture(Option<StateSchemaProvider> schemas, String family, StructType key, StructType value) {
        if (schemas.isDefined() && schemas.get() instanceof TestStateSchemaProvider captured) {
            captured.captureSchema(family, key, value, (short) 0, (short) 0);
        }
    }

    static void validate(UnsafeRow key, StructType keySchema, UnsafeRow value, StructType valueSchema, StateStoreId id,
            StateStoreConf conf) {
        StateStoreProvider.validateStateRowFormat(key, keySchema, value, valueSchema, conf);
    }

    static RuntimeException wrongTransition(String from, String to, String operation, StateStoreId id) {
        return new IllegalStateException("the state store " + id + " is " + from + ", and cannot be " + to + " for " + operation);
    }

    static RuntimeException wrongStamp(long given, long current) {
        return new IllegalStateException("another task has the state store since: its stamp is " + current + ", not " + given);
    }

    static Throwable outOfOrder(String text) {
        return StateStoreErrors.stateStoreOperationOutOfOrder(text);
    }

    static RuntimeException wrongLineage(String lineage, String text) {
        return new IllegalStateException("The lineage of checkpoints " + lineage + " is invalid: " + text);
    }

    static Throwable cannotLoad(Throwable error) {
        boolean isTold = error instanceof SparkThrowable told && told.getCondition() != null
                && told.getCondition().contains("CANNOT_LOAD_STATE_STORE");
        return isTold ? error : QueryExecutionErrors.cannotLoadStore(error);
    }

    static void reportCommit(long version, StateStoreId id, StateStoreConf conf, Configuration configuration) {
        // Nobody asks.
    }

    static void snapshotUploaded(StateStoreId id, String runId, StateStoreConf conf, long version) {
        // Nobody asks.
    }

    static StateStoreMetrics metrics(Metrics.Told told, StateStoreId id) {
        return new StateStoreMetrics(told.keys(), told.memoryBytes(), told.custom());
    }

    /** Spark's memory manager knows of no other memory yet. */
    static void tellMemory(LongSupplier used) {
        // Nobody asks.
    }
}
