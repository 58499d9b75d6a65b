package dev.forebay.kafka;

import static dev.forebay.kafka.Host.bytes;
import static dev.forebay.kafka.Host.key;
import static dev.forebay.kafka.Host.text;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.WindowKeySchema;
import org.apache.kafka.test.InternalMockProcessorContext;

/**
 * A host of two stores, which count words and words by window, and its brokers: a file that has the changelogs of both and
 * says which transactions ended. As Kafka Streams does, it ends a transaction, then commits its stores, and when it begins
 * it restores what they do not have. It holds what they have against the changelog, before and after.
 */
public final class KilledHost {
    private static final TopicPartition WORDS = new TopicPartition("words", 0);
    private static final TopicPartition WINDOWS = new TopicPartition("windows", 0);
    private static final long WINDOW = 10_000;
    private static final long RETENTION = 120_000;
    private static final int BATCH = 500;

    private final Path log;
    private final boolean isExactlyOnce;
    private final ForebayKeyValueStore words;
    private final ForebayWindowStore windows;
    private final InternalMockProcessorContext<?, ?> context;
    /** Of each changelog, what committed transactions wrote. */
    private final List<KeyValue<byte[], byte[]>> wordRecords = new ArrayList<>();
    private final List<KeyValue<byte[], byte[]>> windowRecords = new ArrayList<>();
    private long input;

    private KilledHost(Path dir, String guarantee, int commitRecords) throws IOException {
        log = dir.resolve("changelog");
        isExactlyOnce = guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2);
        context = Host.context(
                dir, Map.of(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee, Settings.COMMIT_RECORDS, commitRecords));
        words = Host.open(ForebayKeyValueStore.of("words", Format.PLAIN), context);
        WindowSupplier supplier =
                WindowSupplier.of("windows", Format.PLAIN, RETENTION, WINDOW, false, StrategyType.ON_WINDOW_UPDATE);
        windows = Host.open(ForebayWindowStore.of(supplier), context);
        readLog();
    }

    public static void main(String[] arguments) throws IOException {
        KilledHost host = new KilledHost(Path.of(arguments[0]), arguments[1], Integer.parseInt(arguments[2]));
        host.restore();
        System.out.println("from " + host.input);
        if (Integer.parseInt(arguments[3]) > 0) {
            host.run();
        }
        host.words.close();
        host.windows.close();
    }

    /** Each line is a record, {@code w KEY VALUE} or {@code t KEY TIME VALUE}, or the end of a transaction, {@code c INPUT}. */
    private void readLog() throws IOException {
        String all = Files.exists(log) ? Files.readString(log) : "";
        String begun = all.substring(0, all.lastIndexOf('\n') + 1);
        // What no transaction has ended was never read by anybody.
        int last = begun.startsWith("c ") ? 0 : begun.lastIndexOf("\nc ") + 1;
        String ended = begun.lastIndexOf("c ") < 0 ? "" : begun.substring(0, begun.indexOf('\n', last) + 1);
        Files.writeString(log, ended);
        for (String line : ended.lines().toList()) {
            String[] parts = line.split(" ");
            switch (parts[0]) {
                case "w" -> wordRecords.add(KeyValue.pair(bytes(parts[1]), bytes(parts[2])));
                case "t" -> windowRecords.add(KeyValue.pair(
                        WindowKeySchema.toStoreKeyBinary(key(parts[1]), Long.parseLong(parts[2]), 0).get(), bytes(parts[3])));
                default -> input = Long.parseLong(parts[1]);
            }
        }
    }

    private void restore() {
        int wordsFrom = offset(words.committedOffset(WORDS));
        int windowsFrom = offset(windows.committedOffset(WINDOWS));
        if (isExactlyOnce) {
            check("before restoring", wordsFrom, windowsFrom);
        }
        restore("words", wordRecords, wordsFrom);
        restore("windows", windowRecords, windowsFrom);
        check("after restoring", wordRecords.size(), windowRecords.size());
    }

    private static int offset(Long committed) {
        return committed == null ? 0 : committed.intValue();
    }

    private void restore(String store, List<KeyValue<byte[], byte[]>> records, int from) {
        for (int place = from; place < records.size(); place += BATCH) {
            context.restore(store, records.subList(place, Math.min(records.size(), place + BATCH)));
        }
    }

    /** Holds both stores against so many records of their changelogs. */
    private void check(String when, int wordCount, int windowCount) {
        Map<String, String> expected = new TreeMap<>();
        wordRecords.subList(0, wordCount).forEach(record -> expected.put(text(record.key), text(record.value)));
        Map<String, String> found = new TreeMap<>();
        try (KeyValueIterator<Bytes, byte[]> all = words.all()) {
            all.forEachRemaining(entry -> found.put(text(entry.key.get()), text(entry.value)));
        }
        same("words " + when, expected, found);

        expected.clear();
        long latest = -1;
        for (KeyValue<byte[], byte[]> record : windowRecords.subList(0, windowCount)) {
            Windowed<Bytes> window = WindowKeySchema.fromStoreBytesKey(record.key, WINDOW);
            latest = Math.max(latest, window.window().start());
            expected.put(name(window), text(record.value));
        }
        long oldest = latest - RETENTION + 1;
        expected.keySet().removeIf(name -> Long.parseLong(name.substring(name.indexOf('@') + 1)) < oldest);
        found.clear();
        try (KeyValueIterator<Windowed<Bytes>, byte[]> all = windows.all()) {
            all.forEachRemaining(entry -> found.put(name(entry.key), text(entry.value)));
        }
        same("windows " + when, expected, found);
    }

    private static String name(Windowed<Bytes> window) {
        return text(window.key().get()) + "@" + window.window().start();
    }

    private static void same(String what, Map<String, String> expected, Map<String, String> found) {
        if (!expected.equals(found)) {
            throw new IllegalStateException(what + ": expected " + expected + ", found " + found);
        }
    }

    /** Transactions without end. */
    private void run() throws IOException {
        Random random = new Random(input);
        long wordCount = wordRecords.size();
        long windowCount = windowRecords.size();
        while (true) {
            StringBuilder transaction = new StringBuilder();
            int records = 1 + random.nextInt(50);
            for (int index = 0; index < records; index++) {
                count(transaction, input);
                input += 1;
            }
            wordCount += records;
            windowCount += records;
            // The records of one that was killed here are there, and it has no end.
            append(transaction.toString());
            append("c " + input + "\n");
            words.commit(Map.of(WORDS, wordCount));
            windows.commit(Map.of(WINDOWS, windowCount));
            System.out.println(".");
        }
    }

    private void count(StringBuilder transaction, long record) {
        String word = "word" + record * 31 % 97;
        String count = next(words.get(key(word)));
        words.put(key(word), bytes(count));
        transaction.append("w ").append(word).append(' ').append(count).append('\n');

        long begin = record * 20 / WINDOW * WINDOW;
        String inWindow = next(windows.fetch(key(word), begin));
        windows.put(key(word), bytes(inWindow), begin);
        transaction.append("t ").append(word).append(' ').append(begin).append(' ').append(inWindow).append('\n');
    }

    private static String next(byte[] count) {
        return Long.toString(count == null ? 1 : Long.parseLong(text(count)) + 1);
    }

    private void append(String text) throws IOException {
        Files.writeString(log, text, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
