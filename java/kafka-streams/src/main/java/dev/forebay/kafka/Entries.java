package dev.forebay.kafka;

import dev.forebay.ForebayException;
import dev.forebay.Scan;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * Entries of a store's tables, one table after the other. Each is as it was when the first of its entries was asked for;
 * one that has gone by then is passed over.
 */
class Entries<K> implements KeyValueIterator<K, byte[]> {
    /** A scan, and what is made of where it stands. */
    static class Part {
        final Scan scan;

        Part(Scan scan) {
            this.scan = scan;
        }

        byte[] key() {
            return scan.key();
        }

        /** Null for a key that has gone meanwhile. */
        byte[] value(byte[] key) {
            return scan.value();
        }
    }

    private final ForebayStore store;
    /** Each gives what is in a table, or null for one that is gone. */
    private final Iterator<Supplier<Part>> parts;
    private final Predicate<byte[]> isWithin;
    private final Function<byte[], K> named;
    private volatile Part part;
    private KeyValue<K, byte[]> next;
    private volatile boolean isClosed;

    Entries(ForebayStore store, Iterator<Supplier<Part>> parts, Predicate<byte[]> isWithin, Function<byte[], K> named) {
        this(store, null, parts, isWithin, named);
    }

    /**
     * @param part what was begun already, or null
     * @param isWithin whether a key is one of those that were asked for
     * @param named what a key of a table is to the caller
     */
    Entries(ForebayStore store, Part part, Iterator<Supplier<Part>> parts, Predicate<byte[]> isWithin, Function<byte[], K> named) {
        this.store = store;
        this.part = part;
        this.parts = parts;
        this.isWithin = isWithin;
        this.named = named;
    }

    @Override
    public boolean hasNext() {
        if (isClosed) {
            return onClosed();
        }
        try {
            while (next == null && (part != null || parts.hasNext())) {
                advance();
            }
        } catch (ForebayException.Closed closed) {
            return onClosed();
        } catch (ForebayException error) {
            throw store.told("iterating over", error);
        }
        if (next == null) {
            store.forget(this);
        }
        return next != null;
    }

    /** One over windows has come to its end, as the host has it. */
    private boolean onClosed() {
        next = null;
        if (store instanceof SegmentedStore) {
            return false;
        }
        throw new InvalidStateStoreException("Iterator for store " + store.name() + " has closed");
    }

    private void advance() {
        Part here = part;
        if (here == null) {
            here = parts.next().get();
            part = here;
            if (isClosed && here != null) {
                here.scan.close(); // Another thread has closed all this amid that, and did not see it.
            }
        } else if (!here.scan.advance()) {
            part = null;
        } else {
            byte[] key = here.key();
            byte[] value = isWithin.test(key) ? here.value(key) : null;
            if (value != null) {
                next = KeyValue.pair(named.apply(key), value);
            }
        }
    }

    @Override
    public K peekNextKey() {
        return ready().key;
    }

    /** What {@link #hasNext} has told of is there, also where a store of windows was closed since. */
    private KeyValue<K, byte[]> ready() {
        boolean isTold = next != null && store instanceof SegmentedStore;
        if (!isTold && !hasNext()) {
            throw new NoSuchElementException();
        }
        return next;
    }

    @Override
    public KeyValue<K, byte[]> next() {
        KeyValue<K, byte[]> entry = ready();
        next = null;
        return entry;
    }

    /** Also by the store, while another thread iterates. */
    @Override
    public void close() {
        isClosed = true;
        store.forget(this);
        Part left = part;
        if (left != null) {
            left.scan.close();
        }
    }
}
