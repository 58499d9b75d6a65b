package dev.forebay.kafka;

import static org.apache.kafka.streams.StreamsConfig.EXACTLY_ONCE_V2;
import static org.apache.kafka.streams.StreamsConfig.PROCESSING_GUARANTEE_CONFIG;

import java.util.Map;
import org.apache.kafka.common.config.ConfigException;

/**
 * What the configuration of Kafka Streams says to the stores. {@code memoryBytes} and {@code threads} are those of all
 * stores of the process; the rest is of the application's.
 */
record Settings(long memoryBytes, int threads, long commitRecords, String layout, boolean isExactlyOnce) {
    static final String MEMORY_BYTES = "forebay.memory.bytes";
    static final String THREADS = "forebay.threads";
    static final String COMMIT_RECORDS = "forebay.commit.records";
    static final String LAYOUT = "forebay.layout";

    private static final long MEMORY_BYTES_USUAL = 256 << 20;
    private static final int THREADS_MAX = 4;
    private static final long COMMIT_RECORDS_USUAL = 10_000;

    static Settings of(Map<String, ?> config) {
        int threads = Math.min(THREADS_MAX, Runtime.getRuntime().availableProcessors());
        Object layout = config.get(LAYOUT);
        return new Settings(
                number(config, MEMORY_BYTES, MEMORY_BYTES_USUAL),
                Math.toIntExact(number(config, THREADS, threads)),
                number(config, COMMIT_RECORDS, COMMIT_RECORDS_USUAL),
                layout == null ? "wb-tree:ordered" : layout.toString(),
                EXACTLY_ONCE_V2.equals(config.get(PROCESSING_GUARANTEE_CONFIG)));
    }

    private static long number(Map<String, ?> config, String name, long usual) {
        Object value = config.get(name);
        try {
            long number = value == null ? usual : Long.parseLong(value.toString().trim());
            if (number > 0) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Told below.
        }
        throw new ConfigException(name, value, "it is a whole number above 0");
    }
}
