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
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.WindowKeySchema;
import org.apache.kafka.test.InternalMockProcessorContext;

/**
 * A host of three stores, which count words, by window and by session, too, and its brokers: a file that has the changelogs
 * and says which transactions ended. As Kafka Streams does, it restores what the stores do not have when it begins, and
 * commits them then. While it runs it commits them after each transaction under at-least-once; under exactly-once not until
 * it closes them. It holds what they have against the changelogs, before and after it restores.
 *
 * <p>Now and then time jumps so far within a transaction that all windows before have expired.
 */
public final class KilledHost {
    private static final long WINDOW = 10_000;
    private static final long GAP = 3_000;
    private static final long RETENTION = 120_000;
    private static final long JUMP = 2 * RETENTION;
    private static final int BATCH = 500;

    private final Path log;
    private final boolean isExactlyOnce;
    private final boolean wasEmpty;
    private final ForebayKeyValueStore words;
    private final ForebayWindowStore windows;
    private final ForebaySessionStore sessions;
    private final List<KilledChangelog> changelogs;
    private final InternalMockProcessorContext<?, ?> context;
    private long input;
    private long time;

    private KilledHost(Path dir, String guarantee, int commitRecords) throws IOException {
        log = dir.resolve("changelog");
        isExactlyOnce = guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2);
        Path task = Files.createDirectories(dir.resolve("task"));
        try (var files = Files.list(task)) {
            wasEmpty = files.findAny().isEmpty();
        }
        context = Host.context(
                task, Map.of(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee, Settings.COMMIT_RECORDS, commitRecords));
        words = Host.open(ForebayKeyValueStore.of("words", Format.PLAIN), context);
        windows = Host.open(ForebayWindowStore.of(
                WindowSupplier.of("windows", Format.PLAIN, RETENTION, WINDOW, false, StrategyType.ON_WINDOW_UPDATE)), context);
        sessions = Host.open(ForebaySessionStore.of(
                SessionSupplier.of("sessions", Format.PLAIN, RETENTION, StrategyType.ON_WINDOW_CLOSE)), context);
        changelogs = List.of(
                new KilledChangelog(words, null, RETENTION, this::wordsThere),
                new KilledChangelog(windows, Keys.WINDOW, RETENTION, this::windowsThere),
                new KilledChangelog(sessions, Keys.SESSION, RETENTION, this::sessionsThere));
        readLog();
    }

    public static void main(String[] arguments) throws IOException {
        KilledHost host = new KilledHost(Path.of(arguments[0]), arguments[1], Integer.parseInt(arguments[2]));
        System.out.println("from " + host.input);
        host.restore();
        host.run(Integer.parseInt(arguments[3]));
        host.close();
    }

    /** Each line is a record, {@code STORE KEY VALUE}, or the end of a transaction, {@code c INPUT TIME}. */
    private void readLog() throws IOException {
        String all = Files.exists(log) ? Files.readString(log) : "";
        String begun = all.substring(0, all.lastIndexOf('\n') + 1);
        // What no transaction has ended was never read by anybody.
        int last = begun.startsWith("c ") ? 0 : begun.lastIndexOf("\nc ") + 1;
        String ended = begun.lastIndexOf("c ") < 0 ? "" : begun.substring(0, begun.indexOf('\n', last) + 1);
        Files.writeString(log, ended);
        for (String line : ended.lines().toList()) {
            String[] parts = line.split(" ");
            if (parts[0].equals("c")) {
                input = Long.parseLong(parts[1]);
                time = Long.parseLong(parts[2]);
            } else {
                changelogs.forEach(changelog -> changelog.read(parts));
            }
        }
    }

    private void restore() {
        for (KilledChangelog changelog : changelogs) {
            if (changelog.offset() == null && isExactlyOnce && !wasEmpty) {
                throw new IllegalStateException(changelog.name() + " has no offset: the host would wipe the whole task");
            }
        }
        for (KilledChangelog changelog : changelogs) {
            int from = changelog.offset() == null ? 0 : changelog.offset().intValue();
            if (isExactlyOnce) {
                changelog.check("before restoring", from);
            }
            for (int place = from; place < changelog.size(); place += BATCH) {
                int end = Math.min(changelog.size(), place + BATCH);
                changelog.restore(context, place, end);
                if (place / BATCH % 4 == 1) {
                    changelog.commit(end);
                }
            }
            changelog.commit(changelog.size());
            changelog.check("after restoring", changelog.size());
        }
        System.out.println(".");
    }

    private void run(int transactions) throws IOException {
        Random random = new Random(input);
        for (int transaction = 0; transaction < transactions; transaction++) {
            int records = 1 + random.nextInt(50);
            int jumps = random.nextInt(4) == 0 ? random.nextInt(records) : -1;
            for (int index = 0; index < records; index++) {
                long before = time;
                time += 20;
                count(input, time);
                if (index == jumps) {
                    time += JUMP;
                    count(input, time);
                    count(input + 1, before);
                }
                input += 1;
            }
            StringBuilder lines = new StringBuilder();
            changelogs.forEach(changelog -> changelog.write(lines));
            // The records of one that was killed here are there, and it has no end.
            append(lines.toString());
            append("c " + input + " " + time + "\n");
            changelogs.forEach(KilledChangelog::end);
            if (!isExactlyOnce) {
                changelogs.forEach(changelog -> changelog.commit(changelog.size()));
            }
            System.out.println(".");
        }
    }

    private void close() {
        changelogs.forEach(changelog -> changelog.commit(changelog.size()));
        words.close();
        windows.close();
        sessions.close();
    }

    private void count(long record, long time) {
        Bytes word = key("word" + record * 31 % 97);
        byte[] count = next(words.get(word));
        words.put(word, count);
        changelogs.get(0).add(word.get(), count);

        long begin = time / WINDOW * WINDOW;
        byte[] inWindow = next(windows.fetch(word, begin));
        windows.put(word, inWindow, begin);
        changelogs.get(1).add(WindowKeySchema.toStoreKeyBinary(word, begin, 0).get(), inWindow);

        long[] span = {time, time};
        byte[][] inSession = {next(null)};
        try (KeyValueIterator<Windowed<Bytes>, byte[]> near = sessions.findSessions(word, time - GAP, time + GAP)) {
            near.forEachRemaining(session -> {
                span[0] = Math.min(span[0], session.key.window().start());
                span[1] = Math.max(span[1], session.key.window().end());
                inSession[0] = bytes(Long.toString(Long.parseLong(text(inSession[0])) + Long.parseLong(text(session.value))));
                put(session.key, null);
            });
        }
        put(new Windowed<>(word, new SessionWindow(span[0], span[1])), inSession[0]);
    }

    private void put(Windowed<Bytes> session, byte[] value) {
        sessions.put(session, value);
        changelogs.get(2).add(SessionKeySchema.toBinary(session).get(), value);
    }

    private static byte[] next(byte[] count) {
        return bytes(Long.toString(count == null ? 1 : Long.parseLong(text(count)) + 1));
    }

    private void append(String text) throws IOException {
        Files.writeString(log, text, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    private List<KeyValue<byte[], byte[]>> wordsThere() {
        List<KeyValue<byte[], byte[]>> there = new ArrayList<>();
        try (KeyValueIterator<Bytes, byte[]> all = words.all()) {
            all.forEachRemaining(entry -> there.add(KeyValue.pair(entry.key.get(), entry.value)));
        }
        return there;
    }

    private List<KeyValue<byte[], byte[]>> windowsThere() {
        List<KeyValue<byte[], byte[]>> there = new ArrayList<>();
        try (KeyValueIterator<Windowed<Bytes>, byte[]> all = windows.all()) {
            all.forEachRemaining(entry -> there.add(KeyValue.pair(
                    WindowKeySchema.toStoreKeyBinary(entry.key.key(), entry.key.window().start(), 0).get(), entry.value)));
        }
        return there;
    }

    private List<KeyValue<byte[], byte[]>> sessionsThere() {
        List<KeyValue<byte[], byte[]>> there = new ArrayList<>();
        try (KeyValueIterator<Windowed<Bytes>, byte[]> all = sessions.findSessions(null, null, 0, Long.MAX_VALUE)) {
            all.forEachRemaining(entry -> there.add(KeyValue.pair(SessionKeySchema.toBinary(entry.key).get(), entry.value)));
        }
        return there;
    }
}
