package dev.forebay;

import static dev.forebay.Keys.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever is done wrong ends with an exception, and the JVM goes on. */
class MisuseTest {
    private static final byte[] KEY = bytes("key");
    private static final byte[] VALUE = bytes("value");
    private static final byte[] ROWS = Rows.ipc(Rows.some(new Random(1), 20));

    @TempDir
    Path dir;

    private Database open(String name) {
        return Database.open(dir.resolve(name), new Options().set("memory", "8M"));
    }

    private static Table filled(Database db) {
        Table table = db.table("t", TableOptions.layout("wb-tree:ordered"));
        WriteBatch batch = new WriteBatch();
        for (int number = 0; number < 5000; number++) {
            batch.put(table, bytes("key " + number), VALUE);
        }
        db.write(batch);
        return table;
    }

    private static void assertClosed(Executable... calls) {
        for (Executable call : calls) {
            assertThrows(ForebayException.Closed.class, call);
        }
    }

    @Test
    void whatOutlivesItsDatabaseIsClosed() {
        Database db = open("db");
        Table table = filled(db);
        Snapshot snapshot = db.snapshot();
        Scan scan = table.scan();
        Scan half = snapshot.scan(table);
        assertTrue(half.advance());
        WriteBatch batch = new WriteBatch();
        batch.put(table, KEY, VALUE);
        db.close();
        db.close();
        assertClosed(
                () -> db.table("t"), () -> db.write(batch), db::snapshot, db::stats, db::tables, db::sync, db::flush,
                db::metadata, db::describe, db::verify, db::lastSequence, db::waitUntilIdle, db::savepoints, db::refresh,
                () -> db.checkpoint(dir.resolve("copy")), () -> db.dropTable("t"), () -> db.rollback("x"));
        assertClosed(
                () -> table.get(KEY), () -> table.put(KEY, VALUE), () -> table.getMany(List.of(KEY)), () -> table.containsMany(List.of(KEY)), () -> table.scan(),
                () -> table.prefix(KEY), table::count, table::layout, table::compact, () -> table.delete(KEY),
                () -> table.merge(KEY, KEY), () -> table.compareAndSwap(KEY, null, VALUE), () -> table.contains(KEY));
        assertClosed(() -> snapshot.get(table, KEY), () -> snapshot.table("t"), snapshot::metadata, () -> drain(half));
        assertClosed(() -> drain(scan));
        snapshot.close();
        scan.close();
        half.close();
        try (Database again = open("db")) {
            assertThrows(ForebayException.Closed.class, () -> again.write(batch), "its table is closed");
            assertEquals(5000, again.table("t").count());
        }
    }

    private static int drain(Scan scan) {
        int count = 0;
        while (scan.advance()) {
            count += 1;
        }
        return count;
    }

    @Test
    void whatWasClosedByItselfIsClosed() {
        try (Database db = open("db")) {
            Table table = filled(db);
            Snapshot snapshot = db.snapshot();
            Scan of = snapshot.scan(table);
            snapshot.close();
            snapshot.close();
            assertClosed(() -> snapshot.get(table, KEY), () -> snapshot.count(table), snapshot::metadata);
            assertEquals(5000, drain(of), "a scan goes on without its snapshot");
            assertFalse(of.advance());
            assertThrows(IllegalStateException.class, of::key);
            Scan scan = table.scan();
            assertThrows(IllegalStateException.class, scan::key);
            assertTrue(scan.advance());
            scan.close();
            scan.close();
            assertClosed(scan::advance);
            Pool pool = new Pool(8 << 20, 1);
            pool.close();
            assertClosed(pool::stats, () -> Database.open(dir.resolve("other"), new Options().pool(pool)));
            Backups backups = new Backups(dir.resolve("backups"));
            backups.close();
            assertClosed(() -> backups.take(db), backups::list);
        }
    }

    @Test
    void whatIsOfAnotherDatabaseIsRefused() {
        try (Database db = open("db"); Database other = open("other")) {
            Table table = filled(db);
            Table theirs = filled(other);
            WriteBatch batch = new WriteBatch();
            batch.put(table, KEY, VALUE);
            assertThrows(ForebayException.InvalidArgument.class, () -> other.write(batch));
            batch.put(theirs, KEY, VALUE);
            assertThrows(ForebayException.InvalidArgument.class, () -> db.write(batch));
            try (Snapshot snapshot = other.snapshot()) {
                assertThrows(ForebayException.InvalidArgument.class, () -> snapshot.get(table, KEY));
                assertThrows(ForebayException.InvalidArgument.class, () -> snapshot.scan(table));
            }
            assertNull(theirs.get(KEY));
        }
    }

    @Test
    void nothingIsAnException() {
        try (Database db = open("db")) {
            Table table = filled(db);
            WriteBatch batch = new WriteBatch();
            List<Executable> calls = List.of(
                    () -> table.get(null), () -> table.put(null, VALUE), () -> table.put(KEY, null), () -> table.delete(null),
                    () -> table.prefix(null), () -> db.table(null), () -> batch.put(null, KEY, VALUE),
                    () -> batch.put(table, null, VALUE), () -> batch.delete(table, null), () -> db.write(null),
                    () -> db.write(batch, Durability.OS, null), () -> table.getMany(List.of(KEY, null)));
            calls.forEach(call -> assertThrows(NullPointerException.class, call));
            // Natives know of it themselves.
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.getValue(table.number, 0, null));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.getMany(table.number, 0, bytes("broken")));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.containsMany(table.number, bytes("broken")));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.write(db.number, VALUE, 6, null, -1));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.write(db.number, VALUE, -1, null, -1));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.write(db.number, VALUE, 5, null, 3));
            assertThrows(ForebayException.Closed.class, () -> Native.getValue(db.number, 0, KEY), "another kind of number");
            assertThrows(ForebayException.Closed.class, () -> Native.scanNext(Long.MIN_VALUE));
            Native.release(-7);
            Native.close(table.number + 1000);
            assertEquals(5000, table.count());
        }
    }

    /** Threads use all of it while others close it; and one batch and one scan, which belong to one thread at a time. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    @Timeout(120)
    void closesAmidCallsOfOtherThreads(long seed) throws InterruptedException {
        System.out.println("MisuseTest, seed " + seed);
        Random random = new Random(seed);
        for (int round = 0; round < 8; round++) {
            Database db = open("db");
            Table table = filled(db);
            Snapshot snapshot = db.snapshot();
            AggregatorOptions asked = new AggregatorOptions().key("city").agg("n", "count").schema(ArrowStream.ofIpc(ROWS));
            StoredAggregator groups = db.aggregator("groups", asked);
            AtomicReference<Scan> scan = new AtomicReference<>(table.scan());
            WriteBatch shared = new WriteBatch();
            List<Runnable> users = List.of(
                    () -> table.put(KEY, VALUE), () -> table.get(bytes("key 7")), () -> snapshot.get(table, KEY),
                    () -> table.getMany(List.of(KEY, VALUE)), db::snapshot, () -> db.table("other").put(KEY, VALUE),
                    () -> groups.update(ArrowStream.ofIpc(ROWS)), () -> groups.get("city 1"), () -> Rows.read(groups.states()),
                    () -> table.cursor().first(), () -> snapshot.cursor(table).last(), () -> follow(db),
                    () -> db.transaction(tx -> {
                        tx.put(table, KEY, tx.get(table, bytes("key 7")));
                        return null;
                    }),
                    () -> drain(snapshot.scan(table)), () -> table.prefix(bytes("key 1")).advance(), db::stats,
                    () -> {
                        WriteBatch own = new WriteBatch();
                        own.put(table, KEY, VALUE);
                        db.write(own);
                    });
            List<Runnable> abusers = List.of(
                    () -> {
                        if (!scan.get().advance()) {
                            scan.set(table.scan());
                        }
                    },
                    () -> {
                        shared.put(table, KEY, VALUE);
                        db.write(shared);
                    });
            List<Thread> threads = new ArrayList<>();
            AtomicReference<Throwable> unexpected = new AtomicReference<>();
            for (int thread = 0; thread < 2; thread++) {
                users.forEach(user -> threads.add(new Thread(() -> untilClosed(user, List.of(), unexpected))));
                abusers.forEach(abuser -> threads.add(new Thread(() -> untilClosed(abuser, GARBLED, unexpected))));
            }
            threads.forEach(thread -> thread.setDaemon(true));
            threads.forEach(Thread::start);
            Thread.sleep(random.nextInt(60));
            scan.get().close();
            Thread.sleep(random.nextInt(20));
            snapshot.close();
            Thread.sleep(random.nextInt(20));
            db.close();
            for (Thread thread : threads) {
                thread.join();
            }
            assertNull(unexpected.get(), () -> "unexpected: " + unexpected.get());
        }
        try (Database db = open("db")) {
            assertEquals(List.of(), db.verify());
        }
    }

    /** What the others wrote since may be more than the feed keeps: a thread can wait long between the two calls. */
    private static void follow(Database db) {
        try {
            db.changes(db.lastSequence()).next();
        } catch (ForebayException.ChangesGone gone) {
            // The follower begins anew.
        }
    }

    /** Of a batch and a scan that several threads used at once. */
    private static final List<Class<? extends RuntimeException>> GARBLED = List.of(
            ForebayException.InvalidArgument.class, IndexOutOfBoundsException.class, NegativeArraySizeException.class,
            IllegalArgumentException.class);

    private static void untilClosed(
            Runnable user, List<Class<? extends RuntimeException>> expected, AtomicReference<Throwable> unexpected) {
        while (true) {
            try {
                user.run();
            } catch (ForebayException.Closed closed) {
                return;
            } catch (Throwable error) {
                if (expected.stream().noneMatch(kind -> kind.isInstance(error))) {
                    unexpected.compareAndSet(null, error);
                    return;
                }
            }
        }
    }
}
