package dev.forebay.spark;

import dev.forebay.ForebayException;
import dev.forebay.Functions;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Group-by of a data frame in two stages, by Forebay's functions: {@code GroupBy.groupBy(events, List.of("user"),
 * Map.of("pages", "approx_distinct:page"))}. Where the rows are, each task makes states of its groups; Spark shuffles the states by the
 * key, and each task of the second stage merges those that it gets. So a key that most rows have costs the second stage one
 * state a task of the first.
 *
 * <p>Lazy, as all of Spark: a call reads no rows. Without a key there is one group, or none where there are no rows. The
 * answers' types are those of the functions: the sum of integers is a {@code decimal(38,0)}.
 */
public final class GroupBy {
    private static final String MEMORY = "512M";

    private GroupBy() {}

    /** Groups rows, and gives the columns of the key and an answer for each name, in the map's order. */
    public static Dataset<Row> groupBy(Dataset<Row> rows, List<String> key, Map<String, String> aggs) {
        return groupBy(rows, key, aggs, MEMORY, 0);
    }

    /**
     * The same.
     *
     * @param memory for each group-by of a task, outside of the JVM's heap, such as {@code 512M}; groups that need more are
     *     written to the folder for temporary files
     * @param partitions how many tasks the second stage has; 0 lets Spark decide
     * @throws ForebayException.InvalidArgument for columns and functions that do not fit
     * @throws IllegalArgumentException for a column of a collation that is not binary, for two answers or columns of the key
     *     that Spark could not tell apart by name, and for fewer than 0 partitions
     * @throws UnsupportedOperationException for a stream, each batch of which it would group by itself
     */
    public static Dataset<Row> groupBy(
            Dataset<Row> rows, List<String> key, Map<String, String> aggs, String memory, int partitions) {
        if (rows.isStreaming()) {
            throw new UnsupportedOperationException(
                    "a stream is not grouped by GroupBy, which would group each batch by itself: use Dataset.groupBy with the "
                            + "state store ForebayStateStoreProvider");
        }
        if (partitions < 0) {
            throw new IllegalArgumentException("partitions is " + partitions + "; give a number, or 0 to let Spark decide");
        }
        Set<String> needed = new LinkedHashSet<>(key);
        aggs.values().forEach(function -> needed.addAll(Functions.columns(function)));
        boolean isCased = Boolean.parseBoolean(rows.sparkSession().conf().get("spark.sql.caseSensitive", "false"));
        UnaryOperator<String> same = isCased ? UnaryOperator.identity() : name -> name.toLowerCase(Locale.ROOT);
        checkApart(key, aggs.keySet(), same);
        StructType used = used(rows.schema(), needed, same);
        GroupStage stage = new GroupStage(key.toArray(String[]::new), new LinkedHashMap<>(aggs), used, memory);
        // Between the stages columns are called by their places, whatever they are called.
        Dataset<Row> read = rows.select(
                needed.isEmpty() ? new Column[] {functions.lit(false).as(GroupStage.place(0))} : plain(used));
        StructType states = stage.states();
        StructType answers = stage.answers();
        Dataset<Row> made = read.mapPartitions(stage.ofRows(states), Encoders.row(Plain.of(states)));
        Column[] by = IntStream.range(0, key.size()).mapToObj(at -> functions.col(GroupStage.place(at))).toArray(Column[]::new);
        Dataset<Row> together = by.length == 0 ? made.repartition(1)
                : partitions > 0 ? made.repartition(partitions, by) : made.repartition(by);
        return together.mapPartitions(stage.ofStates(answers), Encoders.row(Plain.of(answers))).select(named(answers));
    }

    /** Of two names that are the same to Spark, nobody could select either. */
    private static void checkApart(List<String> key, Set<String> answers, UnaryOperator<String> same) {
        Set<String> seen = new HashSet<>();
        for (String name : Stream.concat(key.stream(), answers.stream()).toList()) {
            if (!seen.add(same.apply(name))) {
                throw new IllegalArgumentException("two columns of the result would be called `" + name
                        + "`, in this or other letters: name them apart, or set spark.sql.caseSensitive");
            }
        }
    }

    /**
     * The columns that are needed, as they are called there: Spark finds them by names that are the same to it. Where none is
     * needed, one of no meaning, by which rows are counted.
     */
    private static StructType used(StructType whole, Set<String> needed, UnaryOperator<String> same) {
        if (needed.isEmpty()) {
            return new StructType().add("none", DataTypes.BooleanType);
        }
        Map<String, StructField> fields = new HashMap<>();
        for (StructField field : whole.fields()) {
            fields.put(same.apply(field.name()), field);
        }
        StructType used = new StructType();
        for (String name : needed) {
            StructField field = fields.get(same.apply(name));
            // The engine tells of a column that is not there.
            if (field != null) {
                checkBinary(field);
                used = used.add(new StructField(name, field.dataType(), field.nullable(), field.metadata()));
            }
        }
        return used;
    }

    /** Texts are grouped by their bytes. */
    private static void checkBinary(StructField field) {
        if (field.dataType() instanceof StringType text && !text.isUTF8BinaryCollation()) {
            throw new IllegalArgumentException("column `" + field.name() + "` has the collation " + text.collationName()
                    + ", by which GroupBy does not compare: give it the collation UTF8_BINARY, or group a normal form of it");
        }
    }

    private static Column[] plain(StructType used) {
        Column[] columns = new Column[used.length()];
        for (int at = 0; at < columns.length; at++) {
            StructField field = used.fields()[at];
            Column column = functions.col('`' + field.name().replace("`", "``") + '`');
            columns[at] = Plain.in(column, field.dataType()).as(GroupStage.place(at));
        }
        return columns;
    }

    private static Column[] named(StructType answers) {
        Column[] columns = new Column[answers.length()];
        for (int at = 0; at < columns.length; at++) {
            StructField field = answers.fields()[at];
            Column column = functions.col(GroupStage.place(at));
            columns[at] = Plain.out(column, field.dataType()).as(field.name(), field.metadata());
        }
        return columns;
    }
}
