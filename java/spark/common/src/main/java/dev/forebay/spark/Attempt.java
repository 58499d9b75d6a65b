package dev.forebay.spark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.UUID;
import org.apache.spark.sql.execution.streaming.state.RecordType;
import scala.Enumeration;
import scala.Tuple3;

/**
 * Who made a version. In checkpoint format 1 a changelog's name does not tell, and tasks of a batch that is run twice write
 * over each other's; so its first record does: the removal of a key that no store has, which harms no reader of Spark's.
 *
 * @param id the attempt's, which its snapshot is named by, too
 * @param base the attempt that made the version before; {@link #UNKNOWN} where nothing tells
 */
record Attempt(String id, String base, Contents contents) {
    static final String UNKNOWN = new UUID(0, 0).toString();

    /** What the changelog has. */
    enum Contents {
        CHANGES,
        /** Nothing: the version is in the attempt's snapshot alone, and nothing stands before it. */
        NONE
    }

    /** It begins with the number of the first family, for those who look for one. */
    private static final byte[] MAGIC = "\0\0Forebay's attempt of a version\0".getBytes(StandardCharsets.US_ASCII);
    private static final int LENGTH = MAGIC.length + 1 + 4 * Long.BYTES;

    /** The key whose removal tells it. */
    byte[] key() {
        ByteBuffer key = ByteBuffer.allocate(LENGTH).put(MAGIC).put((byte) contents.ordinal());
        for (String text : new String[] {id, base}) {
            UUID uuid = UUID.fromString(text);
            key.putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits());
        }
        return key.array();
    }

    /** What a changelog's record tells, if it is such a one. */
    static Optional<Attempt> of(Tuple3<Enumeration.Value, byte[], byte[]> record) {
        byte[] key = record._2();
        boolean isOne = record._1().equals(RecordType.DELETE_RECORD()) && key.length == LENGTH
                && Arrays.equals(key, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
        if (!isOne) {
            return Optional.empty();
        }
        ByteBuffer rest = ByteBuffer.wrap(key, MAGIC.length, LENGTH - MAGIC.length);
        Contents contents = rest.get() == Contents.NONE.ordinal() ? Contents.NONE : Contents.CHANGES;
        return Optional.of(new Attempt(uuid(rest), uuid(rest), contents));
    }

    private static String uuid(ByteBuffer bytes) {
        return new UUID(bytes.getLong(), bytes.getLong()).toString();
    }
}
