package dev.forebay.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * Takes over the checkpoint of a query whose state is in one of Spark's own stores, in memory or in RocksDB: Spark notes a
 * query's state store with each batch, and keeps it for good. This changes that note, and nothing else. What Spark's store
 * has left is read by the first batch that follows, by each executor for its own partitions, and committed with that batch.
 *
 * <p>The query must have ended. {@link #undo} changes the note back, and removes what a batch has left that was not
 * committed, until a committed batch has a snapshot of ours: the first one has, but where RocksDB had none before; there
 * they follow as they do.
 */
public final class TakeOver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STATE = "spark.sql.streaming.stateStore.";
    private static final String PROVIDER = STATE + "providerClass";
    /** Behind the name of a note: what it was before. */
    private static final String BEFORE = ".before";
    private static final String SPARK = "org.apache.spark.sql.execution.streaming.state.";
    private static final String ROCKSDB = SPARK + "RocksDBStateStoreProvider";
    private static final String IN_MEMORY = SPARK + "HDFSBackedStateStoreProvider";
    private static final String FOREBAY = ForebayStateStoreProvider.class.getName();
    private static final String ROW_CHECKSUMS = STATE + "rowChecksum.enabled";
    private static final String JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion";
    /** What an operator is called, as it stands in what Spark notes of it. */
    private static final Pattern OPERATOR = Pattern.compile("\"operatorName\":\"([^\"]*)\"");

    private final RemoteFiles files;
    private final Path root;
    /** Spark's, as 402 for 4.2. */
    private final int version;

    private TakeOver(SparkSession spark, String location) {
        this.root = new Path(location);
        String[] numbers = spark.version().split("[^0-9]+");
        this.version = 100 * Integer.parseInt(numbers[0]) + Integer.parseInt(numbers[1]);
        this.files = SparkFiles.of(root, "lz4", spark.sessionState().newHadoopConf());
    }

    /**
     * Takes a checkpoint over.
     *
     * @param location the query's checkpoint location
     * @throws IOException if it cannot be read or written
     * @throws IllegalArgumentException if it has no batch, or state that cannot be taken over: nothing was changed
     */
    public static void checkpoint(SparkSession spark, String location) throws IOException {
        with(spark, location, TakeOver::take);
    }

    /**
     * Gives a checkpoint back to the store that it was taken over from.
     *
     * @param location the query's checkpoint location
     * @throws IOException if it cannot be read or written
     * @throws IllegalArgumentException if its state has snapshots of ours since: nothing was changed
     */
    public static void undo(SparkSession spark, String location) throws IOException {
        with(spark, location, TakeOver::giveBack);
    }

    /** As {@code spark-submit --class dev.forebay.spark.TakeOver JAR [--undo] CHECKPOINT} calls it. */
    public static void main(String[] arguments) throws IOException {
        boolean isUndo = arguments.length == 2 && arguments[0].equals("--undo");
        if (!isUndo && (arguments.length != 1 || arguments[0].startsWith("-"))) {
            throw new IllegalArgumentException("arguments are [--undo] and a query's checkpoint location");
        }
        SparkSession spark = SparkSession.builder().appName("forebay-take-over").getOrCreate();
        if (isUndo) {
            undo(spark, arguments[1]);
            System.out.println(arguments[1] + " goes on with Spark's own state store again");
        } else {
            checkpoint(spark, arguments[0]);
            System.out.println(arguments[0] + " goes on with Forebay's state store: start its query again");
        }
        spark.stop();
    }

    private interface Change {
        /** Changes a query's settings. */
        void to(TakeOver one, ObjectNode settings) throws IOException;
    }

    private static void with(SparkSession spark, String location, Change change) throws IOException {
        TakeOver one = new TakeOver(spark, location);
        try {
            one.change(change);
        } finally {
            one.files.close();
        }
    }

    private void change(Change change) throws IOException {
        Path path = newestBatch();
        byte[][] lines = lines(path);
        JsonNode note = JSON.readTree(lines[1]);
        if (!(note.path("conf") instanceof ObjectNode settings) || !settings.has(PROVIDER)) {
            throw wrong("the note " + path + " tells no state store");
        }
        String before = settings.path(PROVIDER).asText();
        change.to(this, settings);
        if (settings.path(PROVIDER).asText().equals(before)) {
            return;
        }
        // Where a file is replaced by deleting it first, somebody who is killed between leaves none.
        write(path.suffix(BEFORE), lines);
        lines[1] = JSON.writeValueAsBytes(note);
        write(path, lines);
        if (!Arrays.equals(lines(path)[1], lines[1])) {
            throw new IOException("the note " + path + " was written, and is as it was: its file system replaces no files");
        }
    }

    private void take(ObjectNode settings) throws IOException {
        String provider = settings.path(PROVIDER).asText();
        if (provider.equals(FOREBAY)) {
            return;
        }
        if (!provider.equals(ROCKSDB) && !provider.equals(IN_MEMORY)) {
            throw wrong("its state is that of '" + provider + "', where that of " + ROCKSDB + " and of " + IN_MEMORY
                    + " can be taken over");
        }
        check(settings);
        settings.put(PROVIDER, FOREBAY);
    }

    private void giveBack(ObjectNode settings) {
        if (!settings.path(PROVIDER).asText().equals(FOREBAY)) {
            return;
        }
        // A batch makes the version behind its number.
        long committed = newest("commits").map(TakeOver::number).orElse(-1L) + 1;
        List<Path> state = state();
        for (Path file : state) {
            if (Naming.version(file, Naming.SNAPSHOT).filter(version -> version.number() <= committed).isPresent()) {
                throw wrong("its state has a snapshot of Forebay's, which no other provider can read");
            }
        }
        // Where none is, what was committed are changelogs, which are those of RocksDB's provider, too, but for their sums.
        state.stream().filter(file -> isUndone(file, committed)).forEach(files::delete);
        boolean isInMemory = state.stream().anyMatch(file -> Naming.version(file, Naming.DELTA).isPresent());
        settings.put(PROVIDER, isInMemory ? IN_MEMORY : ROCKSDB);
    }

    private static boolean isUndone(Path file, long committed) {
        return file.getName().endsWith(Naming.CHANGELOG + ".crc")
                || Naming.version(file, Naming.SNAPSHOT).or(() -> Naming.version(file, Naming.CHANGELOG))
                        .filter(version -> version.number() > committed).isPresent();
    }

    private void check(JsonNode settings) throws IOException {
        if (settings.path(ROW_CHECKSUMS).asBoolean()) {
            throw wrong("its rows have checksums (" + ROW_CHECKSUMS + ")");
        }
        for (Path file : state()) {
            if (!file.getParent().toString().contains("/_metadata")) {
                continue;
            }
            Matcher operator = OPERATOR.matcher(new String(bytes(file), StandardCharsets.UTF_8));
            String name = operator.find() ? operator.group(1) : "";
            if (version >= 402 && name.startsWith("transformWithState")) {
                throw wrong("Spark since 4.2 runs " + name + " with RocksDB's provider alone");
            }
            if (version >= 403 && name.equals("symmetricHashJoin") && settings.path(JOIN_FORMAT).asInt(2) > 2) {
                throw wrong("Spark since 4.3 runs joins with " + JOIN_FORMAT + " above 2 with RocksDB's provider alone");
            }
        }
    }

    private void write(Path path, byte[][] lines) throws IOException {
        try (RemoteFiles.Output out = files.create(path)) {
            try {
                for (byte[] line : List.of(lines[0], lines[1], new byte[] {'\n'}, lines[2])) {
                    out.write(line);
                }
            } catch (IOException | RuntimeException error) {
                out.cancel();
                throw error;
            }
        }
    }

    /** The note of the newest batch: what a query goes on with. */
    private Path newestBatch() {
        Path note = newest("offsets")
                .orElseThrow(() -> wrong("it has no batch: give the place that the query has as checkpointLocation"));
        newest("commits").filter(commit -> number(commit) > number(note)).ifPresent(commit -> {
            throw wrong("batch " + number(commit) + " was committed, and has no note: copy " + note.getParent() + "/"
                    + number(commit) + BEFORE + " to the same name without " + BEFORE);
        });
        return note;
    }

    /** The file with the greatest number in one of a query's logs. */
    private Optional<Path> newest(String log) {
        Path folder = new Path(root, log);
        List<FileStatus> batches = files.exists(folder) ? files.list(folder) : List.of();
        return batches.stream().map(FileStatus::getPath).filter(path -> path.getName().matches("[0-9]{1,18}"))
                .max(Comparator.comparingLong(TakeOver::number));
    }

    private static long number(Path path) {
        return Long.parseLong(path.getName());
    }

    /** The line of the format with its end, the line of settings without, and all that follows. */
    private byte[][] lines(Path path) throws IOException {
        byte[] all = bytes(path);
        int first = end(all, 0);
        int second = end(all, first);
        if (first == all.length || second == all.length) {
            throw wrong("the note " + path + " ends too early");
        }
        return new byte[][] {Arrays.copyOfRange(all, 0, first), Arrays.copyOfRange(all, first, second - 1),
            Arrays.copyOfRange(all, second, all.length)};
    }

    private byte[] bytes(Path path) throws IOException {
        try (InputStream in = new BufferedInputStream(files.open(path))) {
            return in.readAllBytes();
        }
    }

    private static int end(byte[] all, int from) {
        int at = from;
        while (at < all.length && all[at] != '\n') {
            at += 1;
        }
        return Math.min(all.length, at + 1);
    }

    /** All files of the state of all stores. */
    private List<Path> state() {
        List<Path> found = new ArrayList<>();
        List<Path> folders = new ArrayList<>(List.of(new Path(root, "state")));
        while (!folders.isEmpty()) {
            Path folder = folders.remove(folders.size() - 1);
            for (FileStatus status : files.exists(folder) ? files.list(folder) : List.<FileStatus>of()) {
                (status.isDirectory() ? folders : found).add(status.getPath());
            }
        }
        return found;
    }

    private IllegalArgumentException wrong(String reason) {
        return new IllegalArgumentException("the checkpoint " + root + " stays as it is: " + reason);
    }
}
