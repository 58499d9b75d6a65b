package dev.forebay;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Writes to any tables of a database that are committed together by {@link Database#write}, or not at all. They are kept
 * in one array of Java's, and one native call takes all of them: nothing is to be closed. Use it from one thread at a
 * time, and again once it was written. What is wrong with a write, such as a key that is too long, is told by
 * {@code Database.write}, and nothing is written.
 */
public final class WriteBatch {
    private static final byte TABLE = 0;
    private static final byte PUT = 1;
    private static final byte DELETE = 2;
    private static final byte MERGE = 3;
    private static final byte DELETE_RANGE = 4;
    private static final byte DELETE_PREFIX = 5;
    private static final byte PUT_WITH_TTL = 6;
    /** An array that is longer is not kept for the next writes. */
    private static final int KEPT_BYTES_MAX = 4 << 20;

    private byte[] writes;
    private int length;
    private int count;
    private Table table;
    /** They must stay until the batch is written. */
    private final List<Table> tables = new ArrayList<>();

    /** An empty batch. */
    public WriteBatch() {
        this(4096);
    }

    /** An empty batch with room for so many bytes. */
    public WriteBatch(int bytes) {
        writes = new byte[Math.max(bytes, 64)];
    }

    /** Sets a key. */
    public void put(Table table, byte[] key, byte[] value) {
        int place = begin(PUT, table, 2 * Integer.BYTES + (long) key.length + value.length);
        append(append(place, key), value);
        count += 1;
    }

    /** Sets a key. Both buffers are read from their positions to their limits, and stay as they are. */
    public void put(Table table, ByteBuffer key, ByteBuffer value) {
        int before = length;
        int place = begin(PUT, table, 2 * Integer.BYTES + (long) key.remaining() + value.remaining());
        try {
            append(append(place, key), value);
        } catch (RuntimeException | Error error) {
            // A buffer of memory that is no more there; the next write names its table again.
            length = before;
            this.table = null;
            throw error;
        }
        count += 1;
    }

    /** Sets a key for a time, in a table with {@code ttl}. */
    public void put(Table table, byte[] key, byte[] value, Duration ttl) {
        long milliseconds = ttl.toMillis();
        int place = begin(PUT_WITH_TTL, table, Long.BYTES + 2 * Integer.BYTES + (long) key.length + value.length);
        Items.LONG.set(writes, place, milliseconds);
        append(append(place + Long.BYTES, key), value);
        count += 1;
    }

    /** Removes a key, present or not. */
    public void delete(Table table, byte[] key) {
        append(begin(DELETE, table, Integer.BYTES + (long) key.length), key);
        count += 1;
    }

    /** Merges an operand into a key, by the table's rule. Reads nothing. */
    public void merge(Table table, byte[] key, byte[] operand) {
        int place = begin(MERGE, table, 2 * Integer.BYTES + (long) key.length + operand.length);
        append(append(place, key), operand);
        count += 1;
    }

    /** Removes all keys from one on, up to another one, which is not among them; null is no bound. */
    public void deleteRange(Table table, byte[] from, byte[] to) {
        long bytes = (from == null ? 0 : from.length) + (long) (to == null ? 0 : to.length);
        int place = begin(DELETE_RANGE, table, 2 * Integer.BYTES + bytes);
        append(append(place, from), to);
        count += 1;
    }

    /** Removes all keys that begin so. */
    public void deletePrefix(Table table, byte[] prefix) {
        append(begin(DELETE_PREFIX, table, Integer.BYTES + (long) prefix.length), prefix);
        count += 1;
    }

    /** How many writes there are. */
    public int size() {
        return count;
    }

    /** How many bytes they take here. */
    public int bytes() {
        return length;
    }

    /** Forgets all writes. */
    public void clear() {
        if (writes.length > KEPT_BYTES_MAX) {
            writes = new byte[4096];
        }
        length = 0;
        count = 0;
        table = null;
        tables.clear();
    }

    byte[] writes() {
        return writes;
    }

    /** Makes room for a write of so many bytes, and returns where they begin. */
    private int begin(byte write, Table of, long bytes) {
        Objects.requireNonNull(of, "table");
        long needed = length + 2L + Long.BYTES + bytes;
        if (needed > writes.length) {
            grow(needed);
        }
        if (of != table) {
            if (!tables.contains(of)) {
                tables.add(of);
            }
            table = of;
            writes[length] = TABLE;
            Items.LONG.set(writes, length + 1, of.number);
            length += 1 + Long.BYTES;
        }
        writes[length] = write;
        int place = length + 1;
        length = place + (int) bytes;
        return place;
    }

    private void grow(long needed) {
        int most = Integer.MAX_VALUE - 8;
        if (needed > most) {
            throw new ForebayException.InvalidArgument("a batch is longer than 2 GiB; write it in parts");
        }
        writes = Arrays.copyOf(writes, (int) Math.min(most, Math.max(needed, 2L * writes.length)));
    }

    private int append(int place, byte[] item) {
        if (item == null) {
            Items.INT.set(writes, place, -1);
            return place + Integer.BYTES;
        }
        Items.INT.set(writes, place, item.length);
        System.arraycopy(item, 0, writes, place + Integer.BYTES, item.length);
        return place + Integer.BYTES + item.length;
    }

    private int append(int place, ByteBuffer item) {
        int bytes = item.remaining();
        Items.INT.set(writes, place, bytes);
        item.get(item.position(), writes, place + Integer.BYTES, bytes);
        return place + Integer.BYTES + bytes;
    }
}
