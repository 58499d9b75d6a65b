package dev.forebay;

import java.lang.ref.Reference;
import java.util.List;

/**
 * A database as it was at a moment, over all tables. It holds memory and files until it is closed, as it is at the latest
 * when its database is. Any number of threads may use it.
 */
public final class Snapshot extends Native implements AutoCloseable {
    private final Database database;

    Snapshot(Database database, long number) {
        super(number);
        this.database = database;
    }

    /** A table that was there, also one that was dropped since. */
    public Table table(String name) {
        try {
            return new Table(database, name, snapshotTable(number, Items.bytes(name)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** What came with the last commit before it that had metadata: {@link Database#metadata}. */
    public byte[] metadata() {
        try {
            return snapshotMetadata(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The value that a key had, or null. */
    public byte[] get(Table table, byte[] key) {
        return table.get(this, key);
    }

    /** Whether a table had a key. */
    public boolean contains(Table table, byte[] key) {
        return table.contains(this, key);
    }

    /** The values that keys had, in their order; null for a key that was not there. One native call. */
    public List<byte[]> getMany(Table table, List<byte[]> keys) {
        return table.getMany(this, keys);
    }

    /** All entries that a table had, in its own order. */
    public Scan scan(Table table) {
        return range(table, null, null, Direction.FORWARD);
    }

    /** Entries from a key on, up to another one, which is not among them; null is no bound. */
    public Scan range(Table table, byte[] from, byte[] to) {
        return range(table, from, to, Direction.FORWARD);
    }

    /** The same, either way. */
    public Scan range(Table table, byte[] from, byte[] to, Direction direction) {
        return table.range(this, from, to, direction);
    }

    /** Entries whose keys begin so. */
    public Scan prefix(Table table, byte[] prefix) {
        return prefix(table, prefix, Direction.FORWARD);
    }

    /** The same, either way. */
    public Scan prefix(Table table, byte[] prefix, Direction direction) {
        return table.prefix(this, prefix, direction);
    }

    /** A cursor over what a table in key order had. */
    public Cursor cursor(Table table) {
        return table.cursor(this);
    }

    /** How many keys a table had. */
    public long count(Table table) {
        return table.count(this);
    }

    /** Lets go of what it holds. Again does nothing. Scans of it go on. */
    @Override
    public void close() {
        letGo();
    }
}
