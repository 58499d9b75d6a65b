package dev.forebay.spark;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateSchemaProvider;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreErrors;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * A store's provider but for what versions of Spark call differently: it makes stores of versions, one for writing at a
 * time.
 */
abstract class ProviderBase {
    private static final Logger LOG = LoggerFactory.getLogger(ProviderBase.class);
    static final String DEFAULT_FAMILY = "default";

    private final Map<String, Coder> coders = new ConcurrentHashMap<>();
    private StateStoreId id;
    private StructType keySchema;
    private StructType valueSchema;
    private StateStoreConf conf;
    private Configuration hadoopConf;
    private boolean hasFamilies;
    private boolean hasIds;
    private Coder.Context context;
    private RemoteFiles remote;
    private Naming naming;
    private Stamps stamps;
    private VersionedState state;

    /** Makes the provider ready; Spark calls it first, and once. */
    public void init(
            StateStoreId stateStoreId,
            StructType keySchema,
            StructType valueSchema,
            KeyStateEncoderSpec spec,
            boolean useColumnFamilies,
            StateStoreConf storeConf,
            Configuration hadoopConf,
            boolean useMultipleValuesPerKey,
            Option<StateSchemaProvider> schemas) {
        if (useMultipleValuesPerKey && !useColumnFamilies) {
            throw new IllegalArgumentException("requirement failed: Multiple values per key support requires column families"
                    + " to be enabled in " + getClass().getSimpleName() + ".");
        }
        this.id = stateStoreId;
        this.keySchema = keySchema;
        this.valueSchema = valueSchema;
        this.conf = storeConf;
        this.hadoopConf = hadoopConf;
        this.hasFamilies = useColumnFamilies;
        this.hasIds = storeConf.enableStateStoreCheckpointIds();
        Settings settings = Settings.of(storeConf);
        String runId = hadoopConf.get("sql.streaming.runId");
        this.context = new Coder.Context(runId, stateStoreId, storeConf.stateStoreEncodingFormat(), useColumnFamilies, schemas);
        addCoder(DEFAULT_FAMILY, keySchema, valueSchema, spec, useMultipleValuesPerKey);
        this.naming = new Naming(stateStoreId.storeCheckpointLocation());
        this.remote = SparkFiles.of(naming.root(), storeConf.compressionCodec(), hadoopConf);
        this.stamps = new Stamps(stateStoreId, settings.lockTimeoutMilliseconds(), Minor.REENTRY);
        Coder first = coders.get(DEFAULT_FAMILY);
        Plan.Shape shape =
                new Plan.Shape(DEFAULT_FAMILY, first.order(), first.list(), useColumnFamilies, hasIds);
        Plan.Retention retention = new Plan.Retention(storeConf.minDeltasForSnapshot(),
                storeConf.minVersionsToRetain(), Minor.deletedMax(storeConf), storeConf.minVersionsToDelete());
        String local = "StateStoreId(opId=" + id.operatorId() + ",partId=" + id.partitionId() + ",name=" + id.storeName() + ")";
        this.state = new VersionedState(
                new Plan(remote, naming, Minor.localDirectory(local), settings,
                        ExecutorPool.of(settings), shape, retention, first.rows(keySchema, valueSchema),
                        System::currentTimeMillis),
                version -> Minor.snapshotUploaded(id, runId, conf, version));
    }

    final void addCoder(String family, StructType keySchema, StructType valueSchema, KeyStateEncoderSpec spec, boolean isList) {
        Minor.capture(context.schemas(), family, keySchema, valueSchema);
        coders.computeIfAbsent(family, absent -> Coder.of(context, family, spec, valueSchema, isList));
    }

    final void removeCoder(String family) {
        coders.remove(family);
    }

    final Coder coder(String family) {
        return coders.get(family);
    }

    final StateStoreId id() {
        return id;
    }

    final StateStoreConf conf() {
        return conf;
    }

    final Configuration hadoopConf() {
        return hadoopConf;
    }

    final boolean hasFamilies() {
        return hasFamilies;
    }

    final StructType keySchema() {
        return keySchema;
    }

    final StructType valueSchema() {
        return valueSchema;
    }

    final Stamps stamps() {
        return stamps;
    }

    final VersionedState state() {
        return state;
    }

    /** Which store this is. */
    public StateStoreId stateStoreId() {
        return id;
    }

    /** Loads a version for a task, which waits until no other one has the store. */
    final ForebayStateStore open(long version, Option<String> uniqueId, Access access, boolean isEmpty) {
        return loading(() -> {
            if (version < 0) {
                throw Raise.it(QueryExecutionErrors.unexpectedStateStoreVersion(version));
            }
            return stamped(stamp -> {
                load(version, uniqueId, access, isEmpty);
                return new ForebayStateStore(this, version, stamp, access);
            });
        });
    }

    private void load(long version, Option<String> uniqueId, Access access, boolean isEmpty) throws java.io.IOException {
        Optional<String> known = hasIds && uniqueId.isDefined() ? Optional.of(uniqueId.get()) : Optional.empty();
        if (isEmpty) {
            state.loadNothing(version, access);
        } else {
            state.load(version, known, access);
        }
    }

    /** The store that a task reads becomes the one that it writes. */
    final StateStore upgrade(ForebayStateStore store, long version, Option<String> uniqueId) {
        return loading(() -> {
            if (version != store.version() || !id.equals(store.id())) {
                throw new IllegalArgumentException("a store of version " + store.version() + " of " + store.id()
                        + " cannot go on as version " + version + " of " + id);
            }
            store.upgrade(() -> load(version, uniqueId, Access.WRITE, false));
            return store;
        });
    }

    /** The state of a snapshot, and of changelogs up to another version, for Spark's state data source. */
    final ForebayStateStore replay(long first, long last, Option<String> firstId, Option<String> lastId, Access access) {
        return loading(() -> {
            if (first < 1) {
                throw Raise.it(QueryExecutionErrors.unexpectedStateStoreVersion(first));
            }
            if (last < first) {
                throw Raise.it(QueryExecutionErrors.unexpectedStateStoreVersion(last));
            }
            return stamped(stamp -> {
                state.loadFrom(version(first, firstId), version(last, lastId));
                return new ForebayStateStore(this, last, stamp, access);
            });
        });
    }

    private static Naming.Version version(long number, Option<String> id) {
        return new Naming.Version(number, id.isDefined() ? Optional.of(id.get()) : Optional.empty());
    }

    /** The changes of versions in one family. */
    final Changes changes(long first, long last, Option<String> family, Option<String> lastId) {
        java.util.List<Naming.Version> versions = new java.util.ArrayList<>();
        if (lastId.isDefined()) {
            state.history().lineage(first, new org.apache.spark.sql.execution.streaming.state.LineageItem(last, lastId.get()))
                    .forEach(item -> versions.add(Lineage.version(item)));
        } else {
            for (long number = first; number <= last; number++) {
                versions.add(new Naming.Version(number, Optional.empty()));
            }
        }
        String name = family.isDefined() ? family.get() : DEFAULT_FAMILY;
        Short number = hasFamilies ? state.familyNumber(name) : null;
        return new Changes(remote, naming, versions, coders.get(name), number);
    }

    private interface Stamped {
        ForebayStateStore with(long stamp) throws Exception;
    }

    private ForebayStateStore stamped(Stamped work) throws Exception {
        long stamp = stamps.acquire();
        try {
            return work.with(stamp);
        } catch (Throwable error) {
            stamps.release(stamp);
            throw error;
        }
    }

    private interface Loading<T> {
        T get() throws Exception;
    }

    /** Errors as Spark's own store has them. */
    private <T> T loading(Loading<T> load) {
        try {
            return load.get();
        } catch (InterruptedException error) {
            throw Raise.it(error);
        } catch (OutOfMemoryError error) {
            throw Raise.it(QueryExecutionErrors.notEnoughMemoryToLoadStore(id.toString(), "FOREBAY_STORE_PROVIDER", error));
        } catch (Throwable error) {
            throw Raise.it(Minor.cannotLoad(error));
        }
    }

    /** Uploads what waits and deletes what is old: behind tasks' backs. */
    public void doMaintenance() {
        maintain(state::maintain);
    }

    interface Maintenance {
        void run() throws java.io.IOException;
    }

    final void maintain(Maintenance maintenance) {
        stamps.verifyForMaintenance();
        try {
            maintenance.run();
        } catch (Exception error) {
            LOG.warn("Maintenance of the state store {} failed, and is tried again", id, error);
        }
    }

    /** Closes once the task that has it is done. */
    public void close() {
        if (stamps.close()) {
            state.close();
        }
    }

    /** What a store tells. */
    public scala.collection.immutable.Seq<StateStoreCustomMetric> supportedCustomMetrics() {
        return Metrics.all();
    }

    /** Throws unless a family may be used. */
    final void checkFamily(String operation, String family) {
        if (family.equals(DEFAULT_FAMILY)) {
            return;
        }
        if (!hasFamilies) {
            throw StateStoreErrors.unsupportedOperationException(operation, noFamilies());
        }
        if (family.isEmpty() || !family.trim().equals(family)) {
            throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, family);
        }
        if (state.database().family(family) == null) {
            throw StateStoreErrors.unsupportedOperationOnMissingColumnFamily(operation, family);
        }
    }

    /** Throws unless a family may be made or removed. */
    final void checkFamilyName(String operation, String family, boolean isInternal) {
        if (!hasFamilies) {
            throw StateStoreErrors.unsupportedOperationException(operation, noFamilies());
        }
        if (family.isEmpty() || !family.trim().equals(family) || family.equals(DEFAULT_FAMILY) && !isInternal) {
            throw StateStoreErrors.cannotUseColumnFamilyWithInvalidName(operation, family);
        }
        if (!isInternal && family.charAt(0) == '$') {
            throw StateStoreErrors.cannotCreateColumnFamilyWithReservedChars(family);
        }
    }

    private String noFamilies() {
        return "multiple column families is disabled in " + getClass().getSimpleName();
    }
}
