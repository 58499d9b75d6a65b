package dev.forebay.spark;

import dev.forebay.Scan;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStoreCheckpointInfo;
import org.apache.spark.sql.execution.streaming.state.StateStoreErrors;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreIterator;
import org.apache.spark.sql.execution.streaming.state.StateStoreMetrics;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.Iterator;

/**
 * A version that a task reads, and maybe changes: one that was opened, and is committed, given up or released once. Rows
 * that come in belong to the caller, and are encoded at once.
 */
abstract class StoreBase {
    private static final Logger LOG = LoggerFactory.getLogger(StoreBase.class);

    /** What a store is opened for. */
    enum Access {
        READ,
        WRITE
    }

    private enum State {
        UPDATING,
        COMMITTED,
        ABORTED,
        RELEASED
    }

    private final ProviderBase provider;
    private final long version;
    private final long stamp;
    private final Metrics operations = Metrics.make();
    private volatile Access access;
    private volatile State state = State.UPDATING;
    private boolean isValidated;
    private boolean isChanged;
    private long gets;
    private long puts;
    private long getNanoseconds;
    private long putNanoseconds;
    private VersionedState.Committed committed;
    private Metrics.Told told;

    StoreBase(ProviderBase provider, long version, long stamp, Access access) {
        this.provider = provider;
        this.version = version;
        this.stamp = stamp;
        this.access = access;
        TaskContext task = TaskContext.get();
        if (task != null) {
            TaskCompletionListener completed = context -> endWithTask();
            TaskFailureListener failed = (context, error) -> {
                if (!hasCommitted() && state == State.UPDATING) {
                    abort();
                }
            };
            task.addTaskCompletionListener(completed);
            task.addTaskFailureListener(failed);
        }
    }

    private void endWithTask() {
        try {
            if (state == State.UPDATING) {
                if (access == Access.READ) {
                    release();
                } else {
                    abort();
                }
            }
        } catch (RuntimeException error) {
            LOG.warn("The state store {} could not be given up with its task", provider.id(), error);
        } finally {
            provider.stamps().release(stamp);
        }
    }

    public StateStoreId id() {
        return provider.id();
    }

    public long version() {
        return version;
    }

    interface Load {
        void run() throws Exception;
    }

    /** From here on it is written. */
    final void upgrade(Load load) throws Exception {
        if (access != Access.READ) {
            throw new IllegalArgumentException("Existing store must be readOnly, but got a read-write store");
        }
        updating("update");
        load.run();
        access = Access.WRITE;
    }

    private StateDatabase database() {
        return provider.state().database();
    }

    private void updating(String operation) {
        provider.stamps().verify(stamp);
        if (state != State.UPDATING) {
            throw outOfOrder("Cannot " + operation + " after " + state);
        }
    }

    private static RuntimeException outOfOrder(String text) {
        return Raise.it(Minor.outOfOrder(text));
    }

    private static void require(boolean isSo, String text) {
        if (!isSo) {
            throw new IllegalArgumentException("requirement failed: " + text);
        }
    }

    private static void verify(boolean isSo, String text) {
        if (!isSo) {
            throw new IllegalStateException(text);
        }
    }

    /** A family that may be used, and how its rows are encoded. */
    private record Place(Family family, Coder coder) {}

    private Place place(String operation, String name) {
        provider.checkFamily(operation, name);
        return new Place(database().family(name), provider.coder(name));
    }

    public void createColFamilyIfAbsent(
            String name,
            StructType keySchema,
            StructType valueSchema,
            KeyStateEncoderSpec spec,
            boolean useMultipleValuesPerKey,
            boolean isInternal) {
        updating("update");
        provider.checkFamilyName("create_col_family", name, isInternal);
        provider.addCoder(name, keySchema, valueSchema, spec, useMultipleValuesPerKey);
        Coder coder = provider.coder(name);
        if (database().createFamily(name, isInternal, coder.order(), coder.list())) {
            provider.state().forceSnapshot();
        }
    }

    public boolean removeColFamilyIfExists(String name) {
        updating("update");
        provider.checkFamilyName("remove_col_family", name, false);
        Family family = database().family(name);
        if (family == null) {
            return false;
        }
        provider.state().forceSnapshot();
        Scan scan = database().scan(family);
        try {
            while (scan.advance()) {
                change(family, scan.key(), null, Change.DELETE);
            }
        } finally {
            database().close(scan);
        }
        database().dropFamily(family);
        provider.removeCoder(name);
        return true;
    }

    public UnsafeRow get(UnsafeRow key, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = place("get", name);
        long begin = System.nanoTime();
        byte[] value = database().get(place.family(), place.coder().key(key));
        getNanoseconds += System.nanoTime() - begin;
        gets += 1;
        UnsafeRow row = place.coder().values().decodeValue(value);
        validate(key, row);
        return row;
    }

    /** The first row that is read is looked at: whether it is of the schema that the query has. */
    private boolean validate(UnsafeRow key, UnsafeRow value) {
        if (!isValidated && value != null && !provider.hasFamilies()) {
            Minor.validate(key, provider.keySchema(), value, provider.valueSchema(), provider.id(), provider.conf());
            isValidated = true;
        }
        return true;
    }

    public Iterator<UnsafeRow> valuesIterator(UnsafeRow key, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = place("valuesIterator", name);
        verify(place.coder().values().supportsMultipleValuesPerKey(),
                "valuesIterator requires a encoder that supports multiple values for a single key.");
        byte[] values = database().get(place.family(), place.coder().key(key));
        gets += 1;
        return place.coder().values().decodeValues(values);
    }

    /** The rows of keys, in their order. */
    public Iterator<UnsafeRow> multiGet(UnsafeRow[] keys, String name) {
        updating("update");
        Place place = place("multiGet", name);
        List<byte[]> encoded = new ArrayList<>();
        for (UnsafeRow key : keys) {
            verify(key != null, "Key cannot be null");
            encoded.add(place.coder().key(key));
        }
        gets += keys.length;
        List<byte[]> values = database().getMany(place.family(), encoded);
        return scala.jdk.javaapi.CollectionConverters.asScala(
                values.stream().map(value -> copy(place.coder().values().decodeValue(value))).iterator());
    }

    private static UnsafeRow copy(UnsafeRow row) {
        return row == null ? null : row.copy();
    }

    public boolean keyExists(UnsafeRow key, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = place("keyExists", name);
        gets += 1;
        return database().get(place.family(), place.coder().key(key)) != null;
    }

    private enum Change {
        PUT,
        DELETE,
        MERGE
    }

    /** Changes a key here and in the changelog. */
    private void change(Family family, byte[] key, byte[] value, Change change) {
        long begin = System.nanoTime();
        var changelog = provider.state().changelog();
        byte[] named = provider.hasFamilies() ? family.named(key) : key;
        isChanged = true;
        switch (change) {
            case PUT -> database().put(family, key, value);
            case DELETE -> database().delete(family, key);
            case MERGE -> database().merge(family, key, value);
        }
        if (changelog != null) {
            switch (change) {
                case PUT -> changelog.put(named, value);
                case DELETE -> changelog.delete(named);
                case MERGE -> changelog.merge(named, value);
            }
        }
        putNanoseconds += System.nanoTime() - begin;
        puts += 1;
    }

    public void put(UnsafeRow key, UnsafeRow value, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        require(value != null, "Cannot put a null value");
        Place place = place("put", name);
        change(place.family(), place.coder().key(key), place.coder().value(value), Change.PUT);
    }

    public void putList(UnsafeRow key, UnsafeRow[] values, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = listPlace("put", name, values);
        change(place.family(), place.coder().key(key), place.coder().list(values), Change.PUT);
    }

    private Place listPlace(String operation, String name, UnsafeRow[] values) {
        require(values != null, "Cannot " + operation + " a null value");
        for (UnsafeRow value : values) {
            require(value != null, "Cannot " + operation + " a null value in the array");
        }
        Place place = place(operation, name);
        verify(place.coder().values().supportsMultipleValuesPerKey(),
                "Multi-value " + operation + " operation requires an encoder which supports multiple values for a single key");
        return place;
    }

    public void remove(UnsafeRow key, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = place("remove", name);
        change(place.family(), place.coder().key(key), null, Change.DELETE);
    }

    public void merge(UnsafeRow key, UnsafeRow value, String name) {
        updating("update");
        Place place = place("merge", name);
        verify(place.coder().values().supportsMultipleValuesPerKey(),
                "Merge operation requires an encoder which supports multiple values for a single key");
        verify(key != null, "Key cannot be null");
        require(value != null, "Cannot merge a null value");
        change(place.family(), place.coder().key(key), place.coder().value(value), Change.MERGE);
    }

    public void mergeList(UnsafeRow key, UnsafeRow[] values, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = listPlace("merge", name, values);
        change(place.family(), place.coder().key(key), place.coder().list(values), Change.MERGE);
    }

    public StateStoreIterator<UnsafeRowPair> iterator(String name) {
        updating("update");
        Place place = place("iterator", name);
        return Rows.of(database(), database().scan(place.family()), place.coder(), Rows.Lists.FIRST,
                pair -> validate(pair.key(), pair.value()));
    }

    public StateStoreIterator<UnsafeRowPair> iteratorWithMultiValues(String name) {
        updating("update");
        Place place = place("iteratorWithMultiValues", name);
        return rows(place, database().scan(place.family()), Rows.Lists.EACH);
    }

    public StateStoreIterator<UnsafeRowPair> prefixScan(UnsafeRow prefix, String name) {
        return prefixScan(prefix, name, "prefixScan", Rows.Lists.FIRST);
    }

    public StateStoreIterator<UnsafeRowPair> prefixScanWithMultiValues(UnsafeRow prefix, String name) {
        return prefixScan(prefix, name, "prefixScanWithMultiValues", Rows.Lists.EACH);
    }

    private StateStoreIterator<UnsafeRowPair> prefixScan(UnsafeRow prefix, String name, String operation, Rows.Lists lists) {
        updating("update");
        Place place = place(operation, name);
        require(place.coder().keys().supportPrefixKeyScan(), "Prefix scan requires setting prefix key!");
        byte[] encoded = place.coder().keys().encodePrefixKey(prefix);
        return rows(place, database().prefix(place.family(), encoded), lists);
    }

    private StateStoreIterator<UnsafeRowPair> rows(Place place, Scan scan, Rows.Lists lists) {
        if (lists == Rows.Lists.EACH) {
            verify(place.coder().values().supportsMultipleValuesPerKey(),
                    "Multi-value iterator operation requires an encoder which supports multiple values for a single key");
        }
        return Rows.of(database(), scan, place.coder(), lists, pair -> true);
    }

    public scala.collection.immutable.Set<String> allColumnFamilyNames() {
        List<String> names = database().families().stream().map(family -> family.shape.name()).toList();
        return scala.jdk.javaapi.CollectionConverters.asScala(names).toSet();
    }

    public synchronized long commit() {
        if (state != State.UPDATING) {
            throw outOfOrder("Expected possible states (UPDATING) but found " + state);
        }
        try {
            provider.stamps().verify(stamp);
            database().closeScans();
            committed = provider.state().commit();
            countOperations();
            told = provider.state().told(operations);
            state = State.COMMITTED;
            provider.stamps().release(stamp);
            Minor.reportCommit(committed.version(), provider.id(), provider.conf(), provider.hadoopConf());
            return committed.version();
        } catch (Throwable error) {
            throw Raise.it(QueryExecutionErrors.failedToCommitStateFileError(toString(), error));
        }
    }

    private void countOperations() {
        operations.set(Metrics.Name.GETS, gets);
        operations.set(Metrics.Name.PUTS, puts);
        operations.set(Metrics.Name.GET_MILLISECONDS, getNanoseconds / 1_000_000);
        operations.set(Metrics.Name.PUT_MILLISECONDS, putNanoseconds / 1_000_000);
    }

    /** Gives up what was written; a store that was committed stays so. */
    public synchronized void abort() {
        if (state != State.UPDATING) {
            return;
        }
        provider.stamps().verify(stamp);
        state = State.ABORTED;
        end();
    }

    /** The end of a read. */
    public synchronized void release() {
        if (access != Access.READ) {
            throw new UnsupportedOperationException("only a store that is read is released: commit it, or give it up");
        }
        if (state == State.RELEASED) {
            return;
        }
        updating("release");
        state = State.RELEASED;
        end();
    }

    private void end() {
        try {
            if (access == Access.WRITE || isChanged) {
                provider.state().giveUp();
            }
            if (database() != null) {
                database().closeScans();
            }
        } finally {
            provider.stamps().release(stamp);
        }
    }

    public StateStoreMetrics metrics() {
        if (told == null) {
            return Minor.metrics(new Metrics.Told(0, 0, java.util.Map.of(), -1), provider.id());
        }
        return Minor.metrics(told, provider.id());
    }

    public StateStoreCheckpointInfo getStateStoreCheckpointInfo() {
        if (committed == null) {
            throw outOfOrder("Cannot get checkpointInfo without committing the store");
        }
        return new StateStoreCheckpointInfo(provider.id().partitionId(), committed.version(),
                option(committed.id()), option(committed.base()));
    }

    private static Option<String> option(java.util.Optional<String> text) {
        return Option.apply(text.orElse(null));
    }

    public boolean hasCommitted() {
        return state == State.COMMITTED;
    }

    @Override
    public String toString() {
        return "ForebayStateStore[stateStoreId=" + provider.id() + ", version=" + version + "]";
    }
}
