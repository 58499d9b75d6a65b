package dev.forebay.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.test.InternalMockProcessorContext;

/** What a host does with a store, and bytes for it. */
final class Host {
    static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    static final String STORE = "store";

    private Host() {}

    static InternalMockProcessorContext<?, ?> context(Path dir, Map<String, ?> settings) {
        return context(dir, settings, true);
    }

    /** Of a store that has a changelog, or has not. */
    static InternalMockProcessorContext<?, ?> context(Path dir, Map<String, ?> settings, boolean hasChangelog) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:9092");
        properties.put(InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, true);
        properties.put(Settings.MEMORY_BYTES, 16 << 20);
        properties.putAll(settings);
        var context = new InternalMockProcessorContext<>(dir.toFile(), new StreamsConfig(properties));
        if (hasChangelog) {
            context.addChangelogForStore(STORE, CHANGELOG.topic());
        }
        return context;
    }

    /** A store that was opened. */
    static <S extends StateStore> S open(S store, InternalMockProcessorContext<?, ?> context) {
        store.init(context, store);
        return store;
    }

    static ForebayKeyValueStore keyValues(InternalMockProcessorContext<?, ?> context) {
        return open(ForebayKeyValueStore.of(STORE, Format.PLAIN), context);
    }

    static Bytes key(String text) {
        return Bytes.wrap(bytes(text));
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    /** All that an iterator gives, as {@code key=value}. */
    static <K> List<String> texts(KeyValueIterator<K, byte[]> entries) {
        List<String> texts = new ArrayList<>();
        try (entries) {
            while (entries.hasNext()) {
                KeyValue<K, byte[]> entry = entries.next();
                texts.add((entry.key instanceof Bytes bytes ? text(bytes.get()) : entry.key) + "=" + text(entry.value));
            }
        }
        return texts;
    }

    /** A copy of a folder as it is while a store is open in it. Where background work takes a file away, once more. */
    static Path afterAKill(Path open) throws IOException {
        for (int attempt = 0; ; attempt++) {
            Path copy = Files.createTempDirectory(open.getParent(), "killed").resolve("copy");
            try (Stream<Path> files = Files.walk(open)) {
                for (Path file : files.toList()) {
                    Files.copy(file, copy.resolve(open.relativize(file)));
                }
                return copy;
            } catch (NoSuchFileException | UncheckedIOException gone) {
                if (attempt == 100) {
                    throw new IOException("files go on and on", gone);
                }
            }
        }
    }

    /** A record of a changelog that tells which record of the input it came of. */
    static ConsumerRecord<byte[], byte[]> changed(String key, String value, String topic, long offset) {
        Position position = Position.emptyPosition().withComponent(topic, 0, offset);
        Headers headers = new RecordHeaders();
        headers.add(ChangelogRecordDeserializationHelper.CHANGELOG_VERSION_HEADER_RECORD_CONSISTENCY);
        headers.add(new RecordHeader(
                ChangelogRecordDeserializationHelper.CHANGELOG_POSITION_HEADER_KEY, PositionSerde.serialize(position).array()));
        return new ConsumerRecord<>("changelog", 0, 0, ConsumerRecord.NO_TIMESTAMP, TimestampType.NO_TIMESTAMP_TYPE,
                -1, -1, bytes(key), bytes(value), headers, Optional.empty());
    }
}
