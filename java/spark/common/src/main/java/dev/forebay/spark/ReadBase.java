package dev.forebay.spark;

import dev.forebay.Scan;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreIterator;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.Iterator;

/**
 * A version that a task reads: one that was opened, and is committed, given up or released once. Rows that come in belong
 * to the caller, and are encoded at once.
 *
 * <p>Some tasks call from a second thread. Every call has the store's monitor, as has its end: a call that comes too late
 * is refused, and touches nothing of the next task's.
 */
abstract class ReadBase {
    private static final Logger LOG = LoggerFactory.getLogger(ReadBase.class);

    enum State {
        UPDATING,
        COMMITTED,
        ABORTED,
        RELEASED
    }

    final ProviderBase provider;
    final long version;
    final long stamp;
    volatile Access access;
    volatile State state = State.UPDATING;
    private boolean isValidated;
    private boolean holdsStamp = true;
    long gets;
    long getNanoseconds;

    ReadBase(ProviderBase provider, long version, long stamp, Access access) {
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
        } catch (Exception error) {
            LOG.warn("The state store {} could not be given up with its task", provider.id(), error);
        } finally {
            releaseStamp();
        }
    }

    /** Gives the stamp back, once. */
    final synchronized void releaseStamp() {
        if (holdsStamp) {
            holdsStamp = false;
            provider.stamps().release(stamp);
        }
    }

    public abstract boolean hasCommitted();

    public abstract void abort();

    public abstract void release();

    public StateStoreId id() {
        return provider.id();
    }

    public long version() {
        return version;
    }

    final StateDatabase database() {
        return provider.state().database();
    }

    final void updating(String operation) {
        provider.stamps().verify(stamp);
        if (state != State.UPDATING) {
            throw outOfOrder("Cannot " + operation + " after " + state);
        }
    }

    final void reading() {
        if (state != State.COMMITTED || !provider.stamps().isLast(stamp) || database() == null) {
            updating("update");
        }
    }

    static RuntimeException outOfOrder(String text) {
        return Raise.it(Minor.outOfOrder(text));
    }

    static void require(boolean isSo, String text) {
        if (!isSo) {
            throw new IllegalArgumentException("requirement failed: " + text);
        }
    }

    static void verify(boolean isSo, String text) {
        if (!isSo) {
            throw new IllegalStateException(text);
        }
    }

    /** A family that may be used, and how its rows are encoded. */
    record Place(Family family, Coder coder) {}

    final Place place(String operation, String name) {
        provider.checkFamily(operation, name);
        return new Place(database().family(name), provider.coder(name));
    }

    public synchronized UnsafeRow get(UnsafeRow key, String name) {
        reading();
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
    private void validate(UnsafeRow key, UnsafeRow value) {
        if (!isValidated && value != null && !provider.hasFamilies()) {
            Minor.validate(key, provider.keySchema(), value, provider.valueSchema(), provider.id(), provider.conf());
            isValidated = true;
        }
    }

    public synchronized Iterator<UnsafeRow> valuesIterator(UnsafeRow key, String name) {
        reading();
        verify(key != null, "Key cannot be null");
        Place place = place("valuesIterator", name);
        verify(place.coder().values().supportsMultipleValuesPerKey(),
                "valuesIterator requires a encoder that supports multiple values for a single key.");
        byte[] values = database().get(place.family(), place.coder().key(key));
        gets += 1;
        return place.coder().values().decodeValues(values);
    }

    /** The rows of keys, in their order. */
    public synchronized Iterator<UnsafeRow> multiGet(UnsafeRow[] keys, String name) {
        reading();
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

    public synchronized boolean keyExists(UnsafeRow key, String name) {
        reading();
        verify(key != null, "Key cannot be null");
        Place place = place("keyExists", name);
        gets += 1;
        return database().get(place.family(), place.coder().key(key)) != null;
    }

    public synchronized StateStoreIterator<UnsafeRowPair> iterator(String name) {
        reading();
        Place place = place("iterator", name);
        return Rows.of(database(), database().scan(place.family()), place.coder(), Rows.Lists.FIRST,
                pair -> validate(pair.key(), pair.value()));
    }

    public synchronized StateStoreIterator<UnsafeRowPair> iteratorWithMultiValues(String name) {
        reading();
        Place place = place("iteratorWithMultiValues", name);
        return rows(place, database().scan(place.family()), Rows.Lists.EACH);
    }

    public StateStoreIterator<UnsafeRowPair> prefixScan(UnsafeRow prefix, String name) {
        return prefixScan(prefix, name, "prefixScan", Rows.Lists.FIRST);
    }

    public StateStoreIterator<UnsafeRowPair> prefixScanWithMultiValues(UnsafeRow prefix, String name) {
        return prefixScan(prefix, name, "prefixScanWithMultiValues", Rows.Lists.EACH);
    }

    private synchronized StateStoreIterator<UnsafeRowPair> prefixScan(
            UnsafeRow prefix, String name, String operation, Rows.Lists lists) {
        reading();
        Place place = place(operation, name);
        require(place.coder().keys().supportPrefixKeyScan(), "Prefix scan requires setting prefix key!");
        byte[] encoded = place.coder().keys().encodePrefixKey(prefix);
        return rows(place, database().prefix(place.family(), encoded), lists);
    }

    /** Entries from a key on, up to another one, which is not among them. */
    public StateStoreIterator<UnsafeRowPair> rangeScan(Option<UnsafeRow> from, Option<UnsafeRow> to, String name) {
        return rangeScan(from, to, name, "rangeScan", Rows.Lists.FIRST);
    }

    public StateStoreIterator<UnsafeRowPair> rangeScanWithMultiValues(
            Option<UnsafeRow> from, Option<UnsafeRow> to, String name) {
        return rangeScan(from, to, name, "rangeScanWithMultiValues", Rows.Lists.EACH);
    }

    private synchronized StateStoreIterator<UnsafeRowPair> rangeScan(
            Option<UnsafeRow> from, Option<UnsafeRow> to, String name, String operation, Rows.Lists lists) {
        reading();
        Place place = place(operation, name);
        require(Encoders.mayScanRanges(place.coder().keys()), "Range scan requires an encoder that supports range scanning!");
        return rows(place, range(place, from, to), lists);
    }

    final Scan range(Place place, Option<UnsafeRow> from, Option<UnsafeRow> to) {
        return database().range(place.family(), bound(place, from), bound(place, to));
    }

    private static byte[] bound(Place place, Option<UnsafeRow> key) {
        return key.isDefined() ? place.coder().key(key.get()) : null;
    }

    private StateStoreIterator<UnsafeRowPair> rows(Place place, Scan scan, Rows.Lists lists) {
        if (lists == Rows.Lists.EACH) {
            verify(place.coder().values().supportsMultipleValuesPerKey(),
                    "Multi-value iterator operation requires an encoder which supports multiple values for a single key");
        }
        return Rows.of(database(), scan, place.coder(), lists, pair -> {});
    }

    public scala.collection.immutable.Set<String> allColumnFamilyNames() {
        List<String> names = database().families().stream().map(family -> family.shape.name()).toList();
        return scala.jdk.javaapi.CollectionConverters.asScala(names).toSet();
    }
}
