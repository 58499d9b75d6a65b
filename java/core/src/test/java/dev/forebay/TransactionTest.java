package dev.forebay;

import static dev.forebay.Keys.bytes;
import static dev.forebay.Keys.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Transactions: what they read, what conflicts, and what is done anew; and changes, which tell of what was committed. */
class TransactionTest {
    private static final byte[] KEY = bytes("key");
    private static final byte[] OTHER = bytes("other");

    @TempDir
    Path dir;

    private Database open() {
        return Database.open(dir.resolve("db"), new Options().set("memory", "8M").set("keep_changes", "4M"));
    }

    private static List<String> keys(Scan scan) {
        List<String> keys = new ArrayList<>();
        scan.forEach(entry -> keys.add(text(entry.key())));
        return keys;
    }

    @Test
    void readsSeeTheMomentAndItsOwnWrites() {
        try (Database db = open()) {
            Table table = db.table("t", TableOptions.layout("wb-tree:ordered").set("merge_rule", "append:,"));
            table.put(KEY, bytes("1"));
            table.put(bytes("gone"), bytes("1"));
            try (Transaction tx = db.begin()) {
                table.put(OTHER, bytes("later"));
                tx.put(table, bytes("a\u00ff"), bytes("mine"));
                tx.merge(table, KEY, bytes("2"));
                assertEquals("1,2", text(tx.get(table, KEY)));
                assertNull(tx.get(table, OTHER));
                tx.delete(table, bytes("gone"));
                assertEquals(List.of("a\u00ff", "key"), keys(tx.scan(table)));
                assertEquals(List.of("a\u00ff"), keys(tx.prefix(table, bytes("a"), Direction.FORWARD)));
                assertEquals(List.of("key", "a\u00ff"), keys(tx.prefix(table, new byte[0], Direction.BACKWARD)));
                assertEquals(List.of(), keys(tx.prefix(table, new byte[] {-1, -1}, Direction.FORWARD)));
                List<byte[]> found = tx.getMany(table, List.of(OTHER, KEY));
                assertTrue(found.get(0) == null && text(found.get(1)).equals("1,2"));
                assertTrue(tx.contains(table, KEY));
                tx.deleteRange(table, bytes("a"), bytes("b"));
                assertEquals(List.of("key"), keys(tx.scan(table)));
                assertEquals("1", text(table.get(KEY)), "nothing is written yet");
            }
            assertEquals("1", text(table.get(KEY)), "it was given up");
        }
    }

    @Test
    void whatWasReadAndChangedIsAConflict() {
        try (Database db = open()) {
            Table table = db.table("t");
            table.put(KEY, bytes("1"));
            Transaction tx = db.begin();
            assertEquals("1", text(tx.get(table, KEY)));
            tx.put(table, OTHER, bytes("mine"));
            table.put(KEY, bytes("2"));
            ForebayException.Conflict conflict = assertThrows(ForebayException.Conflict.class, tx::commit);
            assertTrue(conflict.getMessage().contains("t"), conflict.getMessage());
            assertNull(table.get(OTHER), "nothing of it is written");
            assertThrows(ForebayException.Closed.class, tx::commit);
            assertThrows(ForebayException.Closed.class, () -> tx.get(table, KEY));
            Transaction blind = db.begin();
            blind.put(table, KEY, bytes("3"));
            table.put(KEY, bytes("other"));
            long sequence = blind.commit(Durability.DISK, bytes("offset 9"));
            assertTrue(sequence > 0 && db.durableSequence() >= sequence);
            assertEquals("3offset 9", text(table.get(KEY)) + text(db.metadata()));
        }
    }

    @Test
    @Timeout(60)
    void whatConflictsIsDoneAnew() throws InterruptedException {
        try (Database db = open()) {
            Table table = db.table("t");
            List<Thread> threads = new ArrayList<>();
            AtomicReference<Throwable> failed = new AtomicReference<>();
            for (int thread = 0; thread < 4; thread++) {
                threads.add(new Thread(() -> {
                    for (int round = 0; round < 100; round++) {
                        db.transaction(tx -> {
                            byte[] value = tx.get(table, KEY);
                            int count = value == null ? 0 : Integer.parseInt(text(value));
                            tx.put(table, KEY, bytes(Integer.toString(count + 1)));
                            return count;
                        });
                    }
                }));
            }
            threads.forEach(thread -> thread.setUncaughtExceptionHandler((of, error) -> failed.set(error)));
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            assertNull(failed.get());
            assertEquals("400", text(table.get(KEY)));
            assertThrows(IllegalStateException.class, () -> db.transaction(tx -> {
                tx.put(table, KEY, bytes("0"));
                throw new IllegalStateException("given up");
            }));
            assertEquals("400", text(table.get(KEY)));
        }
        try (Database db = Database.open(dir.resolve("db"), new Options().set("transaction_attempts", "2"))) {
            Table table = db.table("t");
            int[] calls = {0};
            assertThrows(ForebayException.Conflict.class, () -> db.transaction(tx -> {
                calls[0] += 1;
                tx.put(table, OTHER, tx.get(table, KEY));
                table.put(KEY, bytes("changed " + calls[0]));
                return null;
            }));
            assertEquals(2, calls[0]);
        }
    }

    /** Java still has what is in it already: a commit would write that twice, and merge it twice. */
    @Test
    void aReadThatFailsBehindWritesEndsIt() {
        try (Database db = open()) {
            Table table = db.table("t");
            Transaction tx = db.begin();
            tx.put(table, KEY, KEY);
            assertThrows(ForebayException.InvalidArgument.class, () -> tx.prefix(table, KEY, Direction.FORWARD));
            assertThrows(ForebayException.Closed.class, tx::commit);
            assertNull(table.get(KEY));
        }
    }

    @Test
    void misuseIsAnException() {
        Database db = open();
        Table table = db.table("t");
        Database other = Database.open(dir.resolve("other"));
        Table theirs = other.table("t");
        Transaction tx = db.begin();
        assertThrows(ForebayException.InvalidArgument.class, () -> tx.get(theirs, KEY));
        assertThrows(ForebayException.InvalidArgument.class, () -> tx.prefix(table, KEY, Direction.FORWARD));
        tx.put(theirs, KEY, KEY);
        assertThrows(ForebayException.InvalidArgument.class, tx::commit);
        Transaction late = db.begin();
        late.put(theirs, KEY, KEY);
        other.close();
        assertThrows(ForebayException.Closed.class, () -> late.get(table, KEY), "one of its tables is closed");
        assertThrows(ForebayException.Closed.class, late::commit, "and so it is over");
        Transaction garbled = db.begin();
        assertThrows(ForebayException.InvalidArgument.class,
                () -> Native.commitTransaction(garbled.number, new byte[] {9}, 1, null, -1));
        assertThrows(ForebayException.Closed.class, garbled::commit);
        assertThrows(NullPointerException.class, () -> db.begin().get(table, null));
        assertThrows(ForebayException.InvalidArgument.class,
                () -> Native.commitTransaction(db.begin().number, new byte[0], 0, null, 7));
        Transaction outlives = db.begin();
        outlives.put(table, KEY, KEY);
        db.close();
        assertThrows(ForebayException.Closed.class, () -> outlives.get(table, KEY));
        assertThrows(ForebayException.Closed.class, outlives::commit);
        assertThrows(ForebayException.Closed.class, db::begin);
    }

    /** A commit may be longer than an array. */
    @Test
    void aLongCommitComesByBlocks() {
        int records = 300;
        try (Database db = Database.open(dir.resolve("db"), new Options().set("keep_changes", "64M"))) {
            Table table = db.table("t");
            long since = db.lastSequence();
            WriteBatch batch = new WriteBatch();
            for (int record = 0; record < records; record++) {
                batch.put(table, bytes("key " + record), new byte[20_000]);
            }
            long last = db.write(batch);
            table.put(KEY, bytes("after"));
            long feed = Native.changes(db.number, since);
            for (int block = 0; block < 6; block++) {
                int length = Native.changesNext(feed).length;
                assertTrue(length < 1_100_000, length + " bytes in block " + block);
            }
            Native.release(feed);
            try (Changes changes = db.changes(since)) {
                Changes.Commit commit = changes.next();
                assertEquals(records, commit.changes().size());
                assertEquals(last, commit.lastSequence());
                assertEquals("key " + (records - 1), text(commit.changes().get(records - 1).key()));
                assertEquals(1, changes.next().changes().size());
                assertNull(changes.next());
            }
        }
    }

    @Test
    void changesTellWhatWasCommitted() {
        try (Database db = open()) {
            Table table = db.table("t", TableOptions.layout("wb-tree:ordered").set("merge_rule", "append:,"));
            long since = db.lastSequence();
            WriteBatch batch = new WriteBatch();
            batch.put(table, KEY, bytes("1"));
            batch.delete(table, OTHER);
            long first = db.write(batch);
            table.merge(KEY, bytes("2"));
            table.deleteRange(bytes("x"), null);
            try (Changes changes = db.changes(since)) {
                Changes.Commit commit = changes.next();
                assertEquals(first, commit.lastSequence());
                assertEquals(List.of(Changes.Operation.PUT, Changes.Operation.DELETE),
                        commit.changes().stream().map(Changes.Change::operation).toList());
                Changes.Change put = commit.changes().get(0);
                assertEquals("t key 1", put.table() + " " + text(put.key()) + " " + text(put.value()));
                assertTrue(put.sequence() > since && put.sequence() <= first && put.expiryMilliseconds() == 0);
                assertNull(commit.changes().get(1).value());
                List<Changes.Change> rest = new ArrayList<>();
                changes.forEach(later -> rest.addAll(later.changes()));
                assertEquals(Changes.Operation.MERGE, rest.get(0).operation());
                assertEquals(Changes.Operation.DELETE_RANGE, rest.get(1).operation());
                assertEquals("x", text(rest.get(1).key()));
                assertNull(rest.get(1).value());
                assertEquals(2, rest.size());
                assertNull(changes.next());
            }
            assertThrows(ForebayException.InvalidArgument.class, () -> db.changes(-1));
            Changes closed = db.changes(since);
            closed.close();
            assertThrows(ForebayException.Closed.class, closed::next);
        }
        try (Database db = open()) {
            long since = db.lastSequence();
            db.savepoint("before");
            db.table("t").put(KEY, bytes("taken back"));
            db.rollback("before");
            ForebayException gone = assertThrows(ForebayException.ChangesGone.class, () -> db.changes(since).next());
            assertTrue(gone.getMessage().contains("roll"), gone.getMessage());
        }
    }

    @Test
    void anEncryptedDatabaseOpensByItsKeyAlone() {
        byte[] key = new byte[32];
        key[7] = 9;
        Path path = dir.resolve("encrypted");
        try (Database db = Database.open(path, new Options().key("mine", key))) {
            db.table("t").put(KEY, bytes("secret"));
        }
        try (Database db = Database.open(path, new Options().key("mine", key))) {
            assertEquals("secret", text(db.table("t").get(KEY)));
        }
        assertThrows(ForebayException.class, () -> Database.open(path));
        assertThrows(ForebayException.class, () -> Database.open(path, new Options().key("mine", new byte[32])));
        assertThrows(ForebayException.class, () -> Database.open(path, new Options().key("other", key)));
        ForebayException told = assertThrows(ForebayException.InvalidArgument.class,
                () -> Database.open(dir.resolve("none"), new Options().key("mine", new byte[31])));
        assertTrue(told.getMessage().contains("32 bytes"), told.getMessage());
    }
}
