package dev.forebay;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * By which columns rows are grouped, and what is asked of each group: {@code new AggregatorOptions().key("city").agg("n",
 * "count").agg("all", "sum:amount")}. Without a key there is one group of all rows; null is a group.
 *
 * <p>Options by name and text: of {@link Aggregator} {@code memory}, 1 GiB by default, {@code spill}, the directory where
 * groups go on for which that is too little, and {@code threads} of its own; of {@link Database#aggregator} those of a table,
 * and {@code deletes}.
 */
public final class AggregatorOptions {
    private final List<byte[]> texts = new ArrayList<>();
    private final List<byte[]> keys = new ArrayList<>();
    private final List<byte[]> aggs = new ArrayList<>();
    private ArrowStream schema;

    /** No key, and no functions yet. */
    public AggregatorOptions() {}

    /** Groups by these columns, too. */
    public AggregatorOptions key(String... columns) {
        for (String column : columns) {
            keys.add(Items.bytes(column));
        }
        return this;
    }

    /** Asks for what a function answers, under a name. {@link Functions} makes texts of functions. */
    public AggregatorOptions agg(String name, String function) {
        aggs.add(Items.bytes(Objects.requireNonNull(name, "name")));
        aggs.add(Items.bytes(Objects.requireNonNull(function, "function")));
        return this;
    }

    /** The same of several, in their order. */
    public AggregatorOptions aggs(Map<String, String> functions) {
        functions.forEach(this::agg);
        return this;
    }

    /**
     * The types of columns are those of this stream, which stays as it is; else those of the rows that are added first. A
     * stream without rows will do.
     */
    public AggregatorOptions schema(ArrowStream rows) {
        schema = Objects.requireNonNull(rows, "rows");
        return this;
    }

    /** Sets an option; of several with one name the last counts. */
    public AggregatorOptions set(String name, String value) {
        texts.add(Items.bytes(Objects.requireNonNull(name, "name")));
        texts.add(Items.bytes(Objects.requireNonNull(value, "value")));
        return this;
    }

    byte[] items() {
        return Items.of(texts);
    }

    byte[] keys() {
        return Items.of(keys);
    }

    byte[] aggs() {
        return Items.of(aggs);
    }

    ArrowStream schema() {
        return schema;
    }
}
