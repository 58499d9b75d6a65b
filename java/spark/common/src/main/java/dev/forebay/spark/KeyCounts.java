package dev.forebay.spark;

import java.util.Collection;

/** How many keys a store has: those of its users, and those that Spark keeps for itself. */
final class KeyCounts {
    /** A lookup costs as much as a walk over so many keys. */
    private static final int KEYS_A_LOOKUP = 20;

    /** When keys are counted. */
    private enum When {
        /** As they are written. */
        AT_ONCE,
        /** The same, while changelogs are replayed that are short beside what there is. */
        REPLAYING,
        /** By a walk, once changelogs are replayed. */
        LATE
    }

    private final boolean isWanted;
    private When when = When.AT_ONCE;
    private long replayed;
    private long keys;
    private long internalKeys;

    KeyCounts(boolean isWanted) {
        this.isWanted = isWanted;
    }

    /** What a snapshot says; below 0 it does not know. */
    void restore(long keys, long internalKeys, Collection<Family> families) {
        this.keys = keys;
        this.internalKeys = internalKeys;
        if (isWanted && keys < 0) {
            walk(families);
        }
    }

    /** Many writes come, and nobody asks meanwhile. */
    void beginReplay() {
        when = When.REPLAYING;
        replayed = 0;
    }

    /** Nothing waits any more. */
    void endReplay(Collection<Family> families) {
        if (isWanted && when == When.LATE) {
            walk(families);
        }
        when = When.AT_ONCE;
    }

    private void walk(Collection<Family> families) {
        keys = 0;
        internalKeys = 0;
        families.forEach(family -> grow(family, family.table.count()));
    }

    private void grow(Family family, long growth) {
        if (family.shape.internal()) {
            internalKeys += growth;
        } else {
            keys += growth;
        }
    }

    /** Counts what is about to be written. */
    void count(Family family, Pending waiting) {
        if (when == When.REPLAYING) {
            replayed += waiting.writes();
            if (replayed * KEYS_A_LOOKUP > keys + internalKeys) {
                when = When.LATE;
            }
        }
        if (isWanted && when != When.LATE) {
            grow(family, waiting.growth());
        }
    }

    long keys() {
        return isWanted ? keys : -1;
    }

    long internalKeys() {
        return isWanted ? internalKeys : -1;
    }
}
