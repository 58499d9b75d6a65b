package dev.forebay;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;

/** Values of keys and answers as they cross: each a byte that says what it is, and an item. */
final class Values {
    private static final byte NULL = 0;
    private static final byte BYTES = 1;
    private static final byte WORD = 2;
    private static final byte DECIMAL = 3;
    private static final byte DAYS = 4;
    private static final byte NANOSECONDS = 5;
    private static final byte BINARY = 6;
    private static final byte FLOAT = 7;
    private static final byte TRUTH = 8;

    private static final int DIGITS_MAX = 1000;

    private Values() {}

    /** The values of a key. */
    static byte[] items(Object[] key) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (Object value : key) {
            write(out, value);
        }
        return out.toByteArray();
    }

    private static void write(ByteArrayOutputStream out, Object value) {
        if (value == null) {
            push(out, NULL, new byte[0]);
        } else if (value instanceof byte[] bytes) {
            push(out, BYTES, bytes);
        } else if (value instanceof CharSequence text) {
            push(out, BYTES, text.toString().getBytes(UTF_8));
        } else if (value instanceof BigDecimal decimal) {
            push(out, DECIMAL, Items.bytes(plain(decimal)));
        } else if (value instanceof Number || value instanceof Boolean) {
            push(out, WORD, Items.bytes(value.toString()));
        } else if (value instanceof LocalDate day) {
            push(out, DAYS, Items.bytes(Long.toString(day.toEpochDay())));
        } else {
            push(out, NANOSECONDS, Items.bytes(nanoseconds(value).toString()));
        }
    }

    /** Digits that no column has would take any amount of memory. */
    private static String plain(BigDecimal decimal) {
        if (Math.max(Math.abs((long) decimal.scale()), decimal.precision()) > DIGITS_MAX) {
            throw new ForebayException.InvalidArgument("a key has a number of more than " + DIGITS_MAX
                    + " digits; columns have at most 76");
        }
        return decimal.toPlainString();
    }

    private static BigInteger nanoseconds(Object value) {
        if (value instanceof Instant moment) {
            return nanoseconds(moment.getEpochSecond(), moment.getNano());
        }
        if (value instanceof ZonedDateTime moment) {
            return nanoseconds(moment.toInstant());
        }
        if (value instanceof OffsetDateTime moment) {
            return nanoseconds(moment.toInstant());
        }
        if (value instanceof LocalDateTime moment) {
            return nanoseconds(moment.toInstant(ZoneOffset.UTC));
        }
        if (value instanceof LocalTime time) {
            return BigInteger.valueOf(time.toNanoOfDay());
        }
        if (value instanceof Duration duration) {
            return nanoseconds(duration.getSeconds(), duration.getNano());
        }
        throw new ForebayException.InvalidArgument("a key has a value of " + value.getClass().getName()
                + "; give a number, a truth, a text, bytes, or a date or time of java.time");
    }

    private static BigInteger nanoseconds(long seconds, int nanos) {
        return BigInteger.valueOf(seconds).multiply(BigInteger.valueOf(1_000_000_000)).add(BigInteger.valueOf(nanos));
    }

    private static void push(ByteArrayOutputStream out, byte what, byte[] item) {
        out.write(what);
        out.writeBytes(Items.of(List.of(item)));
    }

    /** The next answer. */
    static Object next(Items items) {
        byte what = items.oneByte();
        byte[] item = items.next();
        if (what == NULL) {
            return null;
        }
        if (what == BINARY) {
            return item;
        }
        String text = new String(item, UTF_8);
        return switch (what) {
            case WORD -> Long.valueOf(text);
            case DECIMAL -> new BigDecimal(text);
            case TRUTH -> Boolean.valueOf(text);
            case FLOAT -> floating(text);
            default -> text;
        };
    }

    private static Double floating(String text) {
        return switch (text) {
            case "inf" -> Double.POSITIVE_INFINITY;
            case "-inf" -> Double.NEGATIVE_INFINITY;
            default -> Double.valueOf(text);
        };
    }
}
