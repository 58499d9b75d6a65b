package dev.forebay.spark;

import static org.apache.spark.sql.functions.approx_count_distinct;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.concat;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.pmod;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.xxhash64;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * What a group-by of a Parquet file costs by {@link GroupBy}, beside Spark's own: {@code GroupBench WHO FOLDER QUERY ROWS
 * GROUPS}; WHO is files, which makes them, forebay or spark. One process measures one query of one. Its heap is touched
 * before, so that what comes is outside of it: that is where Forebay's groups are, while Spark's are in the heap.
 */
final class GroupBench {
    private static final int ROUNDS = 4;

    private GroupBench() {}

    public static void main(String[] arguments) throws Exception {
        String who = arguments[0];
        String folder = arguments[1];
        try (SparkSession spark = SparkSession.builder().master("local[2]").config("spark.ui.enabled", false)
                .config("spark.sql.shuffle.partitions", 2).getOrCreate()) {
            if (who.equals("files")) {
                write(spark, folder, Long.parseLong(arguments[3]), Long.parseLong(arguments[4]));
                return;
            }
            Dataset<Row> rows = spark.read().parquet(folder);
            String query = arguments[2];
            boolean isDistinct = query.equals("distinct");
            Dataset<Row> answers;
            if (who.equals("forebay")) {
                answers = isDistinct ? GroupBy.groupBy(rows, List.of("few"), Map.of("distinct", "approx_distinct:many"))
                        : GroupBy.groupBy(rows, List.of(query), Map.of("count", "count", "sum", "isum:v", "max", "max:v"));
            } else {
                answers = isDistinct ? rows.groupBy("few").agg(approx_count_distinct("many"))
                        : rows.groupBy(query).agg(count(lit(1)), sum("v"), max("v"));
            }
            Memory memory = new Memory();
            spark.sparkContext().addSparkListener(memory);
            measure(who, query, answers);
            spark.sparkContext().listenerBus().waitUntilEmpty();
            System.out.printf("%s, %s: %d MiB of Spark's execution memory in a stage at most%n", who, query, memory.mibMax());
        }
    }

    private static void write(SparkSession spark, String folder, long rows, long groups) {
        Column drawn = xxhash64(col("id"));
        spark.range(0, rows, 1, 2).select(
                pmod(drawn, lit(100L)).as("few"),
                pmod(drawn, lit(groups)).as("many"),
                concat(lit("word "), pmod(drawn, lit(groups))).as("text"),
                pmod(xxhash64(drawn), lit(1000L)).as("v")).write().parquet(folder);
    }

    /** The first round is not counted: it compiles. */
    private static void measure(String who, String query, Dataset<Row> answers) throws IOException {
        long[] millis = new long[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            long began = System.nanoTime();
            answers.write().format("noop").mode("overwrite").save();
            millis[round] = (System.nanoTime() - began) / 1_000_000;
        }
        long[] counted = Arrays.copyOfRange(millis, 1, ROUNDS);
        Arrays.sort(counted);
        System.out.printf("%s, %s: %d ms (%d to %d), %d MiB resident at most, of them %d of heap%n", who, query,
                counted[counted.length / 2], counted[0], counted[counted.length - 1], residentMibMax(),
                Runtime.getRuntime().maxMemory() >> 20);
    }

    private static long residentMibMax() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream().filter(line -> line.startsWith("VmHWM:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) >> 10).findFirst().orElse(-1);
    }

    /** What the tasks of a stage took of Spark's memory for groups, each at most. All of a stage run at once here. */
    private static final class Memory extends SparkListener {
        private final Map<List<Integer>, Long> bytes = new ConcurrentHashMap<>();

        @Override
        public void onTaskEnd(SparkListenerTaskEnd task) {
            List<Integer> stage = List.of(task.stageId(), task.stageAttemptId());
            bytes.merge(stage, task.taskMetrics().peakExecutionMemory(), Long::sum);
        }

        long mibMax() {
            return bytes.values().stream().mapToLong(Long::longValue).max().orElse(0) >> 20;
        }
    }
}
