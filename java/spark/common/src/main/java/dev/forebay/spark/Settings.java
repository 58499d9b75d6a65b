package dev.forebay.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.jdk.javaapi.CollectionConverters;

/** What a query sets, read once when its store is made. Each name begins with {@link #PREFIX}. */
record Settings(
        long memoryBytes,
        int threads,
        boolean countsKeys,
        long lockTimeoutMilliseconds,
        long graceMilliseconds,
        String layout,
        String orderedLayout,
        String codec,
        double readCompactionRatio,
        boolean hasListDelimiters) {
    private static final Logger LOG = LoggerFactory.getLogger(Settings.class);
    static final String PREFIX = "spark.sql.streaming.stateStore.forebay.";

    /** How RocksDB's provider writes lists: from 4.2 on Spark notes it with a query. */
    private static final String LISTS = "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion";
    private static final long MEMORY_BYTES_MIN = 16L << 20;
    private static final List<String> NAMES = List.of(
            "codec", "fileGraceMs", "layout", "lockAcquireTimeoutMs", "memory", "orderedLayout", "readCompactionRatio",
            "threads", "trackTotalNumberOfRows");

    static Settings of(StateStoreConf conf) {
        Map<String, String> texts = new HashMap<>();
        CollectionConverters.asJava(conf.sqlConfs()).forEach((name, text) -> texts.put(name.toLowerCase(Locale.ROOT), text));
        CollectionConverters.asJava(conf.extraOptions())
                .forEach((name, text) -> texts.put(name.toLowerCase(Locale.ROOT), text));
        if (Boolean.parseBoolean(texts.get("spark.sql.streaming.statestore.rowchecksum.enabled"))) {
            LOG.warn("The state store of Forebay does not add checksums to rows: its files have some of their own");
        }
        tellUnknown(texts.keySet());
        long memoryBytes = bytes(texts, "memory", "512m");
        if (memoryBytes < MEMORY_BYTES_MIN) {
            throw wrong("memory", memoryBytes + " bytes", "give the stores of an executor 16m or more");
        }
        return new Settings(
                memoryBytes,
                (int) number(texts, "threads", 2, 1, 64),
                truth(texts, "trackTotalNumberOfRows", true),
                number(texts, "lockAcquireTimeoutMs", 120_000, 0, Long.MAX_VALUE),
                number(texts, "fileGraceMs", 600_000, 0, Long.MAX_VALUE),
                text(texts, "layout", "wb-tree"),
                text(texts, "orderedLayout", "wb-tree:ordered"),
                codec(texts),
                ratio(texts, "readCompactionRatio", "0.1"),
                texts.getOrDefault(LISTS.toLowerCase(Locale.ROOT), "1").equals("1"));
    }

    private static void tellUnknown(Set<String> texts) {
        Set<String> known = NAMES.stream().map(name -> (PREFIX + name).toLowerCase(Locale.ROOT)).collect(Collectors.toSet());
        texts.stream()
                .filter(name -> name.startsWith(PREFIX.toLowerCase(Locale.ROOT)) && !known.contains(name))
                .forEach(name -> LOG.warn("There is no setting {}; behind {} come {}", name, PREFIX, NAMES));
    }

    private static String codec(Map<String, String> texts) {
        String text = text(texts, "codec", "none").toLowerCase(Locale.ROOT);
        if (!text.equals("none") && !text.equals("lz4")) {
            throw wrong("codec", text, "write none or lz4");
        }
        return text;
    }

    private static String text(Map<String, String> texts, String name, String usual) {
        return texts.getOrDefault((PREFIX + name).toLowerCase(Locale.ROOT), usual).trim();
    }

    private static long bytes(Map<String, String> texts, String name, String usual) {
        String text = text(texts, name, usual);
        try {
            return JavaUtils.byteStringAsBytes(text);
        } catch (NumberFormatException error) {
            throw wrong(name, text, "write a size such as 512m or 4g");
        }
    }

    private static long number(Map<String, String> texts, String name, long usual, long least, long most) {
        String text = text(texts, name, Long.toString(usual));
        try {
            long number = Long.parseLong(text);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Told below.
        }
        throw wrong(name, text, "write a whole number from " + least + " to " + most);
    }

    private static double ratio(Map<String, String> texts, String name, String usual) {
        String text = text(texts, name, usual);
        try {
            double ratio = Double.parseDouble(text);
            if (ratio >= 0 && ratio < Double.POSITIVE_INFINITY) {
                return ratio;
            }
        } catch (NumberFormatException error) {
            // Told below.
        }
        throw wrong(name, text, "write 0 or a number above it");
    }

    private static boolean truth(Map<String, String> texts, String name, boolean usual) {
        String text = text(texts, name, Boolean.toString(usual)).toLowerCase(Locale.ROOT);
        if (!text.equals("true") && !text.equals("false")) {
            throw wrong(name, text, "write true or false");
        }
        return text.equals("true");
    }

    private static IllegalArgumentException wrong(String name, String text, String advice) {
        return new IllegalArgumentException(PREFIX + name + " is " + text + ": " + advice);
    }
}
