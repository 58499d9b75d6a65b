package dev.forebay;

import static dev.forebay.Keys.bytes;
import static dev.forebay.Keys.text;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each feature once, as its documentation says. */
class FeaturesTest {
    private static final byte[] KEY = bytes("key");
    private static final byte[] VALUE = bytes("value");

    @TempDir
    Path dir;

    private Database open(String name) {
        return Database.open(dir.resolve(name), new Options().set("memory", "8M"));
    }

    @Test
    void operandsAreJoinedByADelimiter() {
        try (Database db = open("merge")) {
            TableOptions options = TableOptions.layout("wb-tree:ordered").set("merge_rule", "append:,");
            Table lists = db.table("lists", options);
            WriteBatch batch = new WriteBatch();
            batch.merge(lists, KEY, bytes("a"));
            batch.merge(lists, KEY, bytes("b"));
            db.write(batch);
            lists.merge(KEY, bytes("c"));
            assertEquals("a,b,c", text(lists.get(KEY)));
            assertThrows(ForebayException.InvalidArgument.class, () -> db.table("plain").merge(KEY, VALUE));
        }
    }

    @Test
    void metadataIsOfTheLastBatchThatHadSome() {
        try (Database db = open("metadata")) {
            Table table = db.table("t");
            assertNull(db.metadata());
            WriteBatch batch = new WriteBatch();
            db.write(batch, Durability.DISK, bytes("1"));
            batch.put(table, KEY, VALUE);
            long sequence = db.write(batch, Durability.OS, bytes("2"));
            assertTrue(sequence > 0 && db.lastSequence() == sequence);
            db.waitDurable(sequence);
            assertTrue(db.durableSequence() >= sequence);
            try (Snapshot snapshot = db.snapshot()) {
                batch.delete(table, KEY);
                db.write(batch, Durability.MEMORY, bytes("3"));
                assertEquals("2", text(snapshot.metadata()));
                assertArrayEquals(VALUE, snapshot.get(table, KEY));
            }
            db.write(batch);
            assertEquals("3", text(db.metadata()));
            db.dropTable("commit.metadata");
            assertNull(db.metadata());
            db.write(batch, Durability.OS, bytes("4"));
        }
        try (Database db = open("metadata")) {
            assertEquals("4", text(db.metadata()));
        }
    }

    @Test
    void aCheckpointTellsItsFilesAndIsADatabase() throws IOException {
        try (Database db = open("db")) {
            Table table = db.table("t", TableOptions.layout("leveling"));
            WriteBatch batch = new WriteBatch();
            for (int number = 0; number < 5000; number++) {
                batch.put(table, bytes("key " + number), bytes("value " + number));
            }
            long sequence = db.write(batch, Durability.OS, bytes("5000"));
            db.flush();
            Checkpoint first = db.checkpoint(dir.resolve("first"));
            assertEquals(sequence, first.lastSequence());
            for (Checkpoint.CheckpointFile file : first.files()) {
                assertEquals(file.bytes(), Files.size(dir.resolve("first").resolve(file.name())), file.name());
            }
            table.put(bytes("later"), VALUE);
            Checkpoint second = db.checkpoint(dir.resolve("second"));
            Set<Checkpoint.CheckpointFile> shared = new HashSet<>(first.files());
            shared.retainAll(second.files());
            shared.removeIf(file -> file.digest().isEmpty());
            assertTrue(!shared.isEmpty(), "a list that has not changed is known again");
            for (Checkpoint.CheckpointFile file : shared) {
                Path[] both = {dir.resolve("first").resolve(file.name()), dir.resolve("second").resolve(file.name())};
                assertEquals(-1, Files.mismatch(both[0], both[1]), file.name());
            }
            Path copied = Files.createDirectory(dir.resolve("copied"));
            for (Checkpoint.CheckpointFile file : first.files()) {
                Files.copy(dir.resolve("first").resolve(file.name()), copied.resolve(file.name()));
            }
            assertThrows(ForebayException.InvalidArgument.class, () -> db.checkpoint(dir.resolve("first")));
        }
        try (Database copy = open("copied")) {
            assertEquals("5000", text(copy.metadata()));
            assertEquals("value 4999", text(copy.table("t").get(bytes("key 4999"))));
            assertNull(copy.table("t").get(bytes("later")));
            assertEquals(List.of(), copy.verify());
        }
        try (Database copy = open("second")) {
            assertArrayEquals(VALUE, copy.table("t").get(bytes("later")));
        }
    }

    @Test
    void backupsAndSavepointsBringBackWhatWas() {
        try (Database db = open("db"); Backups backups = new Backups(dir.resolve("backups"))) {
            Table table = db.table("t");
            table.put(KEY, bytes("1"));
            long backup = backups.take(db);
            assertTrue(db.savepoint("monday") > 0);
            table.put(KEY, bytes("2"));
            assertEquals(List.of("monday"), db.savepoints());
            try (Snapshot monday = db.openSavepoint("monday")) {
                assertEquals("1", text(monday.get(monday.table("t"), KEY)));
            }
            db.rollback("monday");
            assertEquals("1", text(table.get(KEY)));
            db.dropSavepoint("monday");
            assertEquals(1, backups.list().size());
            assertEquals(backup, backups.list().get(0).number());
            assertEquals(List.of(), backups.verify(backup));
            backups.restore(backup, dir.resolve("restored"));
            backups.keep(1);
        }
        try (Database restored = open("restored")) {
            assertEquals("1", text(restored.table("t").get(KEY)));
        }
    }

    @Test
    void databasesOfAPoolShareOneMemory() {
        List<Database> open = new ArrayList<>();
        try (Pool pool = new Pool(16 << 20, 2)) {
            for (int number = 0; number < 20; number++) {
                open.add(Database.open(dir.resolve("store" + number), new Options().pool(pool)));
                open.get(number).table("t").put(KEY, VALUE);
            }
            Map<String, Number> stats = pool.stats();
            assertEquals(16 << 20, stats.get("memory_bytes").longValue(), stats.toString());
            pool.setBackgroundRate(0);
        }
        // What has it keeps it.
        assertArrayEquals(VALUE, open.get(7).table("t").get(KEY));
        open.forEach(Database::close);
    }

    @Test
    void tablesAreListedAlteredAndDropped() {
        try (Database db = open("db")) {
            Table table = db.table("t", new TableOptions().set("ttl", "1h"));
            assertEquals("wb-tree", table.layout().substring(0, 7));
            table.put(KEY, VALUE, Duration.ofHours(2));
            WriteBatch batch = new WriteBatch();
            batch.put(table, bytes("other"), VALUE, Duration.ofMillis(Long.MAX_VALUE));
            batch.put(table, bytes("gone"), VALUE, Duration.ZERO);
            db.write(batch);
            assertEquals(2, table.count());
            db.alter("t", new TableOptions().set("codec", "lz4"));
            table.setLayout("leveling");
            table.compact();
            assertThrows(ForebayException.InvalidArgument.class, () -> table.prefix(KEY), "as it was opened");
            Table again = db.table("t");
            assertEquals(1, count(again.prefix(KEY)));
            assertTrue(again.approximateCount(null, null) >= 2);
            again.deletePrefix(KEY);
            again.deleteRange(bytes("o"), null);
            assertEquals(0, again.count());
            assertEquals(Set.of("t"), db.tables().keySet());
            try (Snapshot before = db.snapshot()) {
                db.dropTable("t");
                assertEquals(Map.of(), db.tables());
                assertThrows(ForebayException.class, () -> again.get(KEY));
                assertNotNull(before.table("t"));
                assertThrows(ForebayException.NotFound.class, () -> before.table("u"));
            }
            db.setBackgroundRate(0);
            db.waitUntilIdle();
            db.sync();
            assertEquals(db.lastSequence(), db.stats().get("last_sequence").longValue());
            assertTrue(db.stats().get("write_amplification") instanceof Double);
            assertTrue(db.describe().startsWith("{"));
        }
    }

    private static int count(Scan scan) {
        int count = 0;
        for (Entry entry : scan) {
            assertNotNull(entry.value());
            count += 1;
        }
        return count;
    }

    @Test
    void aReaderGoesOnToWhatWasWritten() {
        try (Database db = open("db")) {
            db.table("t").put(KEY, VALUE);
            try (Database reader = Database.open(dir.resolve("db"), new Options().set("read_only", "true"))) {
                Table table = reader.table("t");
                assertArrayEquals(VALUE, table.get(KEY));
                db.table("t").put(KEY, bytes("2"));
                assertEquals(db.lastSequence(), reader.refresh());
                assertEquals("2", text(table.get(KEY)));
                assertThrows(ForebayException.InvalidArgument.class, () -> table.put(KEY, VALUE));
            }
        }
    }

    @Test
    void failuresHaveClassesAndTexts() throws IOException {
        try (Database db = open("db")) {
            ForebayException busy = assertThrows(ForebayException.Busy.class, () -> open("db"));
            assertTrue(busy.getMessage().contains("db"), busy.getMessage());
            assertThrows(ForebayException.NotFound.class, () -> db.table("t", new TableOptions().set("existing", "true")));
            Options unknown = new Options().set("memry", "1G");
            ForebayException told =
                    assertThrows(ForebayException.InvalidArgument.class, () -> Database.open(dir.resolve("x"), unknown));
            assertTrue(told.getMessage().contains("`memry`"), told.getMessage());
            assertThrows(ForebayException.InvalidArgument.class, () -> new Pool(1, 1));
            Table table = db.table("t");
            WriteBatch batch = new WriteBatch();
            batch.put(table, KEY, VALUE);
            batch.put(table, new byte[1 << 20], VALUE);
            assertThrows(ForebayException.InvalidArgument.class, () -> db.write(batch));
            assertNull(table.get(KEY), "nothing is written");
            assertEquals(2, batch.size(), "and the batch is as it was");
        }
        Files.writeString(dir.resolve("db").resolve("CURRENT"), "nonsense");
        assertThrows(ForebayException.Corruption.class, () -> open("db"));
        assertThrows(ForebayException.NotFound.class,
                () -> Database.open(dir.resolve("none"), new Options().set("create_if_missing", "false")));
        open("gone").close();
        Database.destroy(dir.resolve("gone"));
        assertTrue(Files.notExists(dir.resolve("gone")));
    }

    @Test
    void aPanicIsAnException() {
        ForebayException told = assertThrows(ForebayException.Internal.class, () -> Native.panic(bytes("at seven é")));
        assertTrue(told.getMessage().contains("a call panicked: at seven é"), told.getMessage());
    }

    @Test
    void aPlatformHasItsFolders() {
        assertEquals(List.of("macos-aarch64"), Library.platforms("Mac OS X", "arm64"));
        assertEquals(List.of("windows-x86_64"), Library.platforms("Windows 11", "amd64"));
        assertEquals(Set.of("linux-x86_64", "linux-x86_64-musl"), Set.copyOf(Library.platforms("Linux", "amd64")));
    }
}
