package dev.forebay.kafka;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.test.InternalMockProcessorContext;

/**
 * Stores beside the built-in ones, as a task uses them: single puts and gets, commits, restores by batches, and the memory
 * of many. {@code Figures rates|memory forebay|rocksdb FOLDER RECORDS}
 */
public final class Figures {
    private static final int VALUE_BYTES = 100;
    private static final int RESTORE_RECORDS = 1000;
    private static final int COMMIT_RECORDS = 10_000;
    private static final int STORES = 60;
    /** A built-in store's three write buffers and its cache. */
    private static final long ONE_STORE_BYTES = 98 << 20;
    private static final long ALL_STORES_BYTES = 256 << 20;

    private final String engine;
    private final int records;
    private final byte[] value = new byte[VALUE_BYTES];
    private final InternalMockProcessorContext<?, ?> context;

    private Figures(String engine, Path dir, int records, long memoryBytes) {
        this.engine = engine;
        this.records = records;
        new Random(1).nextBytes(value);
        context = Host.context(dir, Map.of(Settings.MEMORY_BYTES, memoryBytes, "metrics.recording.level", "INFO"));
    }

    public static void main(String[] arguments) throws IOException {
        Path dir = Files.createTempDirectory(Path.of(arguments[2]), "figures");
        int records = Integer.parseInt(arguments[3]);
        try {
            if (arguments[0].equals("rates")) {
                new Figures(arguments[1], dir, records, ONE_STORE_BYTES).rates();
            } else {
                new Figures(arguments[1], dir, records, ALL_STORES_BYTES).memory();
            }
        } finally {
            try (Stream<Path> files = Files.walk(dir)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private KeyValueStore<Bytes, byte[]> open(String name) {
        KeyValueBytesStoreSupplier supplier = engine.equals("forebay")
                ? ForebayStores.persistentKeyValueStore(name)
                : Stores.persistentKeyValueStore(name);
        return Host.open(supplier.get(), context);
    }

    /** Another one for each number, in no order. */
    private static Bytes key(long index) {
        long mixed = index * 0x9E3779B97F4A7C15L;
        return Bytes.wrap(ByteBuffer.allocate(16).putLong(mixed).putLong(index).array());
    }

    private void tell(String what, long count, long begin) {
        System.out.printf("%-8s %-28s %,12.0f records/s%n", engine, what, count / ((System.nanoTime() - begin) / 1e9));
    }

    private void rates() {
        TopicPartition changelog = new TopicPartition("changelog", 0);
        KeyValueStore<Bytes, byte[]> store = open("puts");
        long begin = System.nanoTime();
        for (int index = 0; index < records; index++) {
            store.put(key(index), value);
            if ((index + 1) % COMMIT_RECORDS == 0) {
                store.commit(Map.of(changelog, (long) index));
            }
        }
        tell("put", records, begin);
        int gets = records / 2;
        Random random = new Random(2);
        for (String what : List.of("get, for the first time", "get, again")) {
            begin = System.nanoTime();
            for (int index = 0; index < gets; index++) {
                if (store.get(key(random.nextInt(records))) == null) {
                    throw new IllegalStateException("a key is not there");
                }
            }
            tell(what, gets, begin);
        }
        begin = System.nanoTime();
        for (int index = 0; index < gets; index++) {
            Bytes key = key(random.nextInt(records));
            byte[] before = store.get(key);
            store.put(key, before);
        }
        tell("get and put (an aggregate)", gets, begin);
        store.close();

        List<List<ConsumerRecord<byte[], byte[]>>> batches = new ArrayList<>();
        for (int index = 0; index < records; index += RESTORE_RECORDS) {
            List<ConsumerRecord<byte[], byte[]>> batch = new ArrayList<>();
            for (int place = index; place < index + RESTORE_RECORDS; place++) {
                batch.add(new ConsumerRecord<>("changelog", 0, place, key(place).get(), value));
            }
            batches.add(batch);
        }
        KeyValueStore<Bytes, byte[]> restored = open("restored");
        begin = System.nanoTime();
        for (List<ConsumerRecord<byte[], byte[]>> batch : batches) {
            context.restoreWithHeaders("restored", batch);
        }
        restored.commit(Map.of(changelog, (long) records));
        tell("restore", records, begin);
        restored.close();
    }

    private void memory() throws IOException {
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        long before = residentBytes();
        for (int index = 0; index < STORES; index++) {
            stores.add(open("store" + index));
        }
        long peak = 0;
        Random random = new Random(3);
        for (int index = 0; index < records; index++) {
            KeyValueStore<Bytes, byte[]> store = stores.get(random.nextInt(STORES));
            store.put(key(index), value);
            store.get(key(random.nextInt(index + 1)));
            if (index % 10_000 == 0) {
                peak = Math.max(peak, residentBytes() - before);
            }
        }
        System.out.printf("%-8s %d stores, %,d records: %d MiB more resident at most; one number of %d MiB: %.2f of it%n", engine,
                STORES, records, peak >> 20, ALL_STORES_BYTES >> 20, (double) peak / ALL_STORES_BYTES);
        stores.forEach(KeyValueStore::close);
    }

    private static long residentBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        throw new IOException("/proc/self/status does not tell VmRSS");
    }
}
