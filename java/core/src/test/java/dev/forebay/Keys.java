package dev.forebay;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import java.util.Comparator;
import java.util.Random;

/** Bytes for tests. */
final class Keys {
    static final Comparator<byte[]> ORDER = Arrays::compareUnsigned;

    private Keys() {}

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    /** A short key, of few, with bytes of all kinds. */
    static byte[] key(Random random) {
        byte[] key = new byte[random.nextInt(4)];
        for (int place = 0; place < key.length; place++) {
            key[place] = (byte) (random.nextInt(4) * 85);
        }
        return key;
    }

    /** A value: mostly short, now and then longer than a block of a scan. */
    static byte[] value(Random random) {
        byte[] value = new byte[random.nextInt(50) == 0 ? random.nextInt(100_000) : random.nextInt(40)];
        random.nextBytes(value);
        return value;
    }

    /** The least key above all that begin so, or null. */
    static byte[] above(byte[] prefix) {
        for (int length = prefix.length; length > 0; length--) {
            if (prefix[length - 1] != (byte) 255) {
                byte[] above = Arrays.copyOf(prefix, length);
                above[length - 1] += 1;
                return above;
            }
        }
        return null;
    }
}
