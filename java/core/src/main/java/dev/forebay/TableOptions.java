package dev.forebay;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Options of a table, by name and text: {@code set("layout", "wb-tree:ordered")}, {@code set("merge_rule", "append:,")}.
 * They count when the table is made and are kept.
 */
public final class TableOptions {
    private final List<byte[]> texts = new ArrayList<>();

    /** The usual ones. */
    public TableOptions() {}

    /** A layout, such as {@code wb-tree:ordered}. */
    public static TableOptions layout(String layout) {
        return new TableOptions().set("layout", layout);
    }

    /** Sets an option; of several with one name the last counts. */
    public TableOptions set(String name, String value) {
        texts.add(Items.bytes(Objects.requireNonNull(name, "name")));
        texts.add(Items.bytes(Objects.requireNonNull(value, "value")));
        return this;
    }

    byte[] items() {
        return Items.of(texts);
    }
}
