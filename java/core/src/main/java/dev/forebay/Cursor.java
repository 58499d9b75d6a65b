package dev.forebay;

import java.lang.ref.Reference;
import java.util.Objects;

/**
 * Goes to any key of a table in key order, and from there either way, over what was there when it was made. Each step tells
 * whether there is an entry, and is one native call: a {@link Scan} is faster where one way is all that is wanted. It holds
 * what it goes over until it is closed. Use it from one thread at a time; it may be closed by another one.
 */
public final class Cursor extends Native implements AutoCloseable {
    /** Ways, as the native half has them. */
    private static final int FIRST = 0;

    private static final int LAST = 1;
    private static final int NEXT = 2;
    private static final int PREV = 3;
    private static final int SEEK = 4;
    private static final int SEEK_FOR_PREV = 5;

    /** What it is of, which must not be let go of before. */
    private final Table table;
    private Entry here;

    Cursor(Table table, long number) {
        super(number);
        this.table = table;
    }

    /** Goes to the first entry. */
    public boolean first() {
        return go(FIRST, null);
    }

    /** Goes to the last entry. */
    public boolean last() {
        return go(LAST, null);
    }

    /** Goes to the first entry whose key is not below this one. */
    public boolean seek(byte[] key) {
        return go(SEEK, Objects.requireNonNull(key, "key"));
    }

    /** Goes to the last entry whose key is not above this one. */
    public boolean seekForPrev(byte[] key) {
        return go(SEEK_FOR_PREV, Objects.requireNonNull(key, "key"));
    }

    /** Goes to the next entry, of a cursor that was nowhere yet to the first. */
    public boolean next() {
        return go(NEXT, null);
    }

    /** Goes to the entry before, of a cursor that was nowhere yet to the last. */
    public boolean prev() {
        return go(PREV, null);
    }

    private boolean go(int way, byte[] key) {
        here = null;
        try {
            byte[] entry = moveCursor(number, way, key);
            if (entry != null) {
                Items items = new Items(entry);
                here = new Entry(items.next(), items.next());
            }
            return here != null;
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(table);
        }
    }

    /** Whether there is an entry here. */
    public boolean isHere() {
        return here != null;
    }

    /** The key here. */
    public byte[] key() {
        return entry().key();
    }

    /** The value here. */
    public byte[] value() {
        return entry().value();
    }

    private Entry entry() {
        if (here == null) {
            throw new IllegalStateException("the cursor is at no entry: look at what its steps return");
        }
        return here;
    }

    /** Lets go of what it holds. Again does nothing. */
    @Override
    public void close() {
        letGo();
    }
}
