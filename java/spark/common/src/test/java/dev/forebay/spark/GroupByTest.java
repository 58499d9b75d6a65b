package dev.forebay.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.min;
import static org.apache.spark.sql.functions.sum;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.forebay.ForebayException;
import dev.forebay.Functions;
import java.io.File;
import java.math.BigDecimal;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.ReduceFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Group-by in two stages against Spark's own, over random rows. */
class GroupByTest {
    private static SparkSession spark;

    @BeforeAll
    static void begin() {
        spark = SparkSession.builder()
                .master("local[2]")
                .config("spark.ui.enabled", false)
                .config("spark.sql.shuffle.partitions", 3)
                .config("spark.sql.session.timeZone", "Europe/Zurich")
                .getOrCreate();
    }

    @AfterAll
    static void end() {
        spark.stop();
    }

    private static final StructType SCHEMA = new StructType()
            .add("list", DataTypes.createArrayType(DataTypes.LongType))
            .add("word", DataTypes.StringType)
            .add("at.zoned", DataTypes.TimestampType)
            .add("at`wall", DataTypes.TimestampNTZType)
            .add("day", DataTypes.DateType)
            .add("price", DataTypes.createDecimalType(12, 3))
            .add("weight", DataTypes.DoubleType)
            .add("bytes", DataTypes.BinaryType)
            .add("truth", DataTypes.BooleanType)
            .add("small", DataTypes.ShortType)
            .add("n", DataTypes.LongType);

    private static Dataset<Row> rows(Random random, int count) {
        List<Row> rows = new ArrayList<>();
        for (int row = 0; row < count; row++) {
            rows.add(RowFactory.create(
                    List.of(1L),
                    some(random, random.nextBoolean() ? "much" : "word " + random.nextInt(30)),
                    some(random, moment(random)),
                    some(random, LocalDateTime.of(2025, 3, 30, 2, 30, random.nextInt(2), 1000)),
                    some(random, day(random)),
                    some(random, BigDecimal.valueOf(random.nextInt(4000) - 2000, 3)),
                    some(random, weight(random)),
                    some(random, new byte[] {(byte) random.nextInt(3), 0, -1}),
                    some(random, random.nextBoolean()),
                    some(random, (short) random.nextInt(5)),
                    some(random, random.nextLong() >> 16)));
        }
        return spark.createDataFrame(rows, SCHEMA).repartition(4);
    }

    private static <T> T some(Random random, T value) {
        return random.nextInt(10) == 0 ? null : value;
    }

    /** By a change of the clock of 2025, and where calendars differ. */
    private static Timestamp moment(Random random) {
        return random.nextBoolean()
                ? new Timestamp(1_743_296_400_000L + 1_800_000L * random.nextInt(4) - 1)
                : new Timestamp(-12_219_292_800_000L + 3_600_000L * (random.nextInt(5) - 2));
    }

    private static Date day(Random random) {
        return new Date(86_400_000L * (random.nextInt(3) - 1 - (random.nextBoolean() ? 141_427 : 0)));
    }

    private static double weight(Random random) {
        return switch (random.nextInt(8)) {
            case 0 -> Double.NaN;
            case 1 -> -0.0;
            case 2 -> 0.0;
            case 3 -> Double.POSITIVE_INFINITY;
            default -> random.nextInt(5) / 2.0;
        };
    }

    /** Rows as texts that are the same for the same values, in an order that does not depend on partitions. */
    private static List<String> shown(Dataset<Row> frame) {
        List<String> shown = new ArrayList<>();
        for (Row row : frame.collectAsList()) {
            StringBuilder text = new StringBuilder();
            for (int at = 0; at < row.length(); at++) {
                Object value = row.get(at);
                if (value instanceof BigDecimal decimal) {
                    value = decimal.signum() == 0 ? "0" : decimal.stripTrailingZeros().toPlainString();
                } else if (value instanceof byte[] bytes) {
                    value = Base64.getEncoder().encodeToString(bytes);
                }
                text.append(value).append(" | ");
            }
            shown.add(text.toString());
        }
        Collections.sort(shown);
        return shown;
    }

    private static Map<String, String> aggs() {
        Map<String, String> aggs = new LinkedHashMap<>();
        aggs.put("rows", Functions.count());
        aggs.put("prices", Functions.of("count", "price"));
        aggs.put("all", Functions.of("sum", "n"));
        aggs.put("money", Functions.of("sum", "price"));
        aggs.put("dearest", Functions.of("max", "price"));
        aggs.put("least", Functions.of("min", "n"));
        aggs.put("words", Functions.of("distinct", "word"));
        return aggs;
    }

    private static Dataset<Row> theirs(Dataset<Row> rows, String... key) {
        org.apache.spark.sql.Column[] by = java.util.Arrays.stream(key)
                .map(name -> col('`' + name.replace("`", "``") + '`')).toArray(org.apache.spark.sql.Column[]::new);
        return rows.groupBy(by).agg(
                count(lit(1)).as("rows"), count(col("price")).as("prices"), sum(col("n")).as("all"), sum(col("price")).as("money"),
                max(col("price")).as("dearest"), min(col("n")).as("least"),
                org.apache.spark.sql.functions.countDistinct(col("word")).as("words"));
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2})
    void itGivesWhatSparkGives(long seed) {
        System.out.println("GroupByTest, seed " + seed);
        Dataset<Row> rows = rows(new Random(seed), 8000).cache();
        String[][] keys = {
            {"word"}, {"at.zoned", "at`wall"}, {"weight"}, {"day", "price"}, {"bytes", "truth", "small"}, {"n", "word"}
        };
        for (String[] key : keys) {
            Dataset<Row> ours = GroupBy.groupBy(rows, List.of(key), aggs(), "64M", key.length == 1 ? 2 : 0);
            Dataset<Row> theirs = theirs(rows, key);
            List<String> expected = shown(theirs);
            assertTrue(expected.size() > 4);
            assertEquals(expected, shown(ours), () -> String.join(", ", key));
            for (int at = 0; at < key.length; at++) {
                assertEquals(theirs.schema().fields()[at], ours.schema().fields()[at]);
            }
            assertEquals(List.of(theirs.columns()), List.of(ours.columns()));
        }
        rows.unpersist();
    }

    @Test
    void allRowsAreOneGroupAndNoRowsAreNone() {
        Dataset<Row> rows = rows(new Random(3), 3000);
        assertEquals(shown(theirs(rows)), shown(GroupBy.groupBy(rows, List.of(), aggs())));
        Dataset<Row> counted = GroupBy.groupBy(rows, List.of(), Map.of("n", "count"));
        assertEquals(List.of("3000 | "), shown(counted));
        assertEquals(List.of(), shown(GroupBy.groupBy(rows.where("false"), List.of("word"), aggs())));
        assertEquals(List.of(), shown(GroupBy.groupBy(rows.where("false"), List.of(), Map.of("n", "count"))));
        assertEquals(7, GroupBy.groupBy(rows, List.of("day"), Map.of("n", "count")).where("n > 1").count());
    }

    /** Half of all rows have one key, and there are more groups than a task has memory for. */
    @Test
    void skewedKeysAndMoreGroupsThanMemory() {
        Dataset<Row> many = spark.range(0, 300_000, 1, 4)
                .selectExpr("if(id % 2 = 0, 'the one', concat('a longer text, ', id % 200000)) k", "id v");
        Dataset<Row> ours = GroupBy.groupBy(many, List.of("k"), Map.of("v", "max:v"), "4M", 3);
        Row both = ours.agg(count(lit(1)), sum(col("v"))).first();
        Row expected = many.groupBy("k").agg(max(col("v")).as("v")).agg(count(lit(1)), sum(col("v"))).first();
        assertEquals(expected, both);
        assertEquals(299_998L, ours.where("k = 'the one'").first().getLong(1));
    }

    /** Days that one of both calendars has not, and times before there were zones. */
    @Test
    void keysThatExternalRowsCannotHaveStayAsTheyAre() {
        Dataset<Row> rows = spark.range(0, 4000, 1, 4).selectExpr(
                "date_add(date'1582-09-30', cast(id % 40 as int)) day",
                "timestamp_seconds(-12219292800 + id % 20 * 3601) at",
                "timestamp_ntz'1582-10-10 00:00:00' + make_interval(0, 0, 0, cast(id % 3 as int)) wall");
        for (List<String> key : List.of(List.of("day"), List.of("at", "wall"))) {
            List<String> theirs = texts(rows.groupBy(key.get(0), key.subList(1, key.size()).toArray(String[]::new)).count());
            List<String> ours = texts(GroupBy.groupBy(rows, key, Map.of("count", "count")));
            assertEquals(theirs, ours);
            assertTrue(ours.size() >= 40, ours.toString());
        }
    }

    /** As Spark itself shows them. */
    private static List<String> texts(Dataset<Row> frame) {
        return shown(frame.selectExpr(
                java.util.Arrays.stream(frame.columns()).map(name -> "cast(" + name + " as string)").toArray(String[]::new)));
    }

    /** A task of several partitions has the groups of one at a time, where Spark cleans, and leaves no folder behind. */
    @Test
    void groupsEndWithTheirRows() {
        Dataset<Row> rows = spark.range(0, 5000, 1, 5).selectExpr("id % 1000 k");
        Dataset<Long> folders = GroupBy.groupBy(rows, List.of("k"), Map.of("n", "count"), "64M", 6).coalesce(1)
                .map((MapFunction<Row, Long>) row -> folders(), Encoders.LONG());
        assertEquals(1, folders.reduce((ReduceFunction<Long>) Math::max));
        assertEquals(0, folders());
        // Nor does one that fails, though a job ends at its first failure, before its other tasks do.
        assertThrows(Exception.class, () -> GroupBy.groupBy(rows.selectExpr("concat('w', k) k"), List.of(), Map.of("x", "sum:k"))
                .collectAsList());
        for (long end = System.nanoTime() + 60_000_000_000L; folders() > 0 && System.nanoTime() < end; ) {
            Thread.onSpinWait();
        }
        assertEquals(0, folders());
    }

    private static long folders() {
        // Which Spark removes, also of an executor that was killed.
        File[] roots = new File(Utils.getLocalDir(SparkFiles.conf())).listFiles((in, name) -> name.startsWith(GroupStage.FOLDER));
        return java.util.Arrays.stream(roots).mapToLong(root -> root.list().length).sum();
    }

    @Test
    void batchesEndWhereTheyAreLong() {
        StructType columns = new StructType().add("n", DataTypes.LongType).add("text", DataTypes.StringType);
        byte[] text = new byte[300_000];
        List<Row> rows = Collections.nCopies(50, RowFactory.create(1L, text));
        List<Integer> lengths = new ArrayList<>();
        ArrowRows.each(rows.iterator(), columns, ArrowRows.schema(columns), batch -> lengths.add(batch.length));
        assertEquals(4, lengths.size(), lengths.toString());
        assertTrue(lengths.stream().allMatch(length -> length < (4 << 20) + 400_000), lengths.toString());
    }

    @Test
    void textsAreGroupedByTheirBytesOrNotAtAll() {
        Dataset<Row> rows = spark.range(10).selectExpr(
                "collate(cast(id as string), 'UTF8_LCASE') folded", "cast(if(id = 7, X'61ff', X'61fe') as string) broken");
        Map<String, String> counted = Map.of("n", "count");
        String told = assertThrows(IllegalArgumentException.class,
                () -> GroupBy.groupBy(rows, List.of("folded"), counted)).getMessage();
        assertTrue(told.contains("`folded`") && told.contains("UTF8_LCASE"), told);
        told = failure(() -> GroupBy.groupBy(rows, List.of("broken"), counted).collectAsList());
        assertTrue(told.contains("UTF-8") || told.contains("UTF8"), told);
        assertEquals(2, GroupBy.groupBy(rows.selectExpr("cast(broken as binary) b"), List.of("b"), counted).count());
    }

    /** As everywhere in Spark: `USER` is `user`, unless the session says that it is another one. */
    @Test
    void namesAreThoseThatSparkFinds() {
        Dataset<Row> rows = spark.range(10).selectExpr("id % 2 user", "id amount");
        Dataset<Row> ours = GroupBy.groupBy(rows, List.of("USER"), Map.of("all", "sum:Amount"));
        assertEquals(List.of("USER", "all"), List.of(ours.columns()));
        assertEquals(List.of("0 | 20 | ", "1 | 25 | "), shown(ours));
        Executable twice = () -> GroupBy.groupBy(rows, List.of("user"), Map.of("User", "count"));
        String told = assertThrows(IllegalArgumentException.class, twice).getMessage();
        assertTrue(told.contains("`User`"), told);
        spark.conf().set("spark.sql.caseSensitive", true);
        try {
            assertDoesNotThrow(twice);
            assertThrows(ForebayException.InvalidArgument.class,
                    () -> GroupBy.groupBy(rows, List.of("USER"), Map.of("n", "count")));
        } finally {
            spark.conf().unset("spark.sql.caseSensitive");
        }
    }

    /** The texts of an error and of its causes. */
    private static String failure(Executable call) {
        StringBuilder text = new StringBuilder();
        for (Throwable at = assertThrows(Exception.class, call); at != null; at = at.getCause()) {
            text.append(at).append('\n');
        }
        return text.toString();
    }

    @Test
    void whatDoesNotFitIsToldAtOnceAndOnlyThat() {
        Dataset<Row> rows = rows(new Random(4), 10);
        Class<ForebayException.InvalidArgument> invalid = ForebayException.InvalidArgument.class;
        ForebayException told = assertThrows(invalid, () -> GroupBy.groupBy(rows, List.of("nowhere"), aggs()));
        assertTrue(told.getMessage().contains("nowhere"), told.getMessage());
        told = assertThrows(invalid, () -> GroupBy.groupBy(rows, List.of("word"), Map.of("x", "sum:nowhere")));
        assertTrue(told.getMessage().contains("nowhere"), told.getMessage());
        assertThrows(invalid, () -> GroupBy.groupBy(rows, List.of("word"), Map.of()));
        told = assertThrows(invalid, () -> GroupBy.groupBy(rows, List.of("list"), Map.of("n", "count")));
        assertTrue(told.getMessage().contains("list"), told.getMessage());
        told = assertThrows(invalid, () -> GroupBy.groupBy(rows, List.of("word"), aggs(), "512 apples", 0));
        assertTrue(told.getMessage().contains("apples"), told.getMessage());
        assertThrows(IllegalArgumentException.class, () -> GroupBy.groupBy(rows, List.of("word"), aggs(), "64M", -1));
        Dataset<Row> stream = spark.readStream().format("rate").load();
        String streaming = assertThrows(UnsupportedOperationException.class,
                () -> GroupBy.groupBy(stream, List.of("value"), Map.of("n", "count"))).getMessage();
        assertTrue(streaming.contains("ForebayStateStoreProvider"), streaming);
        // A function that does not take a value fails the task, with the engine's text.
        String failed = failure(() -> GroupBy.groupBy(rows, List.of(), Map.of("x", "sum:word")).collectAsList());
        assertTrue(failed.contains("sum:word"), failed);
    }
}
