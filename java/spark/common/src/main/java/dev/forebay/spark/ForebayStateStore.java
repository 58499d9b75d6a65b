package dev.forebay.spark;

import dev.forebay.Scan;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreCheckpointInfo;
import org.apache.spark.sql.execution.streaming.state.StateStoreMetrics;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/** A version that a task reads, and maybe changes: then it is committed, or given up. */
public final class ForebayStateStore extends ReadBase implements StateStore {
    private static final Logger LOG = LoggerFactory.getLogger(ForebayStateStore.class);

    private final Metrics operations = Metrics.make();
    /** Families that are gone once this is committed. */
    private final Set<String> removed = new HashSet<>();
    private boolean isChanged;
    private long puts;
    private long putNanoseconds;
    private VersionedState.Committed committed;
    private Metrics.Told told;

    ForebayStateStore(ProviderBase provider, long version, long stamp, Access access) {
        super(provider, version, stamp, access);
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

    public synchronized void createColFamilyIfAbsent(
            String name,
            StructType keySchema,
            StructType valueSchema,
            KeyStateEncoderSpec spec,
            boolean useMultipleValuesPerKey,
            boolean isInternal) {
        updating("update");
        provider.checkFamilyName("create_col_family", name, isInternal);
        if (removed.remove(name)) {
            provider.removeCoder(name);
        }
        provider.addCoder(name, keySchema, valueSchema, spec, useMultipleValuesPerKey);
        Coder coder = provider.coder(name);
        // If that fails amid its work, it was changed.
        boolean wasChanged = isChanged;
        isChanged = true;
        if (database().createFamily(name, isInternal, coder.order(), coder.list())) {
            provider.state().forceSnapshot();
        } else {
            isChanged = wasChanged;
        }
    }

    /** Since Spark 4.3 a reader asks for a family so: where the version has none, it is empty, and gone with the reader. */
    public void registerColFamily(
            String name,
            StructType keySchema,
            StructType valueSchema,
            KeyStateEncoderSpec spec,
            boolean useMultipleValuesPerKey,
            boolean isInternal) {
        createColFamilyIfAbsent(name, keySchema, valueSchema, spec, useMultipleValuesPerKey, isInternal);
    }

    public synchronized boolean removeColFamilyIfExists(String name) {
        updating("update");
        provider.checkFamilyName("remove_col_family", name, false);
        Family family = database().family(name);
        if (family == null) {
            return false;
        }
        isChanged = true;
        provider.state().forceSnapshot();
        removeAll(family, database().scan(family));
        database().dropFamily(family);
        removed.add(name);
        return true;
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

    public synchronized void put(UnsafeRow key, UnsafeRow value, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        require(value != null, "Cannot put a null value");
        Place place = place("put", name);
        change(place.family(), place.coder().key(key), place.coder().value(value), Change.PUT);
    }

    public synchronized void putList(UnsafeRow key, UnsafeRow[] values, String name) {
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

    public synchronized void remove(UnsafeRow key, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = place("remove", name);
        change(place.family(), place.coder().key(key), null, Change.DELETE);
    }

    /** Removes keys from one on, up to another one, which is not among them. */
    public synchronized void deleteRange(UnsafeRow from, UnsafeRow to, String name) {
        updating("update");
        verify(from != null, "Begin key cannot be null");
        verify(to != null, "End key cannot be null");
        Place place = place("deleteRange", name);
        verify(Encoders.mayDeleteRanges(place.coder().keys()),
                "deleteRange requires a RangeKeyScanStateEncoderSpec for ordered key encoding");
        removeAll(place.family(), range(place, Option.apply(from), Option.apply(to)));
    }

    /** Removes what a scan shows, key by key: so changelogs of every version can tell it. */
    private void removeAll(Family family, Scan scan) {
        try {
            while (scan.advance()) {
                change(family, scan.key(), null, Change.DELETE);
            }
        } finally {
            database().close(scan);
        }
    }

    public synchronized void merge(UnsafeRow key, UnsafeRow value, String name) {
        updating("update");
        Place place = place("merge", name);
        verify(place.coder().values().supportsMultipleValuesPerKey(),
                "Merge operation requires an encoder which supports multiple values for a single key");
        verify(key != null, "Key cannot be null");
        require(value != null, "Cannot merge a null value");
        change(place.family(), place.coder().key(key), place.coder().value(value), Change.MERGE);
    }

    public synchronized void mergeList(UnsafeRow key, UnsafeRow[] values, String name) {
        updating("update");
        verify(key != null, "Key cannot be null");
        Place place = listPlace("merge", name, values);
        change(place.family(), place.coder().key(key), place.coder().list(values), Change.MERGE);
    }

    public synchronized long commit() {
        if (state != State.UPDATING) {
            throw outOfOrder("Expected possible states (UPDATING) but found " + state);
        }
        try {
            provider.stamps().verify(stamp);
            database().closeScans();
            committed = provider.state().commit();
            state = State.COMMITTED;
            removed.forEach(provider::removeCoder);
            tell();
            releaseStamp();
            Minor.reportCommit(committed.version(), provider.id(), provider.conf(), provider.hadoopConf());
            return committed.version();
        } catch (Throwable error) {
            if (state == State.UPDATING) {
                // Nothing may be written any more, and the next task may have the store.
                state = State.ABORTED;
                releaseStamp();
            }
            throw Raise.it(QueryExecutionErrors.failedToCommitStateFileError(toString(), error));
        }
    }

    /** The commit stands, whether it can be told of or not. */
    private void tell() {
        try {
            countOperations();
            told = provider.state().told(operations);
        } catch (RuntimeException error) {
            LOG.warn("What the commit of {} took is not known", this, error);
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
        if (state != State.UPDATING) {
            return;
        }
        provider.stamps().verify(stamp);
        state = State.RELEASED;
        end();
    }

    private void end() {
        try {
            if (access == Access.WRITE || isChanged) {
                provider.state().giveUp();
            }
            if (database() != null && provider.stamps().isHeldOnce()) {
                database().closeScans();
                provider.state().endTask();
            }
        } finally {
            releaseStamp();
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
