package dev.forebay.kafka;

import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.serialization.VoidSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;

/** Counts the words of files, and of all texts in folders, without a broker: {@code WordCount WORK_FOLDER FILE...} */
public final class WordCount {
    private static final int TOP = 10;
    private static final long MEMORY_BYTES = 16 << 20;

    private WordCount() {}

    public static void main(String[] arguments) throws IOException {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "no-broker:9092");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[0]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, ForebayDslStoreSuppliers.class);
        properties.put(Settings.MEMORY_BYTES, MEMORY_BYTES);

        long begin = System.nanoTime();
        long lines = 0;
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(), properties)) {
            TestInputTopic<Void, String> topic = driver.createInputTopic("lines", new VoidSerializer(), new StringSerializer());
            for (String file : Arrays.asList(arguments).subList(1, arguments.length)) {
                for (Path text : texts(Path.of(file))) {
                    for (String line : lines(text)) {
                        topic.pipeInput(line);
                        lines += 1;
                    }
                }
            }
            tell(driver, lines, (System.nanoTime() - begin) / 1e9);
        }
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.Void(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("[^\\p{L}]+")))
                .filter((none, word) -> !word.isEmpty())
                .groupBy((none, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"));
        return builder.build();
    }

    private static List<Path> texts(Path file) throws IOException {
        try (Stream<Path> found = Files.walk(file)) {
            return found.filter(path -> path.equals(file) || path.toString().matches(".*\\.(md|txt)"))
                    .filter(Files::isRegularFile)
                    .sorted()
                    .toList();
        }
    }

    private static List<String> lines(Path text) throws IOException {
        try {
            return Files.readAllLines(text);
        } catch (MalformedInputException error) {
            throw new IOException(text + " is not UTF-8", error);
        }
    }

    private static void tell(TopologyTestDriver driver, long lines, double seconds) {
        List<KeyValue<String, Long>> counts = new ArrayList<>();
        long words = 0;
        try (KeyValueIterator<String, Long> all = driver.<String, Long>getKeyValueStore("counts").all()) {
            while (all.hasNext()) {
                KeyValue<String, Long> count = all.next();
                counts.add(count);
                words += count.value;
            }
        }
        counts.sort(Comparator.comparing((KeyValue<String, Long> count) -> -count.value).thenComparing(count -> count.key));
        counts.stream().limit(TOP).forEach(count -> System.out.printf("%10d  %s%n", count.value, count.key));
        System.out.printf("%,d words, %,d of them different, in %,d lines; %.1f s, %,.0f words/s%n",
                words, counts.size(), lines, seconds, words / seconds);
        System.out.printf("all stores have %d MiB; each line was a transaction of exactly-once%n", MEMORY_BYTES >> 20);
    }
}
