package dev.forebay;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * A table: keys and values are bytes. Any number of threads may use it. It needs no close: it goes with its database, or
 * once nobody has it. Single writes are as durable as the database's option {@code durability} says; many writes go
 * faster in a {@link WriteBatch}.
 *
 * <p>It knows the order that it had when it was opened. Ranges and prefixes need a layout in key order, such as
 * {@code wb-tree:ordered}. Keys are in the order of their bytes, which are unsigned.
 */
public final class Table extends Native {
    /** Stays open for as long as the table is used. */
    private final Database database;
    private final String name;

    Table(Database database, String name, long number) {
        super(number);
        this.database = database;
        this.name = name;
    }

    /** The name. */
    public String name() {
        return name;
    }

    /** Whose table it is. */
    public Database database() {
        return database;
    }

    /** The value of a key, or null. */
    public byte[] get(byte[] key) {
        return get(null, key);
    }

    byte[] get(Snapshot snapshot, byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            return getValue(number, numberOf(snapshot), key);
        } finally {
            fence(snapshot);
        }
    }

    /** Whether there is such a key. */
    public boolean contains(byte[] key) {
        return contains(null, key);
    }

    boolean contains(Snapshot snapshot, byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            return contains(number, numberOf(snapshot), key);
        } finally {
            fence(snapshot);
        }
    }

    /** The values of keys, as of one moment, in their order; null for a key that is not there. One native call. */
    public List<byte[]> getMany(List<byte[]> keys) {
        return getMany(null, keys);
    }

    List<byte[]> getMany(Snapshot snapshot, List<byte[]> keys) {
        try {
            Items found = new Items(getMany(number, numberOf(snapshot), Items.of(keys)));
            List<byte[]> values = new ArrayList<>(keys.size());
            while (found.hasNext()) {
                values.add(found.next());
            }
            return values;
        } finally {
            fence(snapshot);
        }
    }

    /**
     * Whether there are such keys, in their order. One native call that brings no values; where others write meanwhile, not all
     * is of one moment.
     */
    public boolean[] containsMany(List<byte[]> keys) {
        try {
            byte[] found = containsMany(number, Items.of(keys));
            boolean[] areThere = new boolean[found.length];
            for (int place = 0; place < found.length; place++) {
                areThere[place] = found[place] != 0;
            }
            return areThere;
        } finally {
            fence(null);
        }
    }

    /** Sets a key. */
    public void put(byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        try {
            put(number, key, value);
        } finally {
            fence(null);
        }
    }

    /** Sets a key for a time, in a table with {@code ttl}. */
    public void put(byte[] key, byte[] value, Duration ttl) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        try {
            putWithTtl(number, key, value, ttl.toMillis());
        } finally {
            fence(null);
        }
    }

    /** Removes a key, present or not. */
    public void delete(byte[] key) {
        Objects.requireNonNull(key, "key");
        try {
            delete(number, key);
        } finally {
            fence(null);
        }
    }

    /** Merges an operand into a key, by the table's rule. Reads nothing. */
    public void merge(byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        try {
            merge(number, key, operand);
        } finally {
            fence(null);
        }
    }

    /** Removes all keys from one on, up to another one, which is not among them; null is no bound. */
    public void deleteRange(byte[] from, byte[] to) {
        try {
            deleteRange(number, from, to);
        } finally {
            fence(null);
        }
    }

    /** Removes all keys that begin so. */
    public void deletePrefix(byte[] prefix) {
        Objects.requireNonNull(prefix, "prefix");
        try {
            deletePrefix(number, prefix);
        } finally {
            fence(null);
        }
    }

    /** Gives a key another value if it has the expected one; null is no value. Returns whether it had. */
    public boolean compareAndSwap(byte[] key, byte[] expected, byte[] value) {
        Objects.requireNonNull(key, "key");
        try {
            return compareAndSwap(number, key, expected, value);
        } finally {
            fence(null);
        }
    }

    /** All entries, in the table's own order. */
    public Scan scan() {
        return range(null, null, Direction.FORWARD);
    }

    /** Entries from a key on, up to another one, which is not among them; null is no bound. */
    public Scan range(byte[] from, byte[] to) {
        return range(from, to, Direction.FORWARD);
    }

    /** The same, either way. */
    public Scan range(byte[] from, byte[] to, Direction direction) {
        return range(null, from, to, direction);
    }

    Scan range(Snapshot snapshot, byte[] from, byte[] to, Direction direction) {
        try {
            return new Scan(this, scanRange(number, numberOf(snapshot), from, to, direction.ordinal()));
        } finally {
            fence(snapshot);
        }
    }

    /** Entries whose keys begin so. */
    public Scan prefix(byte[] prefix) {
        return prefix(prefix, Direction.FORWARD);
    }

    /** The same, either way. */
    public Scan prefix(byte[] prefix, Direction direction) {
        return prefix(null, prefix, direction);
    }

    Scan prefix(Snapshot snapshot, byte[] prefix, Direction direction) {
        Objects.requireNonNull(prefix, "prefix");
        try {
            return new Scan(this, scanPrefix(number, numberOf(snapshot), prefix, direction.ordinal()));
        } finally {
            fence(snapshot);
        }
    }

    /** A cursor over what is there now, of a table in key order. */
    public Cursor cursor() {
        return cursor(null);
    }

    Cursor cursor(Snapshot snapshot) {
        try {
            return new Cursor(this, cursor(number, numberOf(snapshot)));
        } finally {
            fence(snapshot);
        }
    }

    /** How many keys there are. Walks the table, and remembers the number while the table does not change. */
    public long count() {
        return count(null);
    }

    long count(Snapshot snapshot) {
        try {
            return count(number, numberOf(snapshot));
        } finally {
            fence(snapshot);
        }
    }

    /** About how many keys a range has, without reading: every version and every delete counts. */
    public long approximateCount(byte[] from, byte[] to) {
        try {
            return approximateCount(number, from, to);
        } finally {
            fence(null);
        }
    }

    /** The layout, as a text. */
    public String layout() {
        try {
            return new Items(layout(number)).all();
        } finally {
            fence(null);
        }
    }

    /** Gives the table another layout while it is in use. Rewrites it where the order changes; then open it again. */
    public void setLayout(String layout) {
        try {
            setLayout(number, Items.bytes(layout));
        } finally {
            fence(null);
        }
    }

    /** Merges all there is: the least space, and the fewest reads. Rewrites the table. */
    public void compact() {
        try {
            compact(number);
        } finally {
            fence(null);
        }
    }

    private static long numberOf(Snapshot snapshot) {
        return snapshot == null ? 0 : snapshot.number;
    }

    /** Until here this table, its database and a snapshot are not let go of. */
    private void fence(Snapshot snapshot) {
        Reference.reachabilityFence(this);
        Reference.reachabilityFence(snapshot);
    }

    @Override
    public String toString() {
        return "Table " + name;
    }
}
