package dev.forebay;

import java.lang.ref.Reference;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Groups of rows, and what functions make of each: in memory ({@link Aggregator}), or in a database ({@link
 * StoredAggregator}). Any number of threads may add and read.
 */
public abstract sealed class Groups extends Native implements AutoCloseable permits Aggregator, StoredAggregator {
    private static final int ANSWERS = 0;
    private static final int STATES = 1;

    /** Who must not be let go of before. */
    private final Object of;

    Groups(Object of, long number) {
        super(number);
        this.of = of;
    }

    /**
     * Adds rows, and returns how many. Columns are found by their names; others may stand beside them.
     *
     * @throws ForebayException.InvalidArgument for a value that a function does not take, with its row, counted from 1 in its
     *     record batch
     */
    public long update(ArrowStream rows) {
        return update(rows, -1);
    }

    final long update(ArrowStream rows, int durability) {
        try (rows) {
            return aggregatorUpdate(number, rows.number, durability);
        } finally {
            fence();
        }
    }

    /** Merges what {@link #states} of other groups of the same kind gave, here or on another machine. Returns how many. */
    public long merge(ArrowStream states) {
        return merge(states, -1);
    }

    final long merge(ArrowStream states, int durability) {
        try (states) {
            return aggregatorMerge(number, states.number, durability);
        } finally {
            fence();
        }
    }

    /**
     * The answers of one group by their names, or null where there is no such group. Values of the key come in order: whole
     * numbers, {@code Double}, {@code BigDecimal}, {@code Boolean}, {@code String}, {@code byte[]}, dates and times of {@code
     * java.time}, or null. Answers are {@code Long}, {@code Double}, {@code BigDecimal}, {@code Boolean}, {@code String} or
     * {@code byte[]}.
     */
    public Map<String, Object> get(Object... key) {
        try {
            byte[] found = aggregatorGet(number, Values.items(key));
            if (found == null) {
                return null;
            }
            Items items = new Items(found);
            Map<String, Object> answers = new LinkedHashMap<>();
            while (items.hasNext()) {
                String name = items.text();
                answers.put(name, Values.next(items));
            }
            return answers;
        } finally {
            fence();
        }
    }

    /** All groups with their answers: the columns of the key, and one for each name. */
    public ArrowStream result() {
        return rows(ANSWERS);
    }

    /** All groups with the states of their functions, for {@link #merge}. */
    public ArrowStream states() {
        return rows(STATES);
    }

    private ArrowStream rows(int wanted) {
        try {
            return new ArrowStream(this, aggregatorRows(number, wanted));
        } finally {
            fence();
        }
    }

    final void fence() {
        Reference.reachabilityFence(this);
        Reference.reachabilityFence(of);
    }

    /** Lets go of what it holds. Again does nothing. Streams that it gave go on. */
    @Override
    public void close() {
        letGo();
    }
}
