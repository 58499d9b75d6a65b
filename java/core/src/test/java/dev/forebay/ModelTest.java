package dev.forebay;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random histories against sorted maps. */
class ModelTest {
    private static final String[] LAYOUTS = {"wb-tree:ordered", "leveling", "wb-tree"};
    private static final int STEPS = 600;

    @TempDir
    Path dir;

    private Random random;
    private Database db;
    private final Map<String, Table> tables = new HashMap<>();
    private Map<String, NavigableMap<byte[], byte[]>> model = new HashMap<>();
    private Snapshot snapshot;
    private Map<String, NavigableMap<byte[], byte[]>> then;
    private byte[] metadata;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void historiesAreThoseOfSortedMaps(long seed) {
        System.out.println("ModelTest, seed " + seed);
        random = new Random(seed);
        for (String layout : LAYOUTS) {
            model.put(layout, new TreeMap<>(Keys.ORDER));
        }
        open();
        for (int step = 0; step < STEPS; step++) {
            step();
        }
        for (String layout : LAYOUTS) {
            check(layout);
        }
        db.close();
    }

    private void open() {
        db = Database.open(dir.resolve("db"), new Options().set("memory", "4M"));
        for (String layout : LAYOUTS) {
            tables.put(layout, db.table(layout, TableOptions.layout(layout)));
        }
    }

    private void step() {
        String layout = LAYOUTS[random.nextInt(LAYOUTS.length)];
        Table table = tables.get(layout);
        NavigableMap<byte[], byte[]> map = model.get(layout);
        byte[] key = Keys.key(random);
        switch (random.nextInt(20)) {
            case 0, 1, 2 -> {
                byte[] value = Keys.value(random);
                table.put(key, value);
                map.put(key, value);
            }
            case 3 -> {
                table.delete(key);
                map.remove(key);
            }
            case 4 -> {
                byte[] value = Keys.value(random);
                boolean isThere = map.containsKey(key);
                assertEquals(!isThere, table.compareAndSwap(key, null, value));
                map.putIfAbsent(key, value);
            }
            case 5, 6, 7, 8, 9 -> write();
            case 10 -> {
                if (snapshot != null) {
                    snapshot.close();
                }
                snapshot = db.snapshot();
                then = copy(model);
            }
            case 11 -> {
                if (random.nextInt(6) == 0) {
                    db.close();
                    snapshot = null;
                    open();
                }
            }
            case 12 -> db.flush();
            default -> read(layout);
        }
    }

    private void write() {
        WriteBatch batch = new WriteBatch(random.nextInt(200));
        Map<String, NavigableMap<byte[], byte[]>> after = copy(model);
        int writes = random.nextInt(30);
        for (int write = 0; write < writes; write++) {
            String layout = LAYOUTS[random.nextInt(LAYOUTS.length)];
            write(batch, layout, after.get(layout));
        }
        assertEquals(writes, batch.size());
        if (random.nextInt(3) == 0) {
            metadata = Keys.value(random);
            db.write(batch, Durability.values()[random.nextInt(3)], metadata);
        } else {
            db.write(batch);
        }
        assertEquals(0, batch.size());
        model = after;
        assertArrayEquals(metadata, db.metadata());
    }

    private void write(WriteBatch batch, String layout, NavigableMap<byte[], byte[]> map) {
        Table table = tables.get(layout);
        byte[] key = Keys.key(random);
        boolean isOrdered = !layout.equals("wb-tree");
        switch (isOrdered ? random.nextInt(10) : random.nextInt(8)) {
            case 0, 1, 2 -> {
                byte[] value = Keys.value(random);
                batch.put(table, key, value);
                map.put(key, value);
            }
            case 3, 4 -> {
                byte[] value = Keys.value(random);
                ByteBuffer direct = ByteBuffer.allocateDirect(value.length).put(value).flip();
                batch.put(table, ByteBuffer.wrap(key), direct);
                assertEquals(value.length, direct.remaining());
                map.put(key, value);
            }
            case 5, 6, 7 -> {
                batch.delete(table, key);
                map.remove(key);
            }
            case 8 -> {
                byte[] to = random.nextInt(4) == 0 ? null : Keys.key(random);
                batch.deleteRange(table, key, to);
                range(map, key, to).clear();
            }
            default -> {
                batch.deletePrefix(table, key);
                range(map, key, Keys.above(key)).clear();
            }
        }
    }

    private void read(String layout) {
        Table table = tables.get(layout);
        NavigableMap<byte[], byte[]> map = model.get(layout);
        byte[] key = Keys.key(random);
        List<byte[]> keys = new ArrayList<>();
        for (int count = random.nextInt(20); count > 0; count--) {
            keys.add(Keys.key(random));
        }
        boolean isThen = snapshot != null && random.nextBoolean();
        if (isThen) {
            map = then.get(layout);
        }
        List<byte[]> values = isThen ? snapshot.getMany(table, keys) : table.getMany(keys);
        assertEquals(keys.size(), values.size());
        boolean[] areThere = tables.get(layout).containsMany(keys);
        assertEquals(keys.size(), areThere.length);
        for (int index = 0; index < areThere.length; index++) {
            assertEquals(model.get(layout).containsKey(keys.get(index)), areThere[index]);
        }
        for (int index = 0; index < keys.size(); index++) {
            assertArrayEquals(map.get(keys.get(index)), values.get(index));
        }
        assertArrayEquals(map.get(key), isThen ? snapshot.get(table, key) : table.get(key));
        assertEquals(map.containsKey(key), isThen ? snapshot.contains(table, key) : table.contains(key));
        assertEquals(map.size(), isThen ? snapshot.count(table) : table.count());
        if (!layout.equals("wb-tree")) {
            Direction direction = Direction.values()[random.nextInt(2)];
            byte[] to = random.nextInt(4) == 0 ? null : Keys.key(random);
            byte[] from = random.nextInt(4) == 0 ? null : key;
            Scan range = isThen ? snapshot.range(table, from, to, direction) : table.range(from, to, direction);
            check(range(map, from, to), range, direction);
            Scan prefix = isThen ? snapshot.prefix(table, key, direction) : table.prefix(key, direction);
            check(range(map, key, Keys.above(key)), prefix, direction);
        }
    }

    /** Entries by copies or by places, all of them or some. */
    private void check(NavigableMap<byte[], byte[]> expected, Scan scan, Direction direction) {
        var map = direction == Direction.FORWARD ? expected : expected.descendingMap();
        int most = random.nextInt(3) == 0 ? random.nextInt(10) : Integer.MAX_VALUE;
        try (scan) {
            for (Map.Entry<byte[], byte[]> entry : map.entrySet()) {
                if (most-- == 0) {
                    return;
                }
                assertTrue(scan.advance());
                assertArrayEquals(entry.getKey(), scan.key());
                assertArrayEquals(entry.getValue(), scan.value());
                byte[] value = ByteBuffer.wrap(scan.block(), scan.valueOffset(), scan.valueBytes()).slice().array();
                assertTrue(value == scan.block());
            }
            assertFalse(scan.advance());
            assertFalse(scan.advance());
        }
    }

    private void check(String layout) {
        NavigableMap<byte[], byte[]> left = new TreeMap<>(model.get(layout));
        try (Scan scan = tables.get(layout).scan()) {
            for (Entry entry : scan) {
                assertArrayEquals(left.remove(entry.key()), entry.value());
            }
        }
        assertTrue(left.isEmpty());
        assertNull(tables.get(layout).get(Keys.bytes("never there")));
    }

    private static NavigableMap<byte[], byte[]> range(NavigableMap<byte[], byte[]> map, byte[] from, byte[] to) {
        if (from != null && to != null && Keys.ORDER.compare(from, to) >= 0) {
            return new TreeMap<>(Keys.ORDER);
        }
        NavigableMap<byte[], byte[]> tail = from == null ? map : map.tailMap(from, true);
        return to == null ? tail : tail.headMap(to, false);
    }

    private static Map<String, NavigableMap<byte[], byte[]>> copy(Map<String, NavigableMap<byte[], byte[]>> maps) {
        Map<String, NavigableMap<byte[], byte[]>> copy = new HashMap<>();
        maps.forEach((name, map) -> copy.put(name, new TreeMap<>(map)));
        return copy;
    }
}
