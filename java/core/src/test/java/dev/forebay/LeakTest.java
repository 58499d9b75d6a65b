package dev.forebay;

import static dev.forebay.Keys.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is forgotten is let go of, and what is closed at once. */
class LeakTest {
    private static final byte[] VALUE = new byte[100];

    @TempDir
    Path dir;

    @BeforeEach
    void nothingIsLeftOfOtherTests() throws InterruptedException {
        assertEquals(0, heldAfterCollections(0));
    }

    /** How many numbers stand for something, once it is that many or has been more for long. */
    private static long heldAfterCollections(long expected) throws InterruptedException {
        for (int round = 0; round < 200 && Native.held() > expected; round++) {
            System.gc();
            Thread.sleep(20);
        }
        return Native.held();
    }

    private Table filled(Database db) {
        Table table = db.table("t", TableOptions.layout("wb-tree:ordered"));
        WriteBatch batch = new WriteBatch();
        for (int number = 0; number < 2000; number++) {
            batch.put(table, bytes("key " + number), VALUE);
        }
        db.write(batch);
        return table;
    }

    @Test
    void whatIsForgottenIsLetGoOf() throws InterruptedException {
        forget();
        assertEquals(0, heldAfterCollections(0));
        // The directory is free again, too.
        try (Database db = Database.open(dir.resolve("db"))) {
            assertEquals(2000, db.table("t").count());
        }
    }

    private void forget() {
        Database db = Database.open(dir.resolve("db"), new Options().pool(new Pool(8 << 20, 1)));
        Table table = filled(db);
        for (int round = 0; round < 100; round++) {
            assertTrue(table.cursor().first() && db.begin().contains(table, bytes("key 7")) && db.changes(0) != null);
            Aggregator groups = new Aggregator(new AggregatorOptions().key("city").agg("n", "count"));
            groups.update(ArrowStream.ofIpc(Rows.ipc(Rows.some(new Random(round), 20))));
            assertTrue(groups.states() != null && groups.result().ipc() != null);
            Snapshot snapshot = db.snapshot();
            assertTrue(table.scan().advance());
            assertTrue(snapshot.scan(snapshot.table("t")).advance());
        }
        assertTrue(Native.held() > 900);
        assertTrue(new Backups(dir.resolve("backups")).take(db) > 0);
    }

    @Test
    void whatIsClosedOrAtItsEndHoldsNothing() {
        try (Database db = Database.open(dir.resolve("db"))) {
            Table table = filled(db);
            long before = Native.held();
            for (int round = 0; round < 1000; round++) {
                try (Snapshot snapshot = db.snapshot(); Scan scan = snapshot.scan(table)) {
                    assertTrue(scan.advance());
                    assertEquals(before + 2, Native.held());
                }
                // All of it in one block, and nothing held from the start.
                assertTrue(table.prefix(bytes("key 199")).advance());
                assertEquals(before, Native.held());
            }
            for (int round = 0; round < 50; round++) {
                try (Cursor cursor = table.cursor(); Transaction tx = db.begin(); Changes changes = db.changes(0)) {
                    assertTrue(cursor.last() && tx.contains(table, bytes("key 7")) && changes.next() != null);
                }
                Transaction over = db.begin();
                over.put(table, bytes("key 7"), VALUE);
                over.commit();
                try (Aggregator groups = new Aggregator(new AggregatorOptions().key("city").agg("n", "count"))) {
                    groups.update(ArrowStream.ofIpc(Rows.ipc(Rows.some(new Random(round), 20))));
                    groups.merge(groups.states());
                    Rows.read(groups.result());
                }
                assertEquals(before, Native.held());
            }
            Scan whole = table.scan();
            while (whole.advance()) {
                assertEquals(VALUE.length, whole.valueBytes());
            }
            assertEquals(before, Native.held());
        }
        assertEquals(0, Native.held());
    }

    @Test
    void aDatabaseTakesAllThatWasOpenedOfItAlong() {
        Database db = Database.open(dir.resolve("db"));
        Table table = filled(db);
        Snapshot snapshot = db.snapshot();
        assertTrue(snapshot.scan(table).advance());
        db.close();
        assertEquals(0, Native.held());
    }

    /** A table alone keeps its database open, also while a call of it is all that there is. */
    @Test
    void whatIsUsedIsKept() {
        for (int round = 0; round < 50; round++) {
            try (Scan scan = Database.open(dir.resolve("kept" + round)).table("t").scan()) {
                System.gc();
                assertEquals(false, scan.advance());
            }
        }
        Table table = filled(Database.open(dir.resolve("db")));
        for (int round = 0; round < 20; round++) {
            System.gc();
            assertEquals(2000, table.count());
        }
        table.database().close();
    }
}
