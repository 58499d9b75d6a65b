package dev.forebay.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * What batches cost with a provider, beside another one: the state store alone, as a task of an aggregation calls it, a get
 * and a put for each key. {@code Bench PROVIDER DIRECTORY KEYS UPDATES BATCHES MEMORY_MIB STORES}; PROVIDER is forebay or
 * rocksdb. One process measures one provider.
 */
final class Bench {
    private static final int COLUMNS = 8;
    private static final String STATE = "spark.sql.streaming.stateStore.";
    private static final StructType KEY = new StructType().add("key", DataTypes.LongType);

    private final List<StateStoreProvider> providers = new ArrayList<>();
    private final UnsafeProjection keys = UnsafeProjection.create(KEY);
    private final UnsafeProjection values = UnsafeProjection.create(valueSchema());
    private final Random random = new Random(1);
    private String name;
    private final Path directory;
    private final long memoryMib;
    private final int stores;

    private Bench(String name, Path directory, long memoryMib, int stores) {
        this.name = name;
        this.directory = directory;
        this.memoryMib = memoryMib;
        this.stores = stores;
    }

    public static void main(String[] arguments) throws Exception {
        String name = arguments[0];
        long keys = Long.parseLong(arguments[2]);
        int updates = Integer.parseInt(arguments[3]);
        int batches = Integer.parseInt(arguments[4]);
        Bench bench = new Bench(name, Path.of(arguments[1]), Long.parseLong(arguments[5]), Integer.parseInt(arguments[6]));
        bench.open();
        long version = bench.fill(keys, updates);
        long filled = bench.uploaded();
        version = bench.measure(keys, updates, batches, version);
        System.out.printf("%s: %d bytes uploaded a batch, %d MiB anonymous memory at most beside a heap of %d MiB%n", name,
                (bench.uploaded() - filled) / batches, bench.anonymousMib(), Runtime.getRuntime().maxMemory() >> 20);
        bench.restart(version, "on an empty executor");
        if (name.equals("rocksdb")) {
            bench.name = "forebay";
            bench.restart(version + 1, "with what RocksDB has left");
        }
        System.exit(0);
    }

    private static StructType valueSchema() {
        StructType schema = new StructType();
        for (int column = 0; column < COLUMNS; column++) {
            schema = schema.add("v" + column, DataTypes.LongType);
        }
        return schema;
    }

    private void open() {
        providers.clear();
        for (int store = 0; store < stores; store++) {
            StateStoreId id = new StateStoreId(directory.toUri().toString(), 0, store, "default");
            StateStoreProvider provider = name.equals("forebay") ? new ForebayStateStoreProvider() : rocksdb();
            Configuration hadoop = new Configuration();
            hadoop.set("sql.streaming.runId", UUID.randomUUID().toString());
            provider.init(id, KEY, valueSchema(), new NoPrefixKeyStateEncoderSpec(KEY), false, conf(), hadoop, false, Option.empty());
            providers.add(provider);
        }
    }

    private static StateStoreProvider rocksdb() {
        try {
            String rival = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider";
            return (StateStoreProvider) Class.forName(rival).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private StateStoreConf conf() {
        SQLConf conf = new SQLConf();
        conf.setConfString("spark.sql.streaming.minBatchesToRetain", "100000");
        conf.setConfString(STATE + "rocksdb.changelogCheckpointing.enabled", "true");
        conf.setConfString(STATE + "rocksdb.boundedMemoryUsage", "true");
        conf.setConfString(STATE + "rocksdb.maxMemoryUsageMB", Long.toString(memoryMib));
        conf.setConfString(STATE + "forebay.memory", memoryMib + "m");
        // Any other setting: JAVA_TOOL_OPTIONS=-Dspark.sql.streaming.stateStore.forebay.readCompactionRatio=8 make spark-bench
        System.getProperties().stringPropertyNames().stream().filter(property -> property.startsWith(STATE))
                .forEach(property -> conf.setConfString(property, System.getProperty(property)));
        return StateStoreConf.apply(conf);
    }

    private UnsafeRow value(UnsafeRow old) {
        Object[] columns = new Object[COLUMNS];
        for (int column = 0; column < COLUMNS; column++) {
            columns[column] = column == 0 && old != null ? old.getLong(0) + 1 : random.nextLong();
        }
        return values.apply(new GenericInternalRow(columns));
    }

    private static UnsafeRow key(UnsafeProjection keys, long key) {
        InternalRow row = new GenericInternalRow(new Object[] {key});
        return keys.apply(row);
    }

    /** Puts all keys, spread over the stores, as fast as it goes. */
    private long fill(long count, int updates) {
        long version = 0;
        long begin = System.nanoTime();
        long perStore = count / stores;
        for (long done = 0; done < perStore; done += Math.max(1, updates / stores)) {
            for (StateStoreProvider provider : providers) {
                StateStore store = provider.getStore(version, Option.empty());
                for (long key = done; key < Math.min(perStore, done + Math.max(1, updates / stores)); key++) {
                    store.put(key(keys, key), value(null), "default");
                }
                store.commit();
                provider.doMaintenance();
            }
            version += 1;
        }
        System.out.printf("%s: %d keys in %d stores and %d versions, %.1f s%n", name, count, stores, version,
                (System.nanoTime() - begin) / 1e9);
        return version;
    }

    /** Adds to keys that are drawn evenly. */
    private long measure(long count, int updates, int batches, long first) {
        long version = first;
        double[] batchMilliseconds = new double[batches];
        double[] commitMilliseconds = new double[batches * stores];
        long perStore = count / stores;
        for (int batch = 0; batch < batches; batch++) {
            long spent = 0;
            for (int number = 0; number < stores; number++) {
                long begin = System.nanoTime();
                StateStore store = providers.get(number).getStore(version, Option.empty());
                for (int update = 0; update < Math.max(1, updates / stores); update++) {
                    UnsafeRow key = key(keys, (long) (random.nextDouble() * perStore));
                    store.put(key, value(store.get(key, "default")), "default");
                }
                long commit = System.nanoTime();
                store.commit();
                long end = System.nanoTime();
                commitMilliseconds[batch * stores + number] = (end - commit) / 1e6;
                spent += end - begin;
                providers.get(number).doMaintenance();
            }
            batchMilliseconds[batch] = spent / 1e6;
            version += 1;
        }
        Arrays.sort(batchMilliseconds);
        Arrays.sort(commitMilliseconds);
        System.out.printf("%s: batch of %d updates: median %.0f ms, most %.0f ms; commit: median %.1f ms, p99 %.1f ms%n", name,
                updates, batchMilliseconds[batches / 2], batchMilliseconds[batches - 1],
                commitMilliseconds[commitMilliseconds.length / 2], commitMilliseconds[commitMilliseconds.length * 99 / 100]);
        return version;
    }

    /** All bytes where checkpoints are: nothing is deleted here. */
    private long uploaded() throws IOException {
        try (Stream<Path> walk = Files.walk(directory)) {
            return walk.filter(Files::isRegularFile).mapToLong(path -> path.toFile().length()).sum();
        }
    }

    private long anonymousMib() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream().filter(line -> line.startsWith("RssAnon"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) >> 10).findFirst().orElse(0);
    }

    private void restart(long version, String how) {
        providers.forEach(StateStoreProvider::close);
        open();
        long begin = System.nanoTime();
        for (StateStoreProvider provider : providers) {
            StateStore store = provider.getStore(version, Option.empty());
            UnsafeRow key = key(keys, 0);
            store.put(key, value(store.get(key, "default")), "default");
            store.commit();
        }
        System.out.printf("%s: %s the first batch is done after %.0f ms%n", name, how, (System.nanoTime() - begin) / 1e6);
    }
}
