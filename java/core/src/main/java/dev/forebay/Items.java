package dev.forebay;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Byte strings one after the other, each behind its length in four bytes, little-endian; -1 is for none. So keys, values
 * and texts cross to the native half and back, many at a time.
 */
final class Items {
    static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final byte[] items;
    private int place;

    Items(byte[] items) {
        this.items = items;
    }

    boolean hasNext() {
        return place < items.length;
    }

    /** The next byte. */
    byte oneByte() {
        return items[place++];
    }

    /** The next eight bytes. */
    long number() {
        place += Long.BYTES;
        return (long) LONG.get(items, place - Long.BYTES);
    }

    /** The next one, or null for none. */
    byte[] next() {
        int length = (int) INT.get(items, place);
        place += Integer.BYTES;
        if (length < 0) {
            return null;
        }
        place += length;
        return Arrays.copyOfRange(items, place - length, place);
    }

    /** The next one, which is a text, or null. */
    String text() {
        byte[] item = next();
        return item == null ? null : new String(item, UTF_8);
    }

    /** All of it as one text. */
    String all() {
        return new String(items, UTF_8);
    }

    List<String> texts() {
        List<String> texts = new ArrayList<>();
        while (hasNext()) {
            texts.add(text());
        }
        return List.copyOf(texts);
    }

    /** Names and texts by turns. */
    Map<String, String> pairs() {
        Map<String, String> pairs = new LinkedHashMap<>();
        while (hasNext()) {
            String name = text();
            pairs.put(name, text());
        }
        return pairs;
    }

    /** Names and numbers by turns. */
    static Map<String, Number> numbers(byte[] items) {
        Map<String, Number> numbers = new LinkedHashMap<>();
        new Items(items).pairs().forEach((name, text) -> numbers.put(name, number(text)));
        return numbers;
    }

    private static Number number(String text) {
        boolean isWhole = text.chars().allMatch(digit -> digit == '-' || Character.isDigit(digit));
        return isWhole ? (Number) Long.valueOf(text) : (Number) Double.valueOf(text);
    }

    /** These as items. */
    static byte[] of(List<byte[]> items) {
        long length = 0;
        for (byte[] item : items) {
            length += Integer.BYTES + item.length;
        }
        byte[] out = new byte[Math.toIntExact(length)];
        int place = 0;
        for (byte[] item : items) {
            INT.set(out, place, item.length);
            System.arraycopy(item, 0, out, place + Integer.BYTES, item.length);
            place += Integer.BYTES + item.length;
        }
        return out;
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}
