package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.KeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.RangeKeyScanStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.Option;

/** Versions that a provider of Spark's has made are those that this one reads, and goes on from. */
class SparkStoresTest {
    private static final StructType SCHEMA = new StructType().add("n", DataTypes.LongType);
    private static final String STATE = "spark.sql.streaming.stateStore.";
    private static final String LISTS = "lists";
    private static final String RANGES = "ranges";
    private static final int HISTORIES = 6;

    @TempDir
    Path checkpoints;

    private final List<StateStoreProvider> open = new ArrayList<>();
    private final List<StateStore> held = new ArrayList<>();
    private boolean isInMemory;
    private boolean hasChangelogs;
    private boolean hasIds;
    private boolean hasFamilies;
    private String listFormat = "1";

    /** What is known of a version, and its contents as {@code family/key} and the values of each. */
    private record Version(long number, Option<String> id, Map<String, List<Long>> contents) {
        static final Version NOTHING = new Version(0, Option.empty(), Map.of());
    }

    @AfterEach
    void close() {
        // Closing waits for whoever has the store.
        held.forEach(StateStore::abort);
        held.clear();
        open.forEach(StateStoreProvider::close);
    }

    private StateStoreProvider ofSpark() {
        return isInMemory ? new HDFSBackedStateStoreProvider() : new RocksDBStateStoreProvider();
    }

    private <P extends StateStoreProvider> P provider(P provider) {
        SQLConf conf = new SQLConf();
        conf.setConfString(STATE + "rocksdb.changelogCheckpointing.enabled", Boolean.toString(hasChangelogs));
        conf.setConfString(STATE + "checkpointFormatVersion", hasIds ? "2" : "1");
        conf.setConfString(STATE + "rocksdb.mergeOperatorVersion", listFormat);
        conf.setConfString(STATE + "minDeltasForSnapshot", "3");
        conf.setConfString("spark.sql.streaming.minBatchesToRetain", "3");
        conf.setConfString("spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint", "0");
        Configuration hadoop = new Configuration();
        hadoop.set("sql.streaming.runId", UUID.randomUUID().toString());
        provider.init(new StateStoreId(checkpoints.toUri().toString(), 0, 0, "default"), SCHEMA, SCHEMA,
                new NoPrefixKeyStateEncoderSpec(SCHEMA), hasFamilies, StateStoreConf.apply(conf), hadoop, false, Option.empty());
        open.add(provider);
        return provider;
    }

    private static UnsafeRow row(long number) {
        return UnsafeProjection.create(SCHEMA).apply(new GenericInternalRow(new Object[] {number})).copy();
    }

    /** The call has more arguments in later versions of Spark. */
    private StateStore store(StateStoreProvider provider, Version version) {
        Method call = Stream.of(StateStoreProvider.class.getMethods()).filter(method -> method.getName().equals("getStore"))
                .findFirst().orElseThrow();
        Object[] arguments = new Object[] {version.number(), version.id(), false, false};
        StateStore store = (StateStore) invoke(call, provider, Arrays.copyOf(arguments, call.getParameterCount()));
        held.add(store);
        return store;
    }

    private static Object invoke(Method call, Object on, Object... arguments) {
        try {
            return call.invoke(on, arguments);
        } catch (ReflectiveOperationException error) {
            throw Raise.it(error.getCause() == null ? error : error.getCause());
        }
    }

    /** Spark has it since 4.2. */
    private static Optional<Method> deleteRange() {
        return Stream.of(StateStore.class.getMethods()).filter(method -> method.getName().equals("deleteRange")).findFirst();
    }

    private static void deleteRange(Method call, StateStore store, long key, Map<String, List<Long>> contents) {
        invoke(call, store, row(key), row(key + 5), RANGES);
        for (long gone = key; gone < key + 5; gone++) {
            contents.remove(RANGES + "/" + gone);
        }
    }

    private List<String> families(StateStore store) {
        if (!hasFamilies) {
            return List.of("default");
        }
        KeyStateEncoderSpec ranges = new RangeKeyScanStateEncoderSpec(SCHEMA, scala.jdk.javaapi.CollectionConverters.asScala(
                List.<Object>of(0)).toSeq());
        store.createColFamilyIfAbsent(LISTS, SCHEMA, SCHEMA, new NoPrefixKeyStateEncoderSpec(SCHEMA), true, false);
        store.createColFamilyIfAbsent(RANGES, SCHEMA, SCHEMA, ranges, false, false);
        return List.of("default", LISTS, RANGES);
    }

    /** A batch of random changes to a version, by either provider. */
    private Version batch(StateStoreProvider provider, Version from, Random random) {
        StateStore store = store(provider, from);
        List<String> families = families(store);
        Map<String, List<Long>> contents = new TreeMap<>(from.contents());
        for (int change = random.nextInt(30); change > 0; change--) {
            String family = families.get(random.nextInt(families.size()));
            long key = random.nextInt(40) - 20;
            long value = random.nextInt(1000);
            String name = family + "/" + key;
            if (family.equals(RANGES) && deleteRange().isPresent() && random.nextInt(6) == 0) {
                deleteRange(deleteRange().get(), store, key, contents);
            } else if (random.nextInt(4) == 0) {
                store.remove(row(key), family);
                contents.remove(name);
            } else if (family.equals(LISTS)) {
                store.merge(row(key), row(value), family);
                List<Long> values = new ArrayList<>(contents.getOrDefault(name, List.of()));
                values.add(value);
                contents.put(name, values);
            } else {
                store.put(row(key), row(value), family);
                contents.put(name, List.of(value));
            }
        }
        long number = store.commit();
        held.clear();
        Option<String> id = hasIds ? store.getStateStoreCheckpointInfo().stateStoreCkptId() : Option.empty();
        if (random.nextBoolean()) {
            provider.doMaintenance();
        }
        return new Version(number, id, contents);
    }

    private static List<Long> list(StateStore store, long key) {
        List<Long> values = new ArrayList<>();
        var rows = store.valuesIterator(row(key), LISTS);
        while (rows.hasNext()) {
            values.add(rows.next().getLong(0));
        }
        return values;
    }

    private void check(Version version, StateStoreProvider provider) {
        StateStore store = store(provider, version);
        Map<String, List<Long>> found = new TreeMap<>();
        for (String family : families(store)) {
            var rows = store.iterator(family);
            long last = Long.MIN_VALUE;
            while (rows.hasNext()) {
                UnsafeRowPair pair = rows.next();
                long key = pair.key().getLong(0);
                assertTrue(!family.equals(RANGES) || key > last, "keys are in their order");
                last = key;
                found.put(family + "/" + key, family.equals(LISTS) ? list(store, key) : List.of(pair.value().getLong(0)));
            }
            rows.close();
        }
        assertEquals(version.contents(), found, "version " + version.number());
        store.commit();
        held.clear();
        assertEquals(found.size(), store.metrics().numKeys(), "keys are counted");
    }

    /** A provider of Spark's makes versions, and this one goes on with the last, or with one of which more was begun. */
    private void history(long seed) throws IOException {
        Random random = new Random(seed);
        isInMemory = random.nextInt(3) == 0;
        hasChangelogs = random.nextBoolean();
        hasIds = !isInMemory && random.nextBoolean();
        hasFamilies = !isInMemory && random.nextBoolean();
        String name = "seed " + seed + ": in memory " + isInMemory + ", changelogs " + hasChangelogs + ", ids " + hasIds + ", families " + hasFamilies;
        List<Version> versions = new ArrayList<>(List.of(Version.NOTHING));
        StateStoreProvider before = provider(ofSpark());
        for (int count = 1 + random.nextInt(12); count > 0; count--) {
            versions.add(batch(before, versions.get(versions.size() - 1), random));
        }
        before.close();
        open.remove(before);
        if (versions.size() > 2 && random.nextInt(3) == 0) {
            versions.remove(versions.size() - 1);
        }
        ForebayStateStoreProvider ours = provider(new ForebayStateStoreProvider());
        for (int count = 1 + random.nextInt(12); count > 0; count--) {
            if (random.nextInt(4) == 0) {
                ours.close();
                open.remove(ours);
                ours = provider(new ForebayStateStoreProvider());
            }
            versions.add(batch(ours, versions.get(versions.size() - 1), random));
        }
        for (Version version : versions.subList(Math.max(1, versions.size() - 3), versions.size())) {
            ForebayStateStoreProvider reader = provider(new ForebayStateStoreProvider());
            var store = reader.getReadStore(version.number(), version.id());
            assertEquals(version.contents().keySet().stream().filter(key -> key.startsWith("default/")).count(),
                    count(store.iterator("default")), name + ", version " + version.number());
            store.abort();
        }
        try {
            check(versions.get(versions.size() - 1), provider(new ForebayStateStoreProvider()));
        } catch (AssertionError error) {
            throw new AssertionError(name, error);
        }
    }

    private static long count(scala.collection.Iterator<UnsafeRowPair> rows) {
        long count = 0;
        while (rows.hasNext()) {
            rows.next();
            count += 1;
        }
        return count;
    }

    @Test
    void randomHistoriesGoOn() {
        Rounds.run(getClass(), seed -> {
            for (int one = 0; one < HISTORIES; one++) {
                Directories.remove(checkpoints);
                Files.createDirectories(checkpoints);
                history(HISTORIES * seed + one);
                close();
                open.clear();
            }
        });
    }

    private Version made(int versions) {
        StateStoreProvider before = provider(ofSpark());
        Version at = Version.NOTHING;
        Random random = new Random(7);
        for (int count = 0; count < versions; count++) {
            at = batch(before, at, random);
            before.doMaintenance();
        }
        return at;
    }

    private List<Path> files(String name) throws IOException {
        try (Stream<Path> walk = Files.walk(checkpoints)) {
            return walk.filter(path -> path.getFileName().toString().matches(name)).toList();
        }
    }

    @ParameterizedTest
    @CsvSource({"false, false, false", "false, true, false", "false, false, true", "false, true, true", "true, false, false"})
    void theFirstCommitHasASnapshotAndWhatIsOldGoes(boolean isInMemory, boolean hasChangelogs, boolean hasIds) throws IOException {
        this.isInMemory = isInMemory;
        this.hasChangelogs = hasChangelogs;
        this.hasIds = hasIds;
        this.hasFamilies = !isInMemory;
        Version at = made(4);
        ForebayStateStoreProvider ours = provider(new ForebayStateStoreProvider());
        at = batch(ours, at, new Random(1));
        assertEquals(1, files("5_.*\\.forebay").size());
        assertFalse(files(".*\\.sst|.*\\.delta").isEmpty());
        for (int count = 0; count < 8; count++) {
            at = batch(ours, at, new Random(count));
            ours.doMaintenance();
        }
        assertEquals(List.of(), files("[0-9].*\\.zip|.*\\.sst|SSTs|logs|.*\\.delta|.*\\.snapshot"), "what the other has left is gone");
        check(at, provider(new ForebayStateStoreProvider()));
    }

    /** An attempt at a version that was begun by the one, and committed by the other. */
    @Test
    void aSnapshotThatNothingCameOfIsNotTaken() throws IOException {
        hasChangelogs = true;
        Version before = made(3);
        StateStoreProvider lost = provider(ofSpark());
        batch(lost, before, new Random(11));
        lost.doMaintenance();
        ForebayStateStoreProvider ours = provider(new ForebayStateStoreProvider());
        Version after = batch(ours, before, new Random(12));
        for (Path file : files("4.*\\.forebay")) {
            Files.delete(file);
        }
        check(after, provider(new ForebayStateStoreProvider()));
    }

    @Test
    void damageIsFoundAndPassedOver() throws IOException {
        hasChangelogs = true;
        Version last = made(6);
        List<Path> newest = files("6\\.zip|5\\.zip|4\\.zip").stream().sorted().toList();
        Path damaged = newest.get(newest.size() - 1);
        byte[] bytes = Files.readAllBytes(damaged);
        Files.write(damaged, Arrays.copyOf(bytes, bytes.length / 2));
        Files.deleteIfExists(damaged.resolveSibling("." + damaged.getFileName() + ".crc"));
        check(last, provider(new ForebayStateStoreProvider()));
        for (Path table : files(".*\\.sst")) {
            Files.delete(table);
        }
        for (Path changelog : files("1\\.changelog")) {
            Files.delete(changelog);
        }
        Throwable error = assertThrows(Throwable.class, () -> check(last, provider(new ForebayStateStoreProvider())));
        String text = error + " " + error.getCause();
        assertTrue(text.contains(".zip") || text.contains(".sst"), text);
    }

    @Test
    void aSnapshotInMemoryThatIsDamagedIsPassedOver() throws IOException {
        isInMemory = true;
        Version last = made(6);
        Path newest = files("[0-9]+\\.snapshot").stream().sorted().reduce((one, other) -> other).orElseThrow();
        byte[] bytes = Files.readAllBytes(newest);
        bytes[bytes.length / 2] ^= 0x55;
        Files.write(newest, bytes);
        Files.deleteIfExists(newest.resolveSibling("." + newest.getFileName() + ".crc"));
        Files.deleteIfExists(newest.resolveSibling(newest.getFileName() + ".crc"));
        check(last, provider(new ForebayStateStoreProvider()));
    }

    @Test
    void listsWithoutDelimitersAreRefused() {
        hasFamilies = true;
        Version last = made(2);
        listFormat = "2";
        Throwable error = assertThrows(IllegalArgumentException.class, () -> check(last, provider(new ForebayStateStoreProvider())));
        assertTrue(error.getMessage().contains("column family lists has lists without delimiters"), error.getMessage());
    }
}
