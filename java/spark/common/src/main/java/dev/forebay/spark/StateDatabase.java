package dev.forebay.spark;

import dev.forebay.Checkpoint;
import dev.forebay.Database;
import dev.forebay.Direction;
import dev.forebay.Durability;
import dev.forebay.Options;
import dev.forebay.Pool;
import dev.forebay.Scan;
import dev.forebay.TableOptions;
import dev.forebay.WriteBatch;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The database of one store, in a directory of this executor. It has no log: changelogs are the log. One thread at a time
 * uses it.
 *
 * <p>It holds one version and what was written since. What was read stays as it is while more is written.
 */
final class StateDatabase implements AutoCloseable {
    private static final int KEY_BYTES_MAX = 64 << 10;
    private static final int VALUE_BYTES_MAX = 256 << 20;
    /** So many bytes wait for one call. */
    private static final long PENDING_BYTES_MAX = 2 << 20;

    private final Database database;
    private final Settings settings;
    private final Map<String, Family> families = new LinkedHashMap<>();
    private final Map<Short, Family> familiesById = new HashMap<>();
    private final Map<Family, Pending> pending = new HashMap<>();
    /** Those that are open; a thread that comes too late may close its own. */
    private final Set<Scan> scans = ConcurrentHashMap.newKeySet();
    private final WriteBatch batch = new WriteBatch();
    private boolean hasFailed;
    private final KeyCounts counts;
    private short idMax;
    private long stallMilliseconds;

    /** Opens what is in a directory, or makes it there. */
    StateDatabase(Path directory, Settings settings, Pool pool) {
        this.settings = settings;
        this.counts = new KeyCounts(settings.countsKeys());
        Options options = new Options()
                .set("log", "false").set("read_compaction_ratio", Double.toString(settings.readCompactionRatio())).pool(pool);
        this.database = Database.open(directory, options);
    }

    /** Takes over what a snapshot says of its families and keys. */
    void restore(Collection<Family.Shape> shapes, int idMax, long keys, long internalKeys) {
        for (Family.Shape shape : shapes) {
            add(new Family(shape, database.table(shape.table())));
        }
        this.idMax = (short) idMax;
        counts.restore(keys, internalKeys, families.values());
    }

    /** Makes the families of another provider's snapshot; {@link #bring} fills them. */
    void restoreEmpty(Collection<Family.Shape> shapes, int idMax) {
        shapes.forEach(this::create);
        this.idMax = (short) idMax;
    }

    void restoreCounts(long keys, long internalKeys) {
        counts.restore(keys, internalKeys, families.values());
    }

    /** Puts what is counted already, or was. */
    void bring(Family family, byte[] key, byte[] value) {
        check(family, key, value);
        batch.put(family.table, key, value);
        if (batch.bytes() > PENDING_BYTES_MAX) {
            endBringing();
        }
    }

    /** All that was brought is written. */
    void endBringing() {
        if (batch.size() > 0) {
            database.write(batch, Durability.MEMORY);
        }
    }

    /** Many writes come, and nobody asks for the number of keys meanwhile. */
    void beginReplay() {
        counts.beginReplay();
    }

    void endReplay() {
        flush();
        counts.endReplay(families.values());
    }

    private void add(Family family) {
        families.put(family.shape.name(), family);
        familiesById.put(family.shape.id(), family);
        pending.put(family, new Pending(family));
    }

    /** Makes the first family, which has number 0. */
    void createDefault(String name, Family.Order order, Family.Values values) {
        if (!families.containsKey(name)) {
            create(new Family.Shape(name, (short) 0, false, order, values));
        }
    }

    /** Makes a family. Returns whether there was none of that name, or one of which not all was known. */
    boolean createFamily(String name, boolean internal, Family.Order order, Family.Values values) {
        Family known = families.get(name);
        if (known != null) {
            boolean isUnknown = known.shape.values() == Family.Values.UNKNOWN;
            if (isUnknown) {
                makeAnew(known, new Family.Shape(name, known.shape.id(), known.shape.internal(), order, values));
            }
            return isUnknown;
        }
        if (idMax == Short.MAX_VALUE) {
            throw new IllegalStateException("a store has had " + Short.MAX_VALUE + " column families: start another query");
        }
        idMax += 1;
        create(new Family.Shape(name, idMax, internal, order, values));
        return true;
    }

    /** Copies a family into a table as its operator wants it. */
    private void makeAnew(Family from, Family.Shape shape) {
        if (shape.values() == Family.Values.LIST && !settings.hasListDelimiters()) {
            throw new IllegalArgumentException("column family " + shape.name() + " has lists without delimiters, as RocksDB's"
                    + " provider writes them since Spark 4.2: such a checkpoint cannot be taken over");
        }
        flush();
        pending.remove(from);
        Family to = create(shape);
        try (Scan scan = from.table.scan()) {
            while (scan.advance()) {
                bring(to, scan.key(), scan.value());
            }
        }
        endBringing();
        database.dropTable(from.shape.table());
    }

    private Family create(Family.Shape shape) {
        String layout = shape.order() == Family.Order.HASH ? settings.layout() : settings.orderedLayout();
        TableOptions options = TableOptions.layout(layout).set("codec", settings.codec());
        if (shape.values() != Family.Values.ONE) {
            options.set("merge_rule", "append:" + (char) Family.DELIMITER);
        }
        Family family = new Family(shape, database.table(shape.table(), options));
        add(family);
        return family;
    }

    /** Drops a family that {@link #scan} has shown to be empty, or whose keys were removed. */
    void dropFamily(Family family) {
        flush();
        pending.remove(family);
        families.remove(family.shape.name());
        familiesById.remove(family.shape.id());
        database.dropTable(family.shape.table());
    }

    /** The family of a name, or null. */
    Family family(String name) {
        return families.get(name);
    }

    /** The family of a number, or null. */
    Family family(short id) {
        return familiesById.get(id);
    }

    Collection<Family> families() {
        return families.values();
    }

    int idMax() {
        return idMax;
    }

    KeyCounts counts() {
        return counts;
    }

    /** The value of a key, or null. */
    byte[] get(Family family, byte[] key) {
        Pending waiting = pending.get(family);
        switch (waiting.lookup(key)) {
            case ABSENT:
                return null;
            case PRESENT:
                return waiting.found;
            case MERGED:
                flush();
                break;
            default:
        }
        byte[] value = family.table.get(key);
        waiting.read(key, value != null);
        flushLong(waiting);
        return value;
    }

    /** The values of keys, in their order; null for one that is not there. */
    List<byte[]> getMany(Family family, List<byte[]> keys) {
        flush();
        return family.table.getMany(keys);
    }

    void put(Family family, byte[] key, byte[] value) {
        check(family, key, value);
        Pending waiting = pending.get(family);
        waiting.put(key, value);
        flushLong(waiting);
    }

    void merge(Family family, byte[] key, byte[] operand) {
        check(family, key, operand);
        Pending waiting = pending.get(family);
        if (waiting.bytes() + operand.length > VALUE_BYTES_MAX) {
            flush();
        }
        waiting.merge(key, operand);
        flushLong(waiting);
    }

    void delete(Family family, byte[] key) {
        check(family, key, null);
        Pending waiting = pending.get(family);
        waiting.delete(key);
        flushLong(waiting);
    }

    private static void check(Family family, byte[] key, byte[] value) {
        if (key.length > KEY_BYTES_MAX) {
            throw new IllegalArgumentException("a key of column family " + family.shape.name() + " has " + key.length
                    + " bytes: state in Forebay has keys of up to " + KEY_BYTES_MAX + " bytes, so group by less");
        }
        if (value != null && value.length > VALUE_BYTES_MAX) {
            throw new IllegalArgumentException("a value of column family " + family.shape.name() + " has "
                    + value.length + " bytes: state in Forebay has values of up to " + VALUE_BYTES_MAX + " bytes");
        }
    }

    private void flushLong(Pending waiting) {
        if (waiting.bytes() > PENDING_BYTES_MAX) {
            flush();
        }
    }

    /** Writes what waits. Once that has failed it is not known what is there: nothing is written or committed any more. */
    void flush() {
        if (hasFailed) {
            throw new IllegalStateException("an earlier write to the state failed: the batch has to be done again");
        }
        hasFailed = true;
        pending.forEach((family, waiting) -> {
            if (!waiting.isEmpty()) {
                counts.count(family, waiting);
                waiting.addTo(batch);
            }
        });
        if (batch.size() > 0) {
            database.write(batch, Durability.MEMORY);
        }
        hasFailed = false;
        forgetReads();
    }

    /** What was read is not looked for any more: nothing waits. */
    void forgetReads() {
        pending.values().forEach(Pending::clear);
    }

    /** All entries of a family. */
    Scan scan(Family family) {
        flush();
        return open(family.table.scan());
    }

    /** Entries whose keys begin so, in the order of keys. */
    Scan prefix(Family family, byte[] prefix) {
        flush();
        return open(family.table.prefix(prefix));
    }

    /** Entries from a key on, up to another one, which is not among them; null is no bound. */
    Scan range(Family family, byte[] from, byte[] to) {
        flush();
        return open(family.table.range(from, to, Direction.FORWARD));
    }

    /** Deletes keys from one on, up to another one, which is not among them. */
    void deleteRange(Family family, byte[] from, byte[] to) {
        Scan scan = range(family, from, to);
        try {
            while (scan.advance()) {
                delete(family, scan.key());
            }
        } finally {
            close(scan);
        }
    }

    private Scan open(Scan scan) {
        scans.add(scan);
        return scan;
    }

    /** Closes a scan, at its end or before. */
    void close(Scan scan) {
        scan.close();
        scans.remove(scan);
    }

    /** Closes scans that were forgotten. */
    void closeScans() {
        scans.forEach(Scan::close);
        scans.clear();
    }

    /** Makes a copy of what is there, mostly of links. What is in lists is linked; what is not would be copied each time. */
    Checkpoint checkpoint(Path directory) {
        flush();
        database.flush();
        return database.checkpoint(directory);
    }

    /** Counters and gauges. */
    Map<String, Number> stats() {
        return database.stats();
    }

    /** For how long writers have waited for merges since this was asked last. */
    long stallMillisecondsMore(Map<String, Number> stats) {
        long before = stallMilliseconds;
        stallMilliseconds = (long) (1000 * stats.getOrDefault("stall_seconds", 0).doubleValue());
        return stallMilliseconds - before;
    }

    @Override
    public void close() {
        closeScans();
        database.close();
    }
}
