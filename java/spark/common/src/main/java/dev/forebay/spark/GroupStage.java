package dev.forebay.spark;

import dev.forebay.Aggregator;
import dev.forebay.AggregatorOptions;
import dev.forebay.ArrowStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/** What both stages of a group-by know: key and functions, the columns of rows, and how much memory a task has. */
final class GroupStage implements Serializable {
    private static final long serialVersionUID = 1;
    static final String FOLDER = "forebay-groups";
    /** Where this executor's groups go that need more than memory, once there are some. */
    private static Path root;

    private final String[] keys;
    private final LinkedHashMap<String, String> aggs;
    private final StructType rows;
    private final String memory;

    GroupStage(String[] keys, LinkedHashMap<String, String> aggs, StructType rows, String memory) {
        this.keys = keys;
        this.aggs = aggs;
        this.rows = rows;
        this.memory = memory;
    }

    /** What a column is called between the stages. */
    static String place(int at) {
        return "c" + at;
    }

    /** The columns of the key, and one of states for each function. */
    StructType states() {
        return states(schema(Aggregator::states));
    }

    private StructType states(Schema schema) {
        StructType columns = new StructType();
        for (int at = 0; at < schema.getFields().size(); at++) {
            columns = columns.add(place(at), at < keys.length ? key(at).dataType() : DataTypes.BinaryType);
        }
        return columns;
    }

    /** The columns of the key, and one of answers for each name. */
    StructType answers() {
        StructType shown = ArrowUtils.fromArrowSchema(schema(Aggregator::result));
        StructType columns = new StructType();
        for (int at = 0; at < shown.length(); at++) {
            columns = columns.add(at < keys.length ? key(at) : shown.fields()[at]);
        }
        return columns;
    }

    /** A column of the key, as it is among the rows: Spark has types that Arrow has not. */
    private StructField key(int at) {
        return rows.fields()[rows.fieldIndex(keys[at])];
    }

    private Schema schema(Function<Aggregator, ArrowStream> shown) {
        try (Aggregator none = groups(new AggregatorOptions().set("memory", memory))) {
            return ArrowRows.schema(shown.apply(none));
        }
    }

    /** No groups yet, of these rows. */
    private Aggregator groups(AggregatorOptions options) {
        try (ArrowStream types = ArrowStream.ofIpc(ArrowRows.none(ArrowRows.schema(rows)))) {
            return new Aggregator(options.key(keys).aggs(aggs).schema(types));
        }
    }

    /** The first stage. */
    MapPartitionsFunction<Row, Row> ofRows(StructType states) {
        return input -> {
            Schema schema = ArrowRows.schema(rows);
            return grouped(input, rows, schema, Aggregator::update, Aggregator::states, states);
        };
    }

    /** The second one. */
    MapPartitionsFunction<Row, Row> ofStates(StructType answers) {
        return input -> {
            // Spark passes on columns without their metadata, which tell the functions.
            Schema schema = schema(Aggregator::states);
            return grouped(input, states(schema), schema, Aggregator::merge, Aggregator::result, answers);
        };
    }

    private Iterator<Row> grouped(
            Iterator<Row> input,
            StructType given,
            Schema schema,
            BiFunction<Aggregator, ArrowStream, Long> add,
            Function<Aggregator, ArrowStream> shown,
            StructType columns) {
        Path spill = folder();
        ArrowRows.atEnd(() -> Directories.remove(spill));
        Aggregator groups = groups(new AggregatorOptions().set("memory", memory).set("spill", spill.toString()));
        // One task may have many partitions, one after the other.
        Runnable end = () -> {
            groups.close();
            Directories.remove(spill);
        };
        ArrowRows.atEnd(end);
        ArrowRows.each(input, given, schema, batch -> add.apply(groups, ArrowStream.ofIpc(batch)));
        return ArrowRows.read(shown.apply(groups), columns, end);
    }

    /** A folder of a partition's, in one that Spark removes where the executor is killed. */
    private static synchronized Path folder() {
        try {
            // One for all: Spark remembers each that it makes as long as the executor lives.
            if (root == null || !Files.exists(root)) {
                root = Minor.localDirectory(FOLDER);
            }
            return Files.createTempDirectory(root, "");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
