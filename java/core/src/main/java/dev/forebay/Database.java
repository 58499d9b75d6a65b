package dev.forebay;

import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;

/**
 * An open database: a directory of tables under one log and one memory limit. Any number of threads may use it.
 *
 * <p>{@link #close} closes what was opened of it, too: tables, snapshots, scans. It waits for calls of other threads. A
 * database that is forgotten is closed once nobody can reach it or its tables; until then it holds its directory, so close
 * it. What a process does not close is, when it is opened again, as after a crash.
 */
public final class Database extends Native implements AutoCloseable {
    private Database(long number) {
        super(number);
    }

    /**
     * Opens the database in a directory, or makes one there.
     *
     * @throws ForebayException.Busy where it is open already
     * @throws ForebayException.NotFound where it is not there and may not be made
     * @throws ForebayException.InvalidArgument for an option that is none
     */
    public static Database open(Path path, Options options) {
        Pool pool = options.pool();
        try {
            byte[] name = options.keyName() == null ? null : Items.bytes(options.keyName());
            long of = pool == null ? 0 : pool.number;
            return new Database(open(Items.bytes(path.toString()), options.items(), of, name, options.key()));
        } finally {
            Reference.reachabilityFence(pool);
        }
    }

    /** The same with the usual options. */
    public static Database open(Path path) {
        return open(path, new Options());
    }

    /** Removes the database in a directory, which is not open. */
    public static void destroy(Path path) {
        Native.destroy(Items.bytes(path.toString()));
    }

    /** Opens a table, or makes it: in hash order, by default. */
    public Table table(String name) {
        return table(name, new TableOptions());
    }

    /**
     * Opens a table, or makes it. Options count when it is made; others later are an error, and {@link #alter} changes
     * them. Each call gives another object of the same table: keep it.
     */
    public Table table(String name, TableOptions options) {
        try {
            return new Table(this, name, openTable(number, Items.bytes(name), options.items()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The tables' names and their layouts. */
    public Map<String, String> tables() {
        try {
            return new Items(tables(number)).pairs();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Gives a table in use other options; those that are not named stay. */
    public void alter(String name, TableOptions options) {
        try {
            alter(number, Items.bytes(name), options.items());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Drops a table with all its records. */
    public void dropTable(String name) {
        try {
            dropTable(number, Items.bytes(name));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Writes a batch at the usual durability: {@link #write(WriteBatch, Durability, byte[])}. */
    public long write(WriteBatch batch) {
        return commit(batch, -1, null);
    }

    /** Writes a batch: all of it or, on an error or in a crash, nothing. */
    public long write(WriteBatch batch, Durability durability) {
        return commit(batch, durability.ordinal(), null);
    }

    /**
     * Writes a batch together with bytes that {@link #metadata} gives back: how far the input was read, say. After any
     * crash those are of the last batch that was kept, so what was read behind them is not in the tables either. They
     * stand in a table of their own, {@code commit.metadata}.
     *
     * <p>A database without a log ({@code set("log", "false")}) is after a crash as its last flush left it.
     *
     * @return the number of the batch's last record. The batch is empty then
     */
    public long write(WriteBatch batch, Durability durability, byte[] metadata) {
        return commit(batch, durability.ordinal(), Objects.requireNonNull(metadata, "metadata"));
    }

    private long commit(WriteBatch batch, int durability, byte[] metadata) {
        try {
            long sequence = write(number, batch.writes(), batch.bytes(), metadata, durability);
            batch.clear();
            return sequence;
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(batch);
        }
    }

    /** What came with the last batch that had metadata, or null. */
    public byte[] metadata() {
        try {
            return metadata(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Begins a transaction, which sees the database as it is now. */
    public Transaction begin() {
        try {
            return new Transaction(this, beginTransaction(number));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Lets a function read and write in a transaction, and commits that; where it conflicts, begins anew with what is there
     * by then, up to as many times as the option {@code transaction_attempts} says, so the function should do nothing
     * else. An exception of the function's ends this, and nothing is written.
     *
     * @return what the function returned last
     * @throws ForebayException.Conflict where it conflicted each time
     */
    public <T> T transaction(Function<Transaction, T> act) {
        for (int left = attempts(); ; left--) {
            try (Transaction transaction = begin()) {
                T value = act.apply(transaction);
                // A conflict of the function's own is none of this one's.
                try {
                    transaction.commit();
                    return value;
                } catch (ForebayException.Conflict conflict) {
                    if (left <= 1) {
                        throw conflict;
                    }
                }
            }
        }
    }

    private int attempts() {
        try {
            return attempts(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * What was committed after the record with this number, commit by commit; 0 for all there is.
     *
     * @throws ForebayException.ChangesGone where that is no more kept: the option {@code keep_changes} says how much is
     */
    public Changes changes(long since) {
        try {
            return new Changes(this, changes(number, since));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Opens groups that are kept under a name, or makes them; without functions only what is there is opened. */
    public StoredAggregator aggregator(String name, AggregatorOptions options) {
        ArrowStream schema = options.schema();
        try {
            long of = schema == null ? 0 : schema.number;
            return new StoredAggregator(
                    this, openAggregator(number, Items.bytes(name), options.items(), options.keys(), options.aggs(), of));
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(schema);
        }
    }

    /** The database as it is now, over all tables. */
    public Snapshot snapshot() {
        try {
            return new Snapshot(this, snapshot(number));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Makes everything accepted so far survive a power loss. */
    public void sync() {
        try {
            sync(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Returns once everything up to a number, as {@code write} gives it, survives a power loss. */
    public void waitDurable(long sequence) {
        try {
            waitDurable(number, sequence);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The number of the last record. */
    public long lastSequence() {
        try {
            return lastSequence(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The number up to which records survive a power loss. */
    public long durableSequence() {
        try {
            return durableSequence(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Writes all buffered records to files. Without a log, that makes them durable. */
    public void flush() {
        try {
            flush(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Writes all buffered records to files, and returns once background work has nothing left to do. */
    public void waitUntilIdle() {
        try {
            waitUntilIdle(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Where it is open for reading only: goes on to what another process has written, and returns the last number. */
    public long refresh() {
        try {
            return refresh(number);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** How many bytes a second background work goes through; 0 for no limit. */
    public void setBackgroundRate(long bytesASecond) {
        try {
            backgroundRate(number, bytesASecond);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Makes a copy of the database as it is now, in a new directory on the same file system: most files are linked. Writes
     * go on. The copy is a database: to restore it, {@link #open} it, or put its files into a directory and open that.
     *
     * @return what it is made of, for who copies it elsewhere
     */
    public Checkpoint checkpoint(Path path) {
        try {
            return Checkpoint.of(new Items(checkpoint(number, Items.bytes(path.toString()))));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Keeps all tables as they are now, under a name. Returns the number of the last record in it. */
    public long savepoint(String name) {
        try {
            return savepoint(number, Items.bytes(name));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The savepoints' names, oldest first. */
    public List<String> savepoints() {
        try {
            return new Items(savepoints(number)).texts();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The database as it was at a savepoint. */
    public Snapshot openSavepoint(String name) {
        try {
            return new Snapshot(this, openSavepoint(number, Items.bytes(name)));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Makes all tables what they were at a savepoint. */
    public void rollback(String name) {
        try {
            rollback(number, Items.bytes(name));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Gives up a savepoint. */
    public void dropSavepoint(String name) {
        try {
            dropSavepoint(number, Items.bytes(name));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Reads every byte that is kept. Returns what is wrong. */
    public List<String> verify() {
        try {
            return new Items(verifyDatabase(number)).texts();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Counters and gauges, by name, such as {@code user_records} and {@code commit_latency_us.p99}. */
    public Map<String, Number> stats() {
        try {
            return Items.numbers(stats(number));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** The tables' shapes, as JSON. */
    public String describe() {
        try {
            return new Items(describe(number)).all();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Makes everything durable and closes. Again does nothing. */
    @Override
    public void close() {
        try {
            close(number);
        } finally {
            letGo();
        }
    }
}
