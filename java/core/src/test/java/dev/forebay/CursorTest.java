package dev.forebay;

import static dev.forebay.Keys.bytes;
import static dev.forebay.Keys.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Cursors against a sorted map, over what was there when they were made. */
class CursorTest {
    @TempDir
    Path dir;

    private Database open() {
        return Database.open(dir.resolve("db"), new Options().set("memory", "8M"));
    }

    private static String key(Random random) {
        return "key " + (1000 + random.nextInt(4000));
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void stepsGoWhereTheyGoInASortedMap(long seed) {
        System.out.println("CursorTest, seed " + seed);
        Random random = new Random(seed);
        try (Database db = open()) {
            Table table = db.table("t", TableOptions.layout("wb-tree:ordered"));
            TreeMap<String, String> model = new TreeMap<>();
            fill(db, table, model, random);
            try (Snapshot snapshot = db.snapshot(); Cursor of = snapshot.cursor(table); Cursor now = table.cursor()) {
                TreeMap<String, String> before = new TreeMap<>(model);
                fill(db, table, model, random);
                walk(of, before, random);
                walk(now, before, random);
                try (Cursor later = table.cursor()) {
                    walk(later, model, random);
                }
            }
        }
    }

    private static void fill(Database db, Table table, TreeMap<String, String> model, Random random) {
        WriteBatch batch = new WriteBatch();
        for (int write = 0; write < 1500; write++) {
            String key = key(random);
            if (random.nextInt(4) == 0) {
                batch.delete(table, bytes(key));
                model.remove(key);
            } else {
                String value = "value " + random.nextInt();
                batch.put(table, bytes(key), bytes(value));
                model.put(key, value);
            }
        }
        db.write(batch);
        db.flush();
    }

    private static void walk(Cursor cursor, TreeMap<String, String> model, Random random) {
        Map.Entry<String, String> here = model.firstEntry();
        assertTrue(cursor.first());
        for (int step = 0; step < 600; step++) {
            String key = key(random);
            boolean isHere;
            switch (here == null ? 2 + random.nextInt(4) : random.nextInt(12)) {
                case 2 -> {
                    here = model.ceilingEntry(key);
                    isHere = cursor.seek(bytes(key));
                }
                case 3 -> {
                    here = model.floorEntry(key);
                    isHere = cursor.seekForPrev(bytes(key));
                }
                case 4 -> {
                    here = model.firstEntry();
                    isHere = cursor.first();
                }
                case 5 -> {
                    here = model.lastEntry();
                    isHere = cursor.last();
                }
                case 0, 6, 7, 8 -> {
                    here = model.higherEntry(here.getKey());
                    isHere = cursor.next();
                }
                default -> {
                    here = model.lowerEntry(here.getKey());
                    isHere = cursor.prev();
                }
            }
            assertEquals(here != null, isHere);
            assertEquals(isHere, cursor.isHere());
            if (here != null) {
                assertEquals(here.getKey() + here.getValue(), text(cursor.key()) + text(cursor.value()));
            }
        }
    }

    @Test
    void misuseIsAnException() {
        Database db = open();
        try (Database other = Database.open(dir.resolve("other"))) {
            Table table = db.table("t", TableOptions.layout("wb-tree:ordered"));
            assertThrows(ForebayException.InvalidArgument.class, db.table("hashed")::cursor);
            Cursor cursor = table.cursor();
            assertFalse(cursor.first() || cursor.last() || cursor.seek(bytes("a")));
            assertThrows(IllegalStateException.class, cursor::key);
            assertThrows(NullPointerException.class, () -> cursor.seek(null));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.moveCursor(cursor.number, 4, null));
            assertThrows(ForebayException.InvalidArgument.class, () -> Native.moveCursor(cursor.number, 9, null));
            try (Snapshot theirs = other.snapshot()) {
                assertThrows(ForebayException.InvalidArgument.class, () -> theirs.cursor(table));
            }
            cursor.close();
            cursor.close();
            assertThrows(ForebayException.Closed.class, cursor::next);
            Cursor outlives = table.cursor();
            db.close();
            assertThrows(ForebayException.Closed.class, outlives::first);
        }
    }
}
