package dev.forebay.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.session_window;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.ListState;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.Trigger;
import org.apache.spark.sql.streaming.ValueState;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** A query whose checkpoint was taken over tells what it would have told with Spark's own provider. */
class TakeOverTest {
    private static final String STATE = "spark.sql.streaming.stateStore.";
    private static final String PROVIDER = STATE + "providerClass";
    private static SparkSession spark;

    @TempDir
    Path directory;

    @BeforeAll
    static void begin() {
        spark = SparkSession.builder()
                .master("local[2]")
                .config("spark.ui.enabled", false)
                .config("spark.sql.shuffle.partitions", 2)
                .config("spark.sql.session.timeZone", "UTC")
                .config(STATE + "minDeltasForSnapshot", 2)
                .config("spark.sql.streaming.minBatchesToRetain", 2)
                .config("spark.sql.streaming.noDataMicroBatches.enabled", false)
                .getOrCreate();
    }

    /** Maintenance would go on in a folder that is removed. */
    @AfterEach
    void unload() {
        StateStore$.MODULE$.stop();
    }

    @AfterAll
    static void end() {
        spark.stop();
    }

    /** What a query does, and how its checkpoint is written. */
    private enum Query {
        COUNTS("RocksDB", true, 1),
        SESSIONS("RocksDB", false, 2),
        WINDOWS("HDFSBacked", false, 1),
        DUPLICATES("RocksDB", true, 2),
        JOIN("HDFSBacked", false, 1),
        STATES("RocksDB", true, 1);

        final String provider;
        final boolean hasChangelogs;
        final int format;

        Query(String provider, boolean hasChangelogs, int format) {
            this.provider = "org.apache.spark.sql.execution.streaming.state." + provider + "StateStoreProvider";
            this.hasChangelogs = hasChangelogs;
            this.format = format;
        }

        Dataset<?> of(Dataset<Row> events) {
            Dataset<Row> timed = events.withWatermark("time", "20 seconds");
            return switch (this) {
                case COUNTS -> events.groupBy("word").count();
                case SESSIONS, WINDOWS -> timed.groupBy(session_window(col("time"), "3 seconds"), col("word")).count();
                case DUPLICATES -> timed.dropDuplicates("word", "time");
                case JOIN -> timed.as("one").join(timed.as("other").where("word < 'm'"), expr(
                        "one.word = other.word and other.time between one.time and one.time + interval 4 seconds"), "leftOuter")
                        .selectExpr("one.word", "one.time", "other.time as then");
                case STATES -> timed.selectExpr("concat(word, ' ', unix_seconds(time)) as text", "word", "time")
                        .as(Encoders.tuple(Encoders.STRING(), Encoders.STRING(), Encoders.TIMESTAMP()))
                        .groupByKey((MapFunction<scala.Tuple3<String, String, java.sql.Timestamp>, String>) event -> event._2(),
                                Encoders.STRING())
                        .mapValues((MapFunction<scala.Tuple3<String, String, java.sql.Timestamp>, String>) event -> event._1(),
                                Encoders.STRING())
                        .transformWithState(new States(), TimeMode.EventTime(), OutputMode.Append(), Encoders.STRING());
            };
        }

        String mode() {
            return this == COUNTS ? "complete" : "append";
        }
    }

    /** All kinds of state: one value, lists, maps and timers. */
    private static final class States extends StatefulProcessor<String, String, String> {
        private static final long serialVersionUID = 1;
        private transient ValueState<Long> count;
        private transient ListState<String> events;
        private transient MapState<String, Long> last;

        @Override
        public void init(OutputMode mode, TimeMode time) {
            count = getHandle().getValueState("count", Encoders.LONG(), TTLConfig.NONE());
            events = getHandle().getListState("events", Encoders.STRING(), TTLConfig.NONE());
            last = getHandle().getMapState("last", Encoders.STRING(), Encoders.LONG(), TTLConfig.NONE());
        }

        @Override
        public Iterator<String> handleInputRows(String key, Iterator<String> rows, TimerValues timers) {
            long so = count.exists() ? count.get() : 0;
            while (rows.hasNext()) {
                String row = rows.next();
                so += 1;
                events.appendValue(row);
                last.updateValue(row, so);
            }
            count.update(so);
            getHandle().registerTimer(timers.getCurrentWatermarkInMs() + 5_000);
            return told(key + " has " + so + " " + list(events.get()));
        }

        @Override
        public Iterator<String> handleExpiredTimer(String key, TimerValues timers, ExpiredTimerInfo timer) {
            List<String> rest = new ArrayList<>(list(last.keys()));
            rest.sort(null);
            events.clear();
            return told(key + " at " + timer.getExpiryTimeInMs() + " " + rest);
        }

        private static Iterator<String> told(String text) {
            return CollectionConverters.asScala(List.of(text).iterator());
        }

        private static List<String> list(Iterator<String> texts) {
            List<String> sorted = new ArrayList<>();
            texts.foreach(text -> sorted.add(text));
            sorted.sort(null);
            return sorted;
        }
    }

    /** Files of events, each some seconds behind the one before. */
    private Path input() throws IOException {
        return Files.createDirectories(directory.resolve("input"));
    }

    private void addFiles(int from, int to) throws IOException {
        Random random = new Random(from);
        for (int file = from; file < to; file++) {
            StringBuilder lines = new StringBuilder();
            for (int line = 0; line < 40; line++) {
                lines.append(1_700_000_000 + 8 * file + random.nextInt(12)).append(',')
                        .append((char) ('a' + random.nextInt(20))).append('\n');
            }
            Path path = Files.writeString(input().resolve("events-" + file + ".csv"), lines);
            assertTrue(path.toFile().setLastModified(1_700_000_000_000L + 1000L * file));
        }
    }

    /** Runs it over all files that are new, one a batch. Returns what it told. */
    private List<String> run(Query query, Path checkpoint) throws Exception {
        spark.conf().set(PROVIDER, query.provider);
        spark.conf().set(STATE + "rocksdb.changelogCheckpointing.enabled", query.hasChangelogs);
        spark.conf().set(STATE + "checkpointFormatVersion", query.format);
        Dataset<Row> events = spark.readStream().option("maxFilesPerTrigger", 1).schema("seconds bigint, word string")
                .csv(input().toString()).selectExpr("timestamp_seconds(seconds) as time", "word");
        return told(query, query.of(events), checkpoint);
    }

    private static <T> List<String> told(Query query, Dataset<T> rows, Path checkpoint) throws Exception {
        List<String> told = new ArrayList<>();
        VoidFunction2<Dataset<T>, Long> take = (batch, number) ->
                batch.toJSON().collectAsList().stream().sorted().forEach(row -> told.add(number + " " + row));
        DataStreamWriter<T> writer = rows.writeStream().outputMode(query.mode()).foreachBatch(take)
                .option("checkpointLocation", checkpoint.toString()).trigger(Trigger.AvailableNow());
        writer.start().awaitTermination();
        return told;
    }

    private static List<Path> files(Path root, String name) throws IOException {
        try (Stream<Path> walk = Files.walk(root)) {
            return walk.filter(path -> path.getFileName().toString().matches(name)).toList();
        }
    }

    /** All of them with more rounds: each takes ten seconds. */
    static List<Query> queries() {
        return Rounds.COUNT > 1 ? List.of(Query.values()) : List.of(Query.COUNTS, Query.WINDOWS, Query.STATES);
    }

    static List<Query> few() {
        return Rounds.COUNT > 1 ? queries() : List.of(Query.WINDOWS);
    }

    @ParameterizedTest
    @MethodSource("queries")
    void aQueryGoesOnAsIfNothingHadHappened(Query query) throws Exception {
        Path stays = directory.resolve("stays");
        Path moves = directory.resolve("moves");
        addFiles(0, 3);
        assertEquals(run(query, stays), run(query, moves));
        if (query == Query.STATES && !spark.version().matches("4[.][01].*")) {
            refused(moves, "with RocksDB's provider alone");
            return;
        }
        TakeOver.checkpoint(spark, moves.toString());
        assertEquals(List.of(), files(moves.resolve("state"), ".*\\.forebay"));
        addFiles(3, 6);
        List<String> expected = run(query, stays);
        assertFalse(expected.isEmpty());
        assertEquals(expected, run(query, moves));
        assertEquals(List.of(), files(stays.resolve("state"), ".*\\.forebay"));
        if (files(moves.resolve("state"), ".*\\.forebay").isEmpty()) {
            TakeOver.undo(spark, moves.toString());
        } else {
            Throwable error = assertThrows(IllegalArgumentException.class, () -> TakeOver.undo(spark, moves.toString()));
            assertTrue(error.getMessage().contains("has a snapshot of Forebay"), error.getMessage());
        }
        addFiles(6, 7);
        assertEquals(run(query, stays), run(query, moves));
    }

    /** A batch that was planned and not committed is done again by the new store. */
    @Test
    void aBatchThatWasNotCommittedIsDoneAgain() throws Exception {
        Path stays = directory.resolve("stays");
        Path moves = directory.resolve("moves");
        addFiles(0, 5);
        List<String> expected = run(Query.COUNTS, stays);
        run(Query.COUNTS, moves);
        uncommit(moves, 4);
        TakeOver.checkpoint(spark, moves.toString());
        List<String> again = run(Query.COUNTS, moves);
        assertEquals(expected.stream().filter(row -> row.startsWith("4 ")).toList(), again);
        addFiles(5, 7);
        assertEquals(run(Query.COUNTS, stays), run(Query.COUNTS, moves));
    }

    /** Its first batch with the new store was never committed: what that has left is in nobody's way. */
    @ParameterizedTest
    @MethodSource("few")
    void whatWasNotCommittedIsGivenBack(Query query) throws Exception {
        if (query == Query.STATES && !spark.version().matches("4[.][01].*")) {
            return;
        }
        Path stays = directory.resolve("stays");
        Path moves = directory.resolve("moves");
        addFiles(0, 3);
        assertEquals(run(query, stays), run(query, moves));
        TakeOver.checkpoint(spark, moves.toString());
        addFiles(3, 4);
        List<String> expected = run(query, stays);
        assertEquals(expected, run(query, moves));
        uncommit(moves, 3);
        TakeOver.undo(spark, moves.toString());
        assertEquals(List.of(), files(moves.resolve("state"), ".*\\.forebay"));
        assertEquals(expected, run(query, moves));
        addFiles(4, 6);
        assertEquals(run(query, stays), run(query, moves));
        assertEquals(List.of(), files(moves.resolve("state"), ".*\\.forebay"));
    }

    /** Batches from one on are planned, and not committed. */
    private static void uncommit(Path checkpoint, int from) throws IOException {
        removeLog(checkpoint.resolve("commits"), from);
        removeLog(checkpoint.resolve("offsets"), from + 1);
    }

    private static void removeLog(Path log, int from) throws IOException {
        for (Path file : files(log, "[.]?[0-9]+([.]crc)?")) {
            if (Integer.parseInt(file.getFileName().toString().replaceAll("[^0-9]", "")) >= from) {
                Files.delete(file);
            }
        }
    }

    @Test
    void theStateDataSourceReadsWhatWasTakenOver() throws Exception {
        Path moves = directory.resolve("moves");
        addFiles(0, 3);
        run(Query.COUNTS, moves);
        List<String> before = state(moves);
        TakeOver.checkpoint(spark, moves.toString());
        assertEquals(before, state(moves));
        TakeOver.checkpoint(spark, moves.toString());
        TakeOver.undo(spark, moves.toString());
        assertEquals(before, state(moves));
        addFiles(3, 4);
        run(Query.COUNTS, moves);
        assertEquals(List.of(), files(moves, ".*\\.forebay"));
    }

    private static List<String> state(Path checkpoint) {
        return spark.read().format("statestore").load(checkpoint.toString()).toJSON().collectAsList().stream().sorted().toList();
    }

    private void refused(Path checkpoint, String reason) {
        Throwable error = assertThrows(IllegalArgumentException.class, () -> TakeOver.checkpoint(spark, checkpoint.toString()));
        assertTrue(error.getMessage().contains(reason), error.getMessage());
    }

    @Test
    void whatCannotBeTakenOverIsRefused() throws Exception {
        refused(directory.resolve("nothing"), "no batch");
        addFiles(0, 1);
        Path moves = directory.resolve("moves");
        run(Query.COUNTS, moves);
        Path note = moves.resolve("offsets").resolve("0");
        Files.deleteIfExists(note.resolveSibling(".0.crc"));
        String text = Files.readString(note);
        Files.writeString(note, text.replace("RocksDBStateStoreProvider", "AnotherProvider"));
        refused(moves, "AnotherProvider");
        Files.writeString(note, text.replace(PROVIDER, "none"));
        refused(moves, "tells no state store");
        Files.writeString(note, text.replace("rowChecksum.enabled", "none").replace("\"conf\":{", "\"conf\":{\"" + STATE + "rowChecksum.enabled\":\"true\","));
        refused(moves, "its rows have checksums");
        Files.writeString(note, text.substring(0, 3));
        refused(moves, "ends too early");
        Files.delete(note);
        Files.writeString(note.resolveSibling("-1"), text);
        refused(moves, "no batch");
    }
}
