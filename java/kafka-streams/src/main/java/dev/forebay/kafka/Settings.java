package dev.forebay.kafka;

import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.apache.kafka.streams.StreamsConfig.PROCESSING_GUARANTEE_CONFIG;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the configuration of Kafka Streams says to the stores. {@code memoryBytes} and {@code threads} are those of all
 * stores of the process; the rest is of the application's.
 */
record Settings(long memoryBytes, int threads, long commitRecords, String layout, boolean isExactlyOnce) {
    private static final Logger LOG = LoggerFactory.getLogger(Settings.class);
    private static final String PREFIX = "forebay.";
    static final String MEMORY_BYTES = "forebay.memory.bytes";
    static final String THREADS = "forebay.threads";
    static final String COMMIT_RECORDS = "forebay.commit.records";
    static final String LAYOUT = "forebay.layout";

    private static final long MEMORY_BYTES_USUAL = 256 << 20;
    /** Less, and more threads, a pool does not take. */
    private static final long MEMORY_BYTES_MIN = 4 << 20;
    private static final int THREADS_MAX = 64;
    private static final int THREADS_USUAL_MAX = 4;
    private static final long COMMIT_RECORDS_USUAL = 10_000;
    private static final String LAYOUT_USUAL = "wb-tree:ordered";

    private static final Set<String> NAMES = Set.of(MEMORY_BYTES, THREADS, COMMIT_RECORDS, LAYOUT);

    static Settings of(Map<String, ?> config) {
        for (String name : config.keySet()) {
            if (name.startsWith(PREFIX) && !NAMES.contains(name)) {
                LOG.warn("There is no setting `{}`; those that there are: {}", name, NAMES.stream().sorted().toList());
            }
        }
        int threads = Math.min(THREADS_USUAL_MAX, Runtime.getRuntime().availableProcessors());
        Object layout = config.get(LAYOUT);
        return new Settings(
                number(config, MEMORY_BYTES, MEMORY_BYTES_USUAL, MEMORY_BYTES_MIN, Long.MAX_VALUE),
                (int) number(config, THREADS, threads, 1, THREADS_MAX),
                number(config, COMMIT_RECORDS, COMMIT_RECORDS_USUAL, 1, Long.MAX_VALUE),
                ordered(layout == null ? LAYOUT_USUAL : layout.toString().trim()),
                EXACTLY_ONCE_V2.equals(config.get(PROCESSING_GUARANTEE_CONFIG)));
    }

    private static long number(Map<String, ?> config, String name, long usual, long min, long max) {
        Object value = config.get(name);
        try {
            long number = value == null ? usual : Long.parseLong(value.toString().trim());
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Told below.
        }
        throw new ConfigException(name, value, "it is a whole number from " + min + (max == Long.MAX_VALUE ? " on" : " to " + max));
    }

    /** All layouts but this one keep keys in order, which ranges need. */
    private static String ordered(String layout) {
        if (layout.equals("wb-tree") || layout.equals("write-buffer")) {
            throw new ConfigException(LAYOUT, layout, "stores have ranges, which it has not; take " + LAYOUT_USUAL);
        }
        return layout;
    }
}
