package dev.forebay;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/**
 * What was committed since a moment, commit by commit, up to what is there when the end is reached: {@link
 * Database#changes}. To go on later, ask for changes since the last commit's number. A database keeps as much as its option
 * {@code keep_changes} says. Use it from one thread at a time.
 */
public final class Changes extends Native implements Iterable<Changes.Commit>, AutoCloseable {
    /** What a change did. */
    public enum Operation {
        /** Set a key. */
        PUT,
        /** Removed a key. */
        DELETE,
        /** Merged an operand into a key. */
        MERGE,
        /** Removed all keys from one on, up to another one; without a value up to the end. */
        DELETE_RANGE,
        /** Something that this version does not know. */
        OTHER
    }

    /**
     * One operation of a commit.
     *
     * @param sequence its number
     * @param table the name of the table
     * @param operation what it did
     * @param key the key, or where a range begins
     * @param value the value, the operand, or where a range ends; or null
     * @param expiryMilliseconds when the entry expires, since 1970; 0 for never
     */
    public record Change(
            long sequence, String table, Operation operation, byte[] key, byte[] value, long expiryMilliseconds) {}

    /**
     * A commit.
     *
     * @param lastSequence the number to go on from
     * @param changes in their order
     */
    public record Commit(long lastSequence, List<Change> changes) {}

    private final Database database;

    Changes(Database database, long number) {
        super(number);
        this.database = database;
    }

    /** The next commit, or null where there is none by now. */
    public Commit next() {
        try {
            List<Change> changes = new ArrayList<>();
            long last = 0;
            for (boolean hasMore = true; hasMore;) {
                byte[] block = changesNext(number);
                if (block == null) {
                    return null;
                }
                Items items = new Items(block);
                last = items.number();
                hasMore = items.oneByte() != 0;
                read(items, changes);
            }
            return new Commit(last, Collections.unmodifiableList(changes));
        } catch (Throwable error) {
            // What comes next would be the rest of a commit.
            letGo();
            throw error;
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(database);
        }
    }

    private static void read(Items items, List<Change> changes) {
        while (items.hasNext()) {
            long sequence = items.number();
            Operation operation = Operation.values()[items.oneByte()];
            long expiry = items.number();
            changes.add(new Change(sequence, items.text(), operation, items.next(), items.next(), expiry));
        }
    }

    /** What comes from here on. An iterator shares the place. */
    @Override
    public Iterator<Commit> iterator() {
        return new Iterator<>() {
            private Commit ready;

            @Override
            public boolean hasNext() {
                if (ready == null) {
                    ready = Changes.this.next();
                }
                return ready != null;
            }

            @Override
            public Commit next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                Commit commit = ready;
                ready = null;
                return commit;
            }
        };
    }

    /** Lets go of what it holds. Again does nothing. */
    @Override
    public void close() {
        letGo();
    }
}
