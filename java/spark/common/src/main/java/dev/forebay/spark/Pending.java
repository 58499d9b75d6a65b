package dev.forebay.spark;

import dev.forebay.WriteBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Writes of one family that are not in its table yet: the last one of each key. Many go there by one call, and what is
 * read meanwhile is looked up here first.
 *
 * <p>Keys that were read stay here, too: it is known then whether they exist, which is what counting keys wants to know.
 */
final class Pending {
    private static final int ENTRY_BYTES = 96;

    private enum Write {
        /** The key was read. */
        NONE,
        PUT,
        DELETE,
        MERGE
    }

    private static final class Entry {
        Write write = Write.NONE;
        /** The value, or operands one behind the other; these have room to grow. */
        byte[] value;
        int valueBytes;
        /** Whether the table has the key; null is not known. */
        Boolean existed;
    }

    private record Key(byte[] bytes, int hash) {
        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && hash == key.hash && Arrays.equals(bytes, key.bytes);
        }
    }

    /** What is known of a key's value. */
    enum Known {
        /** Ask the table. */
        NOTHING,
        ABSENT,
        /** {@link #found} has it. */
        PRESENT,
        /** Merges wait: write them, and ask the table. */
        MERGED
    }

    private final Family family;
    private final Map<Key, Entry> entries = new HashMap<>();
    private long bytes;
    private int writes;
    /** The value of the last key that was {@link Known#PRESENT}. */
    byte[] found;

    Pending(Family family) {
        this.family = family;
    }

    long bytes() {
        return bytes;
    }

    int writes() {
        return writes;
    }

    boolean isEmpty() {
        return writes == 0;
    }

    Known lookup(byte[] key) {
        Entry entry = entries.get(key(key));
        if (entry == null) {
            return Known.NOTHING;
        }
        return switch (entry.write) {
            case NONE -> Boolean.FALSE.equals(entry.existed) ? Known.ABSENT : Known.NOTHING;
            case DELETE -> Known.ABSENT;
            case MERGE -> Known.MERGED;
            case PUT -> {
                found = exact(entry);
                yield Known.PRESENT;
            }
        };
    }

    /** A key was looked for in the table. */
    void read(byte[] key, boolean existed) {
        Entry entry = entry(key);
        if (entry.existed == null) {
            entry.existed = existed;
        }
    }

    void put(byte[] key, byte[] value) {
        set(entry(key), Write.PUT, value);
    }

    void delete(byte[] key) {
        set(entry(key), Write.DELETE, null);
    }

    void merge(byte[] key, byte[] operand) {
        Entry entry = entry(key);
        switch (entry.write) {
            case NONE -> set(entry, Write.MERGE, operand);
            case DELETE -> set(entry, Write.PUT, operand);
            case PUT, MERGE -> append(entry, operand);
        }
    }

    private void set(Entry entry, Write write, byte[] value) {
        if (entry.write == Write.NONE) {
            writes += 1;
        }
        int valueBytes = value == null ? 0 : value.length;
        bytes += valueBytes - entry.valueBytes;
        entry.write = write;
        entry.value = value;
        entry.valueBytes = valueBytes;
    }

    /** An array without room is the caller's, and stays as it is. */
    private void append(Entry entry, byte[] operand) {
        int end = entry.valueBytes + 1 + operand.length;
        if (end > entry.value.length) {
            entry.value = Arrays.copyOf(entry.value, Math.max(end, 2 * entry.valueBytes));
        }
        entry.value[entry.valueBytes] = Family.DELIMITER;
        System.arraycopy(operand, 0, entry.value, entry.valueBytes + 1, operand.length);
        bytes += end - entry.valueBytes;
        entry.valueBytes = end;
    }

    private static byte[] exact(Entry entry) {
        return entry.value.length == entry.valueBytes ? entry.value : Arrays.copyOf(entry.value, entry.valueBytes);
    }

    private Entry entry(byte[] key) {
        return entries.computeIfAbsent(key(key), absent -> {
            bytes += key.length + ENTRY_BYTES;
            return new Entry();
        });
    }

    private static Key key(byte[] key) {
        int hash = Arrays.hashCode(key);
        return new Key(key, hash ^ hash >>> 15);
    }

    /** Asks the table which of the keys that are written it has. Returns how many keys there will be more. */
    long growth() {
        List<byte[]> keys = new ArrayList<>();
        List<Entry> unknown = new ArrayList<>();
        entries.forEach((key, entry) -> {
            if (entry.write != Write.NONE && entry.existed == null) {
                keys.add(key.bytes());
                unknown.add(entry);
            }
        });
        boolean[] areThere = family.table.containsMany(keys);
        for (int place = 0; place < areThere.length; place++) {
            unknown.get(place).existed = areThere[place];
        }
        long growth = 0;
        for (Entry entry : entries.values()) {
            if (entry.write == Write.DELETE) {
                growth -= entry.existed ? 1 : 0;
            } else if (entry.write != Write.NONE) {
                growth += entry.existed ? 0 : 1;
            }
        }
        return growth;
    }

    /** Adds all writes to a batch. */
    void addTo(WriteBatch batch) {
        entries.forEach((key, entry) -> {
            switch (entry.write) {
                case NONE -> { }
                case PUT -> batch.put(family.table, key.bytes(), exact(entry));
                case DELETE -> batch.delete(family.table, key.bytes());
                case MERGE -> batch.merge(family.table, key.bytes(), exact(entry));
            }
        });
    }

    void clear() {
        entries.clear();
        bytes = 0;
        writes = 0;
        found = null;
    }
}
