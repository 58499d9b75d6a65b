package dev.forebay;

import java.util.Objects;

/** Groups that a database keeps: {@link Database#aggregator} opens them. */
public final class StoredAggregator extends Groups {
    private static final WriteBatch NOTHING = new WriteBatch();

    StoredAggregator(Database database, long number) {
        super(database, number);
    }

    /**
     * Adds rows, which are committed in parts. {@link #commit} adds all or nothing.
     *
     * @return how many rows there were
     */
    public long update(ArrowStream rows, Durability durability) {
        return update(rows, durability.ordinal());
    }

    /** Merges states, batch by batch. Returns how many. */
    public long merge(ArrowStream states, Durability durability) {
        return merge(states, durability.ordinal());
    }

    /** Adds rows, all or none, together with bytes that {@link #metadata} gives back. */
    public long commit(ArrowStream rows, Durability durability, byte[] metadata) {
        return commit(rows, null, durability, metadata);
    }

    /**
     * Adds rows together with writes to tables and with bytes that {@link #metadata} gives back, such as how far the input
     * was read: all of it or nothing. After any crash those are of the last commit that was kept.
     *
     * @param rows or null
     * @param batch or null; it is empty then
     * @param metadata or null
     * @return the number of the last record
     */
    public long commit(ArrowStream rows, WriteBatch batch, Durability durability, byte[] metadata) {
        WriteBatch writes = batch == null ? NOTHING : batch;
        try (rows) {
            long of = rows == null ? 0 : rows.number;
            long sequence = aggregatorCommit(number, of, writes.writes(), writes.bytes(), metadata, durability.ordinal());
            if (batch != null) {
                batch.clear();
            }
            return sequence;
        } finally {
            fence();
        }
    }

    /** What came with the last commit that had metadata, or null. */
    public byte[] metadata() {
        try {
            return aggregatorMetadata(number);
        } finally {
            fence();
        }
    }

    /** Removes a group, of an aggregator that was made with {@code set("deletes", "true")}. */
    public void delete(Durability durability, Object... key) {
        Objects.requireNonNull(durability, "durability");
        try {
            aggregatorDelete(number, Values.items(key), durability.ordinal());
        } finally {
            fence();
        }
    }
}
