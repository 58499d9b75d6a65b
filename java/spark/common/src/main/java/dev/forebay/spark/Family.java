package dev.forebay.spark;

import dev.forebay.Table;

/**
 * A column family: a table of its own, found by a number. Changelogs name it by that number, and snapshots keep which
 * number has which name.
 */
final class Family {
    /** What stands before a key in a changelog. */
    static final int ID_BYTES = 2;

    /** In which order its table has keys, and so whether it can be read in part. */
    enum Order {
        HASH,
        KEY
    }

    /** How many values a key has. */
    enum Values {
        ONE,
        /** They are joined by {@link #DELIMITER}, and merges append. */
        LIST,
        /** Another provider's snapshot does not tell: the family is made anew once its operator asks for it. */
        UNKNOWN
    }

    static final byte DELIMITER = ',';

    /** All but the table: what snapshots keep. */
    record Shape(String name, short id, boolean internal, Order order, Values values) {
        String table() {
            return (values == Values.UNKNOWN ? "brought-" : "family-") + (id & 0xffff);
        }
    }

    final Shape shape;
    final Table table;

    Family(Shape shape, Table table) {
        this.shape = shape;
        this.table = table;
    }

    /** The key behind the family's number, little-endian, as Spark's own store writes it. */
    byte[] named(byte[] key) {
        byte[] out = new byte[ID_BYTES + key.length];
        out[0] = (byte) shape.id();
        out[1] = (byte) (shape.id() >> 8);
        System.arraycopy(key, 0, out, ID_BYTES, key.length);
        return out;
    }

    static short idOf(byte[] named) {
        return (short) ((named[0] & 0xff) | (named[1] & 0xff) << 8);
    }

    static byte[] keyOf(byte[] named) {
        return java.util.Arrays.copyOfRange(named, ID_BYTES, named.length);
    }
}
