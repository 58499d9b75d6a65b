package dev.forebay;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * Reads of one moment, with its own writes on top, that are committed if nobody has changed what was read:
 *
 * <pre>{@code
 * db.transaction(tx -> {
 *     long balance = number(tx.get(accounts, ada));
 *     tx.put(accounts, ada, bytes(balance - 7));
 *     return balance;
 * });
 * }</pre>
 *
 * <p>Writes wait in Java until something is read, or it is committed. After a commit, whatever became of it, it is over, and
 * its calls throw {@link ForebayException.Closed}; so it is where a write cannot be taken, such as one to a table that is
 * closed. Use it from one thread at a time.
 */
public final class Transaction extends Native implements AutoCloseable {
    private final Database database;
    private final WriteBatch pending = new WriteBatch();

    Transaction(Database database, long number) {
        super(number);
        this.database = database;
    }

    /** The value of a key, or null. */
    public byte[] get(Table table, byte[] key) {
        Objects.requireNonNull(key, "key");
        return read(table, () -> transactionGet(number, pending.writes(), pending.bytes(), table.number, key));
    }

    /** A read behind the writes that wait. Where it fails nobody knows whether these were taken, and twice would be merged twice. */
    private byte[] read(Table table, Supplier<byte[]> read) {
        try {
            byte[] found = read.get();
            pending.clear();
            return found;
        } catch (Throwable error) {
            if (pending.size() > 0) {
                close();
            }
            throw error;
        } finally {
            fence(table);
        }
    }

    /** Whether there is such a key. */
    public boolean contains(Table table, byte[] key) {
        return get(table, key) != null;
    }

    /** The values of keys, in their order; null for a key that is not there. One native call. */
    public List<byte[]> getMany(Table table, List<byte[]> keys) {
        byte[] asked = Items.of(keys);
        Items found = new Items(
                read(table, () -> transactionGetMany(number, pending.writes(), pending.bytes(), table.number, asked)));
        List<byte[]> values = new ArrayList<>(keys.size());
        while (found.hasNext()) {
            values.add(found.next());
        }
        return values;
    }

    /** All entries of a table, in its own order. */
    public Scan scan(Table table) {
        return range(table, null, null, Direction.FORWARD);
    }

    /** Entries from a key on, up to another one, which is not among them; null is no bound. */
    public Scan range(Table table, byte[] from, byte[] to, Direction direction) {
        return new Scan(table, read(table, () -> transactionRange(
                number, pending.writes(), pending.bytes(), table.number, from, to, direction.ordinal())));
    }

    /** Entries whose keys begin so. */
    public Scan prefix(Table table, byte[] prefix, Direction direction) {
        return range(table, prefix, behind(prefix), direction);
    }

    /** The first key behind all that begin so, or null where there is none. */
    private static byte[] behind(byte[] prefix) {
        int length = prefix.length;
        while (length > 0 && prefix[length - 1] == (byte) 0xFF) {
            length -= 1;
        }
        if (length == 0) {
            return null;
        }
        byte[] behind = Arrays.copyOf(prefix, length);
        behind[length - 1] += 1;
        return behind;
    }

    /** Sets a key. */
    public void put(Table table, byte[] key, byte[] value) {
        pending.put(table, key, value);
    }

    /** Sets a key for a time, in a table with {@code ttl}. */
    public void put(Table table, byte[] key, byte[] value, Duration ttl) {
        pending.put(table, key, value, ttl);
    }

    /** Removes a key, present or not. */
    public void delete(Table table, byte[] key) {
        pending.delete(table, key);
    }

    /** Merges an operand into a key, by the table's rule. */
    public void merge(Table table, byte[] key, byte[] operand) {
        pending.merge(table, key, operand);
    }

    /** Removes all keys from one on, up to another one, which is not among them; null is no bound. */
    public void deleteRange(Table table, byte[] from, byte[] to) {
        pending.deleteRange(table, from, to);
    }

    /** Commits at the usual durability: {@link #commit(Durability, byte[])}. */
    public long commit() {
        return commit(-1, null);
    }

    /** Commits. */
    public long commit(Durability durability) {
        return commit(durability.ordinal(), null);
    }

    /**
     * Writes all of it, together with bytes that {@link Database#metadata} gives back.
     *
     * @return the number of the last record
     * @throws ForebayException.Conflict where somebody else has changed what was read: nothing is written; begin anew
     */
    public long commit(Durability durability, byte[] metadata) {
        return commit(durability.ordinal(), Objects.requireNonNull(metadata, "metadata"));
    }

    private long commit(int durability, byte[] metadata) {
        try {
            return commitTransaction(number, pending.writes(), pending.bytes(), metadata, durability);
        } finally {
            pending.clear();
            letGo();
            fence(null);
        }
    }

    /** Gives it up, unless it was committed. */
    @Override
    public void close() {
        pending.clear();
        letGo();
    }

    private void fence(Table table) {
        Reference.reachabilityFence(this);
        Reference.reachabilityFence(database);
        Reference.reachabilityFence(table);
        Reference.reachabilityFence(pending);
    }
}
