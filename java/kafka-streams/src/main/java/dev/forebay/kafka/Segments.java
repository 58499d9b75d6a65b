package dev.forebay.kafka;

import dev.forebay.Direction;
import dev.forebay.Scan;
import dev.forebay.Table;
import dev.forebay.WriteBatch;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.streams.errors.ProcessorStateException;

/**
 * The tables of a store whose entries expire: each has those of a time. Its name tells which, so those of a store that was
 * opened with another retention before stay, and what is made beside them takes the time that they leave.
 *
 * <p>Where entries of a time are asked for, of all keys, a second table has the keys in that order, without values. It has a
 * mark once it has all keys; one without is made anew.
 */
final class Segments {
    private static final String UNTIL = "..";
    private static final String BY_TIME = "time-";
    private static final byte[] NONE = {};
    /** A key that is shorter than any, and below all that is asked for. */
    private static final byte[] MARK = {0};
    private static final int BATCH_RECORDS = 1000;

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
    /** The end of the last one that has expired, whose table may still be there: no other one has its time. */
    private long expiredUntil = Long.MIN_VALUE;

    /** Opens those that are there. */
    Segments(StateDatabase database, Format format, Keys keys, long interval, boolean isByTime) {
        this.database = database;
        this.prefix = format.text + "-";
        this.keys = keys;
        this.interval = interval;
        this.isByTime = isByTime;
        Set<String> tables = Set.copyOf(database.tables());
        for (String table : tables) {
            if (table.startsWith(BY_TIME) && !(isByTime && tables.contains(table.substring(BY_TIME.length())))) {
                database.dropDerived(table); // Nobody would keep it up to date, or a crash has left it alone.
            } else if (table.startsWith(prefix)) {
                String[] times = table.substring(prefix.length()).split("\\Q" + UNTIL + "\\E");
                if (times.length != 2) {
                    throw new ProcessorStateException("table `" + table
                            + "` was made by another version: remove the store's folder, and it is restored");
                }
                long first = Long.parseLong(times[0]);
                byFirst.put(first, new Segment(
                        first, Long.parseLong(times[1]), database.table(table), isByTime ? byTime(table, tables) : null));
            }
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
                if (batch.size() == BATCH_RECORDS) {
                    database.write(batch);
                }
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
        Segment there = at(time);
        if (there != null) {
            return there.last() < oldest ? null : there;
        }
        if (time <= expiredUntil) {
            return null;
        }
        long first = Math.floorDiv(time, interval) * interval;
        long last = first + interval - 1;
        Map.Entry<Long, Segment> before = byFirst.lowerEntry(time);
        long until = before == null ? expiredUntil : Math.max(expiredUntil, before.getValue().last());
        Map.Entry<Long, Segment> behind = byFirst.higherEntry(time);
        // Beyond a long's ends they would begin behind the time, or end before it.
        first = Math.max(first > time ? Long.MIN_VALUE : first, until == Long.MIN_VALUE ? until : until + 1);
        last = Math.min(last < time ? Long.MAX_VALUE : last, behind == null ? Long.MAX_VALUE : behind.getKey() - 1);
        return last < oldest ? null : make(first, last);
    }

    private Segment make(long first, long last) {
        String table = prefix + first + UNTIL + last;
        Segment made = new Segment(first, last, database.table(table), isByTime ? database.table(BY_TIME + table) : null);
        if (isByTime) {
            WriteBatch batch = new WriteBatch();
            batch.put(made.byTime(), MARK, NONE);
            database.write(batch);
        }
        byFirst.put(first, made);
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
            expiredUntil = Math.max(expiredUntil, expired.last());
            if (expired.byTime() != null) {
                database.dropTable(expired.byTime().name());
            }
            database.dropTable(expired.entries().name());
        }
    }
}
