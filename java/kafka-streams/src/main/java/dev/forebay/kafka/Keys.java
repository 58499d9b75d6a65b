package dev.forebay.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.WindowKeySchema;

/**
 * Keys of windows: the caller's key, and behind it numbers that say which window. They are those of the changelog, so what
 * is restored is written as it is.
 */
enum Keys {
    /** Behind the key are the window's beginning and a number that keeps duplicates apart. */
    WINDOW(Long.BYTES + Integer.BYTES) {
        @Override
        byte[] lowest(Bytes key, long from) {
            return WindowKeySchema.toStoreKeyBinary(key, Math.max(0, from), 0).get();
        }

        @Override
        byte[] highest(Bytes key, long to) {
            return WindowKeySchema.toStoreKeyBinary(key, to, Integer.MAX_VALUE).get();
        }

        @Override
        boolean isWithin(byte[] binary, long from, long to) {
            return time(binary) >= from && time(binary) <= to;
        }
    },

    /** Behind the key are the session's end and its beginning. */
    SESSION(2 * Long.BYTES) {
        @Override
        byte[] lowest(Bytes key, long from) {
            return SessionKeySchema.toBinary(key, 0, Math.max(0, from)).get();
        }

        @Override
        byte[] highest(Bytes key, long to) {
            return SessionKeySchema.toBinary(key, to, Long.MAX_VALUE).get();
        }

        @Override
        boolean isWithin(byte[] binary, long from, long to) {
            long begin = ByteBuffer.wrap(binary).getLong(binary.length - Long.BYTES);
            return time(binary) >= from && begin <= to;
        }
    };

    private final int suffixBytes;

    Keys(int suffixBytes) {
        this.suffixBytes = suffixBytes;
    }

    /** Below all of one key from a time on. */
    abstract byte[] lowest(Bytes key, long from);

    /** Above all of one key up to a time. */
    abstract byte[] highest(Bytes key, long to);

    /** Windows that begin in this time; sessions that end after its beginning and begin before its end. */
    abstract boolean isWithin(byte[] binary, long from, long to);

    /** When the window begins, or the session ends: which table has it. */
    final long time(byte[] binary) {
        return ByteBuffer.wrap(binary).getLong(binary.length - suffixBytes);
    }

    /** Whether the caller's key is from one on up to another one; null is no bound. */
    final boolean isBetween(byte[] binary, Bytes from, Bytes to) {
        int end = binary.length - suffixBytes;
        return (from == null || Arrays.compareUnsigned(binary, 0, end, from.get(), 0, from.get().length) >= 0)
                && (to == null || Arrays.compareUnsigned(binary, 0, end, to.get(), 0, to.get().length) <= 0);
    }

    /**
     * Not below any key whose caller's key is this one or below. Of those that are beginnings of it the numbers may be
     * larger than what it goes on with; they are never negative.
     */
    final byte[] highest(Bytes to) {
        byte[] key = to.get();
        int length = 0;
        for (int longer = longer(key, 0); longer > length; longer = longer(key, length)) {
            length = longer;
        }
        byte[] highest = Arrays.copyOf(key, length + suffixBytes);
        Arrays.fill(highest, length, highest.length, (byte) 0xFF);
        highest[length] = 0x7F;
        return highest;
    }

    /** The next longer beginning whose largest numbers are above those of this one, or this one: above 7F FF FF and so on. */
    private int longer(byte[] key, int length) {
        int next = length == key.length ? 0 : Byte.toUnsignedInt(key[length]);
        if (next > 0x7F) {
            return length + 1;
        }
        int end = length + suffixBytes;
        boolean isAbove = next == 0x7F && end <= key.length;
        for (int place = length + 1; isAbove && place < end; place++) {
            isAbove = key[place] == (byte) 0xFF;
        }
        return isAbove ? end : length;
    }

    /** The numbers before the caller's key: in the order of time. */
    final byte[] byTime(byte[] binary) {
        return rotated(binary, binary.length - suffixBytes);
    }

    /** The other way round. */
    final byte[] ofTime(byte[] byTime) {
        return rotated(byTime, suffixBytes);
    }

    private static byte[] rotated(byte[] bytes, int first) {
        byte[] rotated = Arrays.copyOf(Arrays.copyOfRange(bytes, first, bytes.length), bytes.length);
        System.arraycopy(bytes, 0, rotated, bytes.length - first, first);
        return rotated;
    }

    /** Before all of a time, in the order of time. */
    static byte[] time(long time) {
        return ByteBuffer.allocate(Long.BYTES).putLong(time).array();
    }

    static Windowed<Bytes> session(byte[] binary) {
        return SessionKeySchema.from(Bytes.wrap(binary));
    }
}
