package dev.forebay.kafka;

import dev.forebay.Direction;
import dev.forebay.Scan;
import dev.forebay.Table;
import dev.forebay.WriteBatch;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.regex.Pattern;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The tables of a store whose entries expire: each has those of an interval, which its name tells. A table of another
 * interval was made under another retention: its entries are divided among those of this one when it is opened. The host
 * merges what it caches with a store's entries, and takes both to be in the order of intervals, and of keys within them.
 *
 * <p>Where entries of a time are asked for, of all keys, a second table has the keys in that order, without values. It has a
 * mark once it has all keys; one without is made anew.
 */
final class Segments {
    private static final Logger LOG = LoggerFactory.getLogger(Segments.class);
    private static final String UNTIL = "..";
    private static final String BY_TIME = "time-";
    private static final byte[] NONE = {};
    /** A key that is shorter than any, and below all that is asked for. */
    private static final byte[] MARK = {0};
    private static final int BATCH_RECORDS = 1000;
    private static final int BATCH_BYTES = 1 << 20;

    /** Entries from a time to another one in the order of keys, and, or null, their keys in that of time. */
    record Segment(long first, long last, Table entries, Table byTime) {
        void add(WriteBatch batch, Keys keys, byte[] binary, byte[] value) {
            if (value == null) {
                batch.delete(entries, binary);
            } else {
                batch.put(entries, binary, value);
            }
            if (byTime != null) {
                byte[] timed = keys.byTime(binary);
                if (value == null) {
                    batch.delete(byTime, timed);
                } else {
                    batch.put(byTime, timed, NONE);
                }
            }
        }
    }

    private final StateDatabase database;
    /** What the names of tables of entries begin with. */
    private final String prefix;
    private final Keys keys;
    private final long interval;
    private final boolean isByTime;
    private final NavigableMap<Long, Segment> byFirst = new ConcurrentSkipListMap<>();

    /** Opens those that are there. What is before the oldest time has expired. */
    Segments(StateDatabase database, Format format, Keys keys, long interval, boolean isByTime, long oldest) {
        this.database = database;
        this.prefix = format.text + "-";
        this.keys = keys;
        this.interval = interval;
        this.isByTime = isByTime;
        Set<String> tables = Set.copyOf(database.tables());
        List<Segment> others = new ArrayList<>();
        for (String table : tables) {
            if (table.startsWith(BY_TIME) && !(isByTime && tables.contains(table.substring(BY_TIME.length())))) {
                database.dropDerived(table); // Nobody would keep it up to date, or a crash has left it alone.
            } else if (table.startsWith(prefix)) {
                Segment there = named(table);
                if (there.equals(ofTime(there.first()))) {
                    byFirst.put(there.first(), opened(there, tables));
                } else {
                    others.add(there);
                }
            }
        }
        others.forEach(other -> divide(other, oldest, tables));
        if (!others.isEmpty() && database.isExactlyOnce()) {
            // A dropped table is gone at once, also for who opens the store at least once and does not go back. And who
            // does would divide all of it again.
            database.makeDurable();
        }
        others.forEach(other -> database.dropTable(name(other)));
    }

    /** What a table's name says. */
    private Segment named(String table) {
        String[] times = table.substring(prefix.length()).split(Pattern.quote(UNTIL));
        if (times.length != 2) {
            throw new ProcessorStateException(
                    "table `" + table + "` was made by another version: remove the store's folder, and it is restored");
        }
        return new Segment(Long.parseLong(times[0]), Long.parseLong(times[1]), null, null);
    }

    /** That of the interval of a time, whose table is not opened. */
    private Segment ofTime(long time) {
        long first = Math.floorDiv(time, interval) * interval;
        long last = first + interval - 1;
        // Beyond a long's ends they would begin behind the time, or end before it.
        return new Segment(first > time ? Long.MIN_VALUE : first, last < time ? Long.MAX_VALUE : last, null, null);
    }

    private String name(Segment segment) {
        return prefix + segment.first() + UNTIL + segment.last();
    }

    private Segment opened(Segment there, Set<String> tables) {
        String table = name(there);
        return new Segment(there.first(), there.last(), database.table(table), isByTime ? byTime(table, tables) : null);
    }

    /** Moves what has not expired to where it belongs. Each entry is in one table at every moment, also after a crash. */
    private void divide(Segment other, long oldest, Set<String> tables) {
        String name = name(other);
        LOG.info("Table `{}` is of another retention, and is divided", name);
        if (isByTime && tables.contains(BY_TIME + name)) {
            database.dropDerived(BY_TIME + name);
        }
        Table table = database.table(name);
        WriteBatch batch = new WriteBatch();
        try (Scan scan = table.scan()) {
            while (scan.advance()) {
                byte[] binary = scan.key();
                Segment segment = at(keys.time(binary), oldest);
                if (segment != null) {
                    segment.add(batch, keys, binary, scan.value());
                    batch.delete(table, binary);
                }
                writeIfLong(batch);
            }
        }
        database.write(batch);
    }

    private void writeIfLong(WriteBatch batch) {
        if (batch.size() >= BATCH_RECORDS || batch.bytes() >= BATCH_BYTES) {
            database.write(batch);
        }
    }

    /** The table in the order of time of one that is there. */
    private Table byTime(String table, Set<String> tables) {
        String name = BY_TIME + table;
        if (tables.contains(name)) {
            Table there = database.table(name);
            if (there.get(MARK) != null) {
                return there;
            }
            database.dropDerived(name);
        }
        Table made = database.table(name);
        WriteBatch batch = new WriteBatch();
        try (Scan scan = database.table(table).scan()) {
            while (scan.advance()) {
                batch.put(made, keys.byTime(scan.key()), NONE);
                writeIfLong(batch);
            }
        }
        batch.put(made, MARK, NONE);
        database.write(batch);
        return made;
    }

    /** The one that has a time, or null. */
    Segment at(long time) {
        Map.Entry<Long, Segment> there = byFirst.floorEntry(time);
        return there != null && time <= there.getValue().last() ? there.getValue() : null;
    }

    /** The one that has a time, made if need be; null if all of it is before the oldest time. */
    Segment at(long time, long oldest) {
        Segment asked = ofTime(time);
        if (asked.last() < oldest) {
            return null;
        }
        Segment there = byFirst.get(asked.first());
        return there != null ? there : make(asked);
    }

    private Segment make(Segment asked) {
        Segment made = opened(asked, Set.of());
        byFirst.put(made.first(), made);
        return made;
    }

    /** The one that begins so; null once it has expired. */
    Segment beginning(long first) {
        return byFirst.get(first);
    }

    /** The beginnings of those that may have a time of this range, in order. */
    Collection<Long> within(long from, long to, Direction direction) {
        Long before = byFirst.floorKey(from);
        long begin = before == null ? from : before;
        if (to < begin) {
            return List.of();
        }
        NavigableMap<Long, Segment> asked = byFirst.subMap(begin, true, to, true);
        return List.copyOf((direction == Direction.FORWARD ? asked : asked.descendingMap()).keySet());
    }

    /** Those that have nothing from a time on go. */
    void dropBefore(long oldest) {
        for (var first = byFirst.firstEntry(); first != null && first.getValue().last() < oldest; first = byFirst.firstEntry()) {
            // First out of sight, then away.
            Segment expired = byFirst.remove(first.getKey());
            if (expired.byTime() != null) {
                database.dropTable(expired.byTime().name());
            }
            database.dropTable(expired.entries().name());
        }
    }
}
