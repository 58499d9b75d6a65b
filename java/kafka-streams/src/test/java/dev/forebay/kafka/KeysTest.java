package dev.forebay.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.util.Arrays;
import java.util.Random;
import org.apache.kafka.common.utils.Bytes;
import org.junit.jupiter.api.Test;

class KeysTest {
    /** Of all beginnings, each with the largest numbers behind it. */
    private static byte[] highest(byte[] key, int suffixBytes) {
        byte[] highest = {};
        for (int length = 0; length <= key.length; length++) {
            byte[] one = Arrays.copyOf(key, length + suffixBytes);
            Arrays.fill(one, length, one.length, (byte) 0xFF);
            one[length] = 0x7F;
            highest = Arrays.compareUnsigned(one, highest) > 0 ? one : highest;
        }
        return highest;
    }

    @Test
    void theHighestKeyIsThatOfAllBeginnings() {
        Random random = new Random(3);
        for (int round = 0; round < 20_000; round++) {
            byte[] key = new byte[random.nextInt(60)];
            Arrays.fill(key, (byte) 0xFF);
            for (int changes = random.nextInt(5); key.length > 0 && changes > 0; changes--) {
                key[random.nextInt(key.length)] = (byte) new int[] {0, 0x7E, 0x7F, 0x7F, 0x80, 0xFE}[random.nextInt(6)];
            }
            assertArrayEquals(highest(key, 12), Keys.WINDOW.highest(Bytes.wrap(key)), () -> Arrays.toString(key));
            assertArrayEquals(highest(key, 16), Keys.SESSION.highest(Bytes.wrap(key)), () -> Arrays.toString(key));
        }
    }

    /** Which took 500 MB once. */
    @Test
    void aLongKeyIsLookedAtOnce() {
        byte[] key = new byte[60_000];
        Arrays.fill(key, (byte) 0x80);
        byte[] highest = Keys.WINDOW.highest(Bytes.wrap(key));
        assertArrayEquals(key, Arrays.copyOf(highest, key.length));
    }
}
