package dev.forebay.spark;

import dev.forebay.Pool;
import java.nio.file.Path;
import java.util.function.LongSupplier;

/** What a store is made with. The clock has milliseconds, as the times of files do. */
record Plan(RemoteFiles remote, Naming naming, Path local, Settings settings, Pool pool, Shape shape, Retention retention,
        Rows rows, LongSupplier clock) {

    /** Rows of the first family, as they stand in memory, as they are kept. */
    interface Rows {
        byte[] key(byte[] row);

        byte[] value(byte[] row);
    }

    /** How the first family is, and whether there may be more. */
    record Shape(String defaultName, Family.Order order, Family.Values values, boolean hasFamilies, boolean hasIds) {
        /** The family of a key as Spark's stores write it, or null. */
        Family family(StateDatabase database, byte[] written) {
            return hasFamilies ? database.family(Family.idOf(written)) : database.family(defaultName);
        }

        /** The key in its family. */
        byte[] key(byte[] written) {
            return hasFamilies ? Family.keyOf(written) : written;
        }
    }

    /** How often there are snapshots, and how many versions are kept. */
    record Retention(int deltas, int versions, int deletedMax, long deletedMin) {}
}
