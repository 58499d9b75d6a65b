package dev.forebay.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.DriverTask;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A topology of all that the DSL keeps: what comes out of it, and what queries tell, is the same with the built-in stores. */
class TopologyTest {
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final int RECORDS = 250;
    private static final int PARTS = 2;

    @TempDir
    Path dir;

    @ParameterizedTest
    @CsvSource({"DEFAULT,at_least_once", "HEADERS,at_least_once", "DEFAULT,exactly_once_v2", "HEADERS,exactly_once_v2"})
    void allThatComesOutIsTheSame(String format, String guarantee) throws IOException {
        List<String> expected = run(RocksDBDslStoreSuppliers.class, format, guarantee);
        List<String> found = run(ForebayDslStoreSuppliers.class, format, guarantee);
        assertTrue(expected.size() > 1000, "only " + expected.size());
        for (int index = 0; index < Math.min(expected.size(), found.size()); index++) {
            assertEquals(expected.get(index), found.get(index), "of number " + index);
        }
        assertEquals(expected.size(), found.size());
        assertEquals(0, SharedPool.users());
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> texts = Consumed.with(Serdes.String(), Serdes.String());
        KStream<String, String> words = builder.stream("words", texts);
        KStream<String, String> others = builder.stream("others", texts);
        KGroupedStream<String, String> byKey = words.groupByKey();
        KTable<String, Long> counts = byKey.count(Materialized.as("counts"));
        out(counts.toStream(), "counts");
        out(counts.join(others.toTable(Materialized.as("table")), (count, text) -> count + text).toStream(), "joined");

        TimeWindows tumbling = TimeWindows.ofSizeAndGrace(WINDOW, WINDOW);
        out(byKey.windowedBy(tumbling).count(Materialized.as("windows")).toStream(), "windows");
        out(byKey.windowedBy(tumbling.advanceBy(WINDOW.dividedBy(4))).reduce((one, other) -> one + other).toStream(), "hopping");
        out(byKey.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(WINDOW, WINDOW)).count().toStream(), "sliding");
        out(byKey.windowedBy(tumbling).emitStrategy(EmitStrategy.onWindowClose()).count().toStream(), "closed");
        out(byKey.windowedBy(tumbling).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())).toStream(),
                "suppressed");
        SessionWindows sessions = SessionWindows.ofInactivityGapAndGrace(WINDOW, WINDOW);
        out(byKey.windowedBy(sessions).count(Materialized.as("sessions")).toStream(), "sessions");
        out(byKey.windowedBy(sessions).emitStrategy(EmitStrategy.onWindowClose()).count().toStream(), "ended");

        JoinWindows near = JoinWindows.ofTimeDifferenceAndGrace(WINDOW, WINDOW);
        out(words.join(others, (one, other) -> one + other, near), "inner");
        out(words.outerJoin(others, (one, other) -> one + "," + other, near), "outer");
        return builder.build();
    }

    private static void out(KStream<?, ?> stream, String what) {
        stream.map((key, value) -> KeyValue.pair(what, key + " " + value))
                .to("out", Produced.with(Serdes.String(), Serdes.String()));
    }

    /** In parts: behind each all is closed, and opened again with what is on disk. The driver restores nothing. */
    private List<String> run(Class<?> suppliers, String format, String guarantee) throws IOException {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:9092");
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        properties.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        properties.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);
        properties.put(Settings.MEMORY_BYTES, 32 << 20);
        List<String> out = new ArrayList<>();
        Random random = new Random(11);
        for (int part = 0; part < PARTS; part++) {
            Path here = dir.resolve(suppliers.getSimpleName() + part);
            properties.put(StreamsConfig.STATE_DIR_CONFIG, here.toString());
            try (TopologyTestDriver driver = new TopologyTestDriver(topology(), properties, Instant.EPOCH)) {
                pipe(driver, random, RECORDS * part / PARTS, RECORDS * (part + 1) / PARTS, out);
                ask(driver, out);
                // The built-in stores with headers answer none of these.
                if (!format.equals("HEADERS")) {
                    query(driver, out);
                }
                if (part + 1 < PARTS) {
                    DriverTask.close(driver);
                    // The driver removes what it finds in its folder.
                    Files.move(here, dir.resolve(suppliers.getSimpleName() + (part + 1)));
                }
            }
        }
        return out;
    }

    private static void pipe(TopologyTestDriver driver, Random random, int from, int to, List<String> out) {
        List<TestInputTopic<String, String>> topics = List.of(
                driver.createInputTopic("words", new StringSerializer(), new StringSerializer()),
                driver.createInputTopic("others", new StringSerializer(), new StringSerializer()));
        // The built-in stores do not know how late it is when they are opened.
        for (TestInputTopic<String, String> topic : topics) {
            topic.pipeInput("k0", "v0", from * 700L);
        }
        for (int record = from; record < to; record++) {
            // Some are late, some too late; now and then there is a pause.
            long time = Math.max(0, record * 700L - random.nextInt(random.nextInt(10) == 0 ? 60_000 : 3_000));
            String value = random.nextInt(10) == 0 ? null : "v" + random.nextInt(50);
            topics.get(random.nextInt(2)).pipeInput("k" + random.nextInt(7), value, time);
        }
        driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer())
                .readRecordsToList()
                .forEach(record -> out.add(record.timestamp() + " " + record.key() + " " + record.value() + " " + record.headers()));
    }

    /** What stores tell. */
    private static void ask(TopologyTestDriver driver, List<String> out) {
        driver.<String, Long>getKeyValueStore("counts").all().forEachRemaining(entry -> out.add("all " + entry));
        driver.<String, Long>getWindowStore("windows").all().forEachRemaining(entry -> out.add("window " + entry));
        driver.<String, Long>getWindowStore("windows").backwardFetch("k1", "k4", Instant.EPOCH, Instant.ofEpochMilli(500_000))
                .forEachRemaining(entry -> out.add("backward " + entry));
        driver.<String, Long>getSessionStore("sessions").fetch("k1", "k5").forEachRemaining(entry -> out.add("session " + entry));
    }

    /** What queries tell. */
    private static void query(TopologyTestDriver driver, List<String> out) {
        Instant latest = Instant.ofEpochMilli(1_000_000);
        query(driver, "counts", KeyQuery.<String, Long>withKey("k3"), out);
        query(driver, "counts", RangeQuery.<String, Long>withRange("k2", "k5").withDescendingKeys(), out);
        query(driver, "windows", WindowKeyQuery.<String, Long>withKeyAndWindowStartRange("k3", Instant.EPOCH, latest), out);
        query(driver, "windows", WindowRangeQuery.<String, Long>withWindowStartRange(Instant.EPOCH, latest), out);
        query(driver, "sessions", WindowRangeQuery.<String, Long>withKey("k3"), out);
        PositionBound ahead = PositionBound.at(Position.fromMap(Map.of("words", Map.of(0, 1_000_000L))));
        QueryResult<Long> early = driver.getAllStateStores().get("counts").query(KeyQuery.withKey("k3"), ahead, new QueryConfig(true));
        assertFalse(early.isSuccess());
        out.add("early " + early.getFailureReason());
    }

    private static <R> void query(TopologyTestDriver driver, String store, Query<R> query, List<String> out) {
        QueryResult<R> result = driver.getAllStateStores().get(store).query(query, PositionBound.unbounded(), new QueryConfig(true));
        String told = query.getClass().getSimpleName() + " " + store + " at " + result.getPosition() + " ";
        if (!result.isSuccess()) {
            out.add(told + result.getFailureReason());
        } else if (result.getResult() instanceof KeyValueIterator<?, ?> entries) {
            try (entries) {
                entries.forEachRemaining(entry -> out.add(told + entry));
            }
        } else {
            out.add(told + result.getResult());
        }
    }
}
