package dev.forebay.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.NoPrefixKeyStateEncoderSpec;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreIterator;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** The provider as Spark calls it: who may have the store when, what is refused, and with which error. */
class ProviderTest {
    private static final StructType SCHEMA = new StructType().add("n", DataTypes.LongType);
    private static final String STATE = "spark.sql.streaming.stateStore.";

    @TempDir
    Path checkpoints;

    private final List<ForebayStateStoreProvider> open = new ArrayList<>();

    @AfterEach
    void close() {
        open.forEach(ForebayStateStoreProvider::close);
    }

    private ForebayStateStoreProvider provider(String... settings) {
        return provider(false, settings);
    }

    private ForebayStateStoreProvider provider(boolean hasFamilies, String... settings) {
        SQLConf conf = new SQLConf();
        conf.setConfString(STATE + "forebay.lockAcquireTimeoutMs", "300");
        conf.setConfString(STATE + "minDeltasForSnapshot", "2");
        conf.setConfString("spark.sql.streaming.minBatchesToRetain", "3");
        conf.setConfString("spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint", "0");
        for (int place = 0; place < settings.length; place += 2) {
            conf.setConfString(settings[place], settings[place + 1]);
        }
        Configuration hadoop = new Configuration();
        hadoop.set("sql.streaming.runId", UUID.randomUUID().toString());
        ForebayStateStoreProvider provider = new ForebayStateStoreProvider();
        StateStoreId id = new StateStoreId(checkpoints.toUri().toString(), 0, 0, "default");
        provider.init(id, SCHEMA, SCHEMA, new NoPrefixKeyStateEncoderSpec(SCHEMA), hasFamilies, StateStoreConf.apply(conf), hadoop,
                false, Option.empty());
        open.add(provider);
        return provider;
    }

    private static UnsafeRow row(long number) {
        return UnsafeProjection.create(SCHEMA).apply(new GenericInternalRow(new Object[] {number})).copy();
    }

    private static ForebayStateStore write(ForebayStateStoreProvider provider, long version) {
        return provider.open(version, Option.empty(), Access.WRITE, false);
    }

    private static long batch(ForebayStateStoreProvider provider, long version, long key) {
        ForebayStateStore store = write(provider, version);
        store.put(row(key), row(version), "default");
        return store.commit();
    }

    /** A call that comes too late is told so. */
    private static void refused(Executable call) {
        String text = condition(assertThrows(Throwable.class, call));
        assertTrue(Stream.of("STAMP", "stamp", "OUT_OF_ORDER", "out of order", "CLOSED").anyMatch(text::contains), text);
    }

    private static String condition(Throwable error) {
        return error.toString() + " caused by " + error.getCause();
    }

    @Test
    void aCommittedVersionIsReadByOthers() {
        ForebayStateStoreProvider first = provider();
        assertEquals(1, batch(first, 0, 7));
        ForebayStateStore read = provider().open(1, Option.empty(), Access.READ, false);
        assertEquals(row(0), read.get(row(7), "default"));
        assertNull(read.get(row(8), "default"));
        read.release();
        read.release();
    }

    @Test
    void versionsThatAreNotThereAreRefusedAsSparkDoes() {
        ForebayStateStoreProvider provider = provider();
        assertTrue(condition(assertThrows(Throwable.class, () -> write(provider, -1))).contains("UNEXPECTED_VERSION"));
        String missing = condition(assertThrows(Throwable.class, () -> write(provider, 5)));
        assertTrue(missing.contains("CANNOT_READ_STREAMING_STATE_FILE") && missing.contains("does not exist"), missing);
        assertEquals(1, batch(provider, 0, 1), "nothing is held after a failure");
    }

    @Test
    void oneTaskAtATimeHasTheStore() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore store = write(provider, 0);
        Throwable error = assertThrows(CompletionException.class,
                () -> CompletableFuture.runAsync(() -> write(provider, 0)).join()).getCause();
        assertTrue(condition(error).contains("UNRELEASED_THREAD_ERROR"), condition(error));
        store.abort();
        CompletableFuture.runAsync(() -> write(provider, 0).abort()).join();
    }

    @Test
    void aTaskThatWaitsGetsTheStoreOnceItIsFree() {
        ForebayStateStoreProvider provider = provider(STATE + "forebay.lockAcquireTimeoutMs", "60000");
        ForebayStateStore store = write(provider, 0);
        CompletableFuture<Long> other = CompletableFuture.supplyAsync(() -> batch(provider, 1, 2));
        store.put(row(1), row(1), "default");
        assertEquals(1, store.commit());
        assertEquals(2, other.join());
    }

    @Test
    void whatIsCommittedOrGivenUpIsNotUsedAgain() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore committed = write(provider, 0);
        committed.put(row(1), row(1), "default");
        committed.commit();
        refused(() -> committed.put(row(2), row(2), "default"));
        refused(committed::commit);
        committed.abort();
        assertTrue(committed.hasCommitted());
        if (Minor.REENTRY == Stamps.Reentry.SAME_THREAD) {
            assertEquals(row(1), committed.get(row(1), "default"), "as before Spark 4.1");
        } else {
            refused(() -> committed.get(row(1), "default"));
        }
        ForebayStateStore given = write(provider, 1);
        refused(() -> committed.get(row(1), "default"));
        given.put(row(3), row(3), "default");
        given.abort();
        assertNull(provider.state().database(), "it is closed, and waits for nobody");
        given.abort();
        refused(() -> given.get(row(1), "default"));
        ForebayStateStore after = write(provider, 1);
        assertNull(after.get(row(3), "default"));
        assertEquals(row(1), after.get(row(1), "default"));
        after.abort();
    }

    @Test
    void whoHasTheStoreMayCloseItBeforeSpark41() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore store = write(provider, 0);
        if (Minor.REENTRY == Stamps.Reentry.SAME_THREAD) {
            provider.close();
            refused(() -> store.put(row(1), row(1), "default"));
            assertThrows(Throwable.class, () -> write(provider, 0));
        } else {
            assertTrue(condition(assertThrows(Throwable.class, provider::close)).contains("UNRELEASED_THREAD_ERROR"));
            store.abort();
        }
    }

    @Test
    void aTaskWhoseStampIsOldChangesNothing() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore old = write(provider, 0);
        provider.stamps().release(old.stamp);
        ForebayStateStore now = write(provider, 0);
        refused(() -> old.put(row(1), row(1), "default"));
        refused(old::commit);
        old.abort();
        refused(() -> old.get(row(1), "default"));
        now.put(row(2), row(2), "default");
        assertEquals(1, now.commit());
    }

    /** Spark's joins write under the last key after they have asked whether there is another one. */
    @Test
    void aRowStaysAsItIsWhileItIsAskedWhetherThereAreMore() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore store = write(provider, 0);
        for (long key = 0; key < 100; key++) {
            store.put(row(key), row(key + 1000), "default");
        }
        StateStoreIterator<UnsafeRowPair> rows = store.iterator("default");
        int count = 0;
        while (rows.hasNext()) {
            UnsafeRowPair pair = rows.next();
            UnsafeRow key = pair.key();
            UnsafeRow value = pair.value();
            long number = key.getLong(0);
            rows.hasNext();
            assertEquals(number, key.getLong(0));
            assertEquals(number + 1000, value.getLong(0));
            count += 1;
        }
        assertEquals(100, count);
        store.abort();
    }

    @Test
    void rowsStayAsTheyWereWhileTheStoreIsWritten() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore store = write(provider, 0);
        for (long key = 0; key < 1000; key++) {
            store.put(row(key), row(key), "default");
        }
        StateStoreIterator<UnsafeRowPair> rows = store.iterator("default");
        long count = 0;
        while (rows.hasNext()) {
            UnsafeRow key = rows.next().key().copy();
            store.remove(key, "default");
            count += 1;
        }
        assertEquals(1000, count);
        assertFalse(store.iterator("default").hasNext());
        store.commit();
        assertEquals(0, store.metrics().numKeys());
    }

    @Test
    void keysAreCountedOnceHoweverOftenTheyAreWritten() {
        ForebayStateStoreProvider provider = provider();
        ForebayStateStore store = write(provider, 0);
        for (long write = 0; write < 300; write++) {
            store.put(row(write % 100), row(write), "default");
        }
        store.remove(row(1000), "default");
        store.remove(row(1), "default");
        store.commit();
        assertEquals(99, store.metrics().numKeys());
        ForebayStateStore next = write(provider(), 1);
        next.remove(row(2), "default");
        next.put(row(2), row(2), "default");
        next.put(row(3), row(3), "default");
        next.commit();
        assertEquals(99, next.metrics().numKeys());
    }

    @Test
    void maintenanceAndTasksDoNotMeet() {
        ForebayStateStoreProvider provider = provider(STATE + "forebay.fileGraceMs", "0");
        CompletableFuture<Void> tasks = CompletableFuture.runAsync(() -> {
            for (long version = 0; version < 60; version++) {
                batch(provider, version, version % 7);
            }
        });
        while (!tasks.isDone()) {
            provider.doMaintenance();
        }
        tasks.join();
        provider.doMaintenance();
        for (long version = 58; version <= 60; version++) {
            ForebayStateStore read = provider().open(version, Option.empty(), Access.READ, false);
            assertEquals(row(version - 1), read.get(row((version - 1) % 7), "default"));
            read.release();
        }
    }

    @Test
    void oldVersionsAndTheirFilesGo() throws Exception {
        ForebayStateStoreProvider provider = provider(STATE + "forebay.fileGraceMs", "0");
        for (long version = 0; version < 30; version++) {
            batch(provider, version, version);
            provider.doMaintenance();
        }
        provider.doMaintenance();
        try (Stream<Path> walk = Files.walk(checkpoints)) {
            List<String> files = walk.filter(Files::isRegularFile).map(path -> path.getFileName().toString())
                    .filter(file -> !file.endsWith(".crc")).toList();
            assertTrue(files.stream().noneMatch(file -> file.matches("([1-9]|1\\d|2[0-5])\\.(changelog|forebay)")), files.toString());
            assertTrue(files.size() < 25, files.toString());
        }
    }

    @Test
    void settingsThatAreWrongAreNamed() {
        String memory = assertThrows(IllegalArgumentException.class, () -> provider(STATE + "forebay.memory", "lots")).getMessage();
        assertTrue(memory.contains("forebay.memory") && memory.contains("512m"), memory);
        assertThrows(IllegalArgumentException.class, () -> provider(STATE + "forebay.memory", "1m"));
        assertThrows(IllegalArgumentException.class, () -> provider(STATE + "forebay.threads", "0"));
        assertThrows(IllegalArgumentException.class, () -> provider(STATE + "forebay.codec", "zstd"));
        assertThrows(IllegalArgumentException.class, () -> provider(STATE + "forebay.trackTotalNumberOfRows", "yes"));
    }

    @Test
    void aClosedProviderIsRefused() {
        ForebayStateStoreProvider provider = provider();
        batch(provider, 0, 1);
        provider.close();
        provider.close();
        refused(() -> write(provider, 1));
        refused(provider::doMaintenance);
    }

    @Test
    void afterACommitThatFailedNothingIsWritten() {
        ForebayStateStoreProvider provider = provider();
        batch(provider, 0, 1);
        ForebayStateStore store = write(provider, 1);
        store.put(row(2), row(2), "default");
        provider.state().database().close();
        assertTrue(condition(assertThrows(Throwable.class, store::commit)).contains("COMMIT"));
        refused(() -> store.put(row(3), row(3), "default"));
        refused(store::commit);
        store.abort();
        assertFalse(store.hasCommitted());
        assertEquals(2, batch(provider, 1, 2), "the next task has the store");
    }

    @Test
    void afterACommitWhoseChangelogFailedTheNextTaskBeginsWithTheVersionBefore() throws Exception {
        ForebayStateStoreProvider provider = provider();
        batch(provider, 0, 1);
        ForebayStateStore store = write(provider, 1);
        store.put(row(2), row(2), "default");
        Path changelog = Path.of(provider.stateStoreId().storeCheckpointLocation().toUri()).resolve("2.changelog");
        Path inTheWay = Files.createDirectories(changelog.resolve("folder"));
        assertTrue(condition(assertThrows(Throwable.class, store::commit)).contains("COMMIT"));
        refused(() -> store.put(row(3), row(3), "default"));
        refused(store::commit);
        Files.delete(inTheWay);
        Files.delete(changelog);
        ForebayStateStore next = write(provider, 1);
        assertNull(next.get(row(2), "default"));
        assertEquals(row(0), next.get(row(1), "default"));
        assertEquals(2, next.commit());
    }

    private static void makeFamily(ForebayStateStore store, StructType values) {
        store.createColFamilyIfAbsent("family", SCHEMA, values, new NoPrefixKeyStateEncoderSpec(SCHEMA), false, false);
    }

    @Test
    void aFamilyThatIsRemovedIsThereUntilTheCommit() {
        ForebayStateStoreProvider provider = provider(true);
        ForebayStateStore store = write(provider, 0);
        makeFamily(store, SCHEMA);
        store.put(row(1), row(1), "family");
        store.commit();
        ForebayStateStore given = write(provider, 1);
        assertTrue(given.removeColFamilyIfExists("family"));
        given.abort();
        ForebayStateStore again = write(provider, 1);
        assertEquals(row(1), again.get(row(1), "family"));
        assertTrue(again.removeColFamilyIfExists("family"));
        makeFamily(again, SCHEMA.add("m", DataTypes.LongType));
        assertNull(again.get(row(1), "family"));
        again.commit();
        ForebayStateStore last = write(provider(true), 2);
        assertNull(last.get(row(1), "default"));
        last.abort();
    }

    @Test
    void whatAReaderMadeIsNotOfTheVersion() {
        ForebayStateStoreProvider provider = provider(true);
        ForebayStateStore first = write(provider, 0);
        first.put(row(1), row(1), "default");
        first.commit();
        ForebayStateStore read = provider.open(1, Option.empty(), Access.READ, false);
        makeFamily(read, SCHEMA);
        read.release();
        ForebayStateStore next = provider.open(1, Option.empty(), Access.READ, false);
        assertFalse(next.allColumnFamilyNames().contains("family"), next.allColumnFamilyNames().toString());
        next.release();
    }
}
