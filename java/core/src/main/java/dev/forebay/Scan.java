package dev.forebay;

import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Entries of a table, or of part of it, as they were when the scan was asked for. They come in blocks, each by one native
 * call:
 *
 * <pre>{@code
 * try (Scan scan = users.prefix(bytes("a"))) {
 *     while (scan.advance()) {
 *         use(scan.key(), scan.value());
 *     }
 * }
 * }</pre>
 *
 * <p>Who wants no copies takes {@link #block} and the places in it. A scan that has come to its end holds nothing; one
 * that is given up before is closed. Use it from one thread at a time; it may be closed by another one.
 */
public final class Scan implements Iterable<Entry>, AutoCloseable {
    /** A block begins with the number of what brings the next one, or 0. */
    private static final int HEAD_BYTES = Long.BYTES;

    /** What it is of, which must not be let go of before. */
    private final Table table;
    /** What brings the next block, if there is one. */
    private final Source source;
    private byte[] block;
    private int next = HEAD_BYTES;
    private int keyOffset;
    private int keyBytes;
    private int valueOffset;
    private int valueBytes;
    private boolean isHere;
    private volatile boolean isClosed;

    private static final class Source extends Native {
        Source(long number) {
            super(number);
        }
    }

    Scan(Table table, byte[] block) {
        this.table = table;
        this.block = block;
        long number = (long) Items.LONG.get(block, 0);
        source = number == 0 ? null : new Source(number);
    }

    /** Goes to the next entry, the first at first. Returns whether there is one. */
    public boolean advance() {
        isHere = false;
        if (isClosed) {
            throw new ForebayException.Closed("the scan is closed");
        }
        if (next == block.length && !fetch()) {
            return false;
        }
        keyBytes = (int) Items.INT.get(block, next);
        keyOffset = next + Integer.BYTES;
        valueBytes = (int) Items.INT.get(block, keyOffset + keyBytes);
        valueOffset = keyOffset + keyBytes + Integer.BYTES;
        next = valueOffset + valueBytes;
        isHere = true;
        return true;
    }

    /** The next block, if there is one with something in it. */
    private boolean fetch() {
        if ((long) Items.LONG.get(block, 0) == 0) {
            return false;
        }
        try {
            block = Native.scanNext(source.number);
        } finally {
            Reference.reachabilityFence(source);
            Reference.reachabilityFence(table);
        }
        next = HEAD_BYTES;
        return next < block.length;
    }

    /** The key here. */
    public byte[] key() {
        return Arrays.copyOfRange(block, keyOffset(), keyOffset + keyBytes);
    }

    /** The value here. */
    public byte[] value() {
        return Arrays.copyOfRange(block, valueOffset(), valueOffset + valueBytes);
    }

    /** The array that the entry here stands in. It stays as it is, also after the scan. */
    public byte[] block() {
        return block;
    }

    /** Where the key stands in {@link #block}. */
    public int keyOffset() {
        here();
        return keyOffset;
    }

    /** How long the key is. */
    public int keyBytes() {
        here();
        return keyBytes;
    }

    /** Where the value stands in {@link #block}. */
    public int valueOffset() {
        here();
        return valueOffset;
    }

    /** How long the value is. */
    public int valueBytes() {
        here();
        return valueBytes;
    }

    private void here() {
        if (!isHere) {
            throw new IllegalStateException("the scan is at no entry: call advance, and look at what it returns");
        }
    }

    /** What comes from here on. An iterator shares the scan's place. */
    @Override
    public Iterator<Entry> iterator() {
        return new Iterator<>() {
            private Entry ready;

            @Override
            public boolean hasNext() {
                if (ready == null && advance()) {
                    ready = new Entry(key(), value());
                }
                return ready != null;
            }

            @Override
            public Entry next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                Entry entry = ready;
                ready = null;
                return entry;
            }
        };
    }

    /** Gives up what is left. */
    @Override
    public void close() {
        isClosed = true;
        if (source != null) {
            source.letGo();
        }
    }
}
