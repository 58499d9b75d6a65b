package dev.forebay;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * What crossings cost: records in batches and by themselves, lookups by themselves and many at a time, scans. All of it
 * fits into memory, so that it is the crossings that are measured. {@code Bench FOLDER [RECORDS]}
 */
public final class Bench {
    private static final int VALUE_BYTES = 100;
    private static final int BATCH_RECORDS = 1000;
    private static final int ROUNDS = 5;

    private Bench() {}

    private interface Work {
        void run();
    }

    public static void main(String[] arguments) throws IOException {
        int records = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 200_000;
        Path dir = Files.createTempDirectory(Path.of(arguments[0]), "bench");
        Options options = new Options().set("memory", "512M").set("log", "false");
        try (Database db = Database.open(dir.resolve("db"), options)) {
            run(db, records);
        }
        Database.destroy(dir.resolve("db"));
        Files.delete(dir);
    }

    private static void run(Database db, int records) {
        Table table = db.table("t", TableOptions.layout("wb-tree:ordered"));
        Table empty = db.table("empty");
        byte[][] keys = new byte[records][];
        Random random = new Random(1);
        for (int index = 0; index < records; index++) {
            keys[index] = ByteBuffer.allocate(16).putLong(random.nextLong()).putLong(index).array();
        }
        byte[] value = new byte[VALUE_BYTES];
        random.nextBytes(value);
        WriteBatch batch = new WriteBatch(1 << 18);
        measure("a crossing alone: last_sequence", records, db::lastSequence, records);
        measure("a lookup in a table with nothing", records, each(keys, empty::get), 1);
        measure("fill a batch of " + BATCH_RECORDS, records, () -> {
            for (int index = 0; index < records; index++) {
                batch.put(table, keys[index], value);
                if (batch.size() == BATCH_RECORDS) {
                    batch.clear();
                }
            }
            batch.clear();
        }, 1);
        measure("put by batches of " + BATCH_RECORDS, records, () -> {
            for (int index = 0; index < records; index++) {
                batch.put(table, keys[index], value);
                if (batch.size() == BATCH_RECORDS) {
                    db.write(batch);
                }
            }
            db.write(batch);
        }, 1);
        measure("put one by one", records, each(keys, key -> table.put(key, value)), 1);
        db.waitUntilIdle();
        measure("get one by one", records, each(keys, table::get), 1);
        List<List<byte[]>> many = new ArrayList<>();
        for (int index = 0; index < records; index += 100) {
            many.add(List.of(keys).subList(index, Math.min(records, index + 100)));
        }
        measure("get 100 at a time", records, () -> many.forEach(table::getMany), 1);
        measure("scan, copies of keys and values", records, () -> {
            try (Scan scan = table.scan()) {
                long bytes = 0;
                while (scan.advance()) {
                    bytes += scan.key().length + scan.value().length;
                }
                held(bytes, records);
            }
        }, 1);
        measure("scan, places in blocks", records, () -> {
            try (Scan scan = table.scan()) {
                long bytes = 0;
                while (scan.advance()) {
                    bytes += scan.keyBytes() + scan.valueBytes();
                }
                held(bytes, records);
            }
        }, 1);
        measure("open a scan of one key's prefix", records, each(keys, key -> {
            try (Scan scan = table.prefix(key)) {
                held(scan.advance() ? 1 : 0, 0);
            }
        }), 1);
    }

    private interface OfKey {
        void run(byte[] key);
    }

    private static Work each(byte[][] keys, OfKey act) {
        return () -> {
            for (byte[] key : keys) {
                act.run(key);
            }
        };
    }

    private static void held(long bytes, int records) {
        if (records > 0 && bytes != (long) records * (16 + VALUE_BYTES)) {
            throw new IllegalStateException("a scan showed " + bytes + " bytes");
        }
    }

    /** The best of some rounds, as nanoseconds a record. */
    private static void measure(String name, int records, Work work, int times) {
        long best = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long begin = System.nanoTime();
            for (int time = 0; time < times; time++) {
                work.run();
            }
            best = Math.min(best, System.nanoTime() - begin);
        }
        System.out.printf("%-40s %8.1f ns%n", name, (double) best / records);
    }
}
