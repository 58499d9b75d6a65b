package dev.forebay;

import java.util.List;

/**
 * Texts of aggregation functions, such as {@code sum:amount}, which may as well be written by hand; the guide's page on
 * aggregates lists all of them.
 */
public final class Functions {
    private Functions() {}

    /** How many rows. */
    public static String count() {
        return "count";
    }

    /**
     * A function of a column: {@code of("sum", "amount")}, {@code of("top_k", "price", 10)}. More words are what it is given
     * besides, in its order, such as a further column's name; each is {@link #quoted} where it needs to be.
     */
    public static String of(String function, String column, Object... words) {
        StringBuilder text = new StringBuilder(function).append(':').append(quoted(column));
        for (Object word : words) {
            text.append(':').append(quoted(word.toString()));
        }
        return text.toString();
    }

    /** The word that stands for a column's name. */
    public static String quoted(String name) {
        boolean isPlain = name.strip().equals(name) && name.chars().noneMatch(letter -> ",:\"".indexOf(letter) >= 0);
        return isPlain ? name : '"' + name.replace("\"", "\"\"") + '"';
    }

    /** The columns that a function reads. */
    public static List<String> columns(String function) {
        return new Items(Native.functionColumns(Items.bytes(function))).texts();
    }
}
