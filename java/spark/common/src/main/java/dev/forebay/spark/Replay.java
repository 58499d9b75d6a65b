package dev.forebay.spark;

import java.util.Optional;
import org.apache.spark.sql.execution.streaming.state.RecordType;
import scala.Enumeration;
import scala.Tuple3;

/** Does again what a changelog tells. */
final class Replay {
    /** RocksDB's provider writes it since Spark 4.2, where the kind has its name. */
    private static final String DELETE_RANGE = "delete_range_record";

    private Replay() {}

    /** Returns who wrote it, where it tells. */
    static Optional<Attempt> into(
            StateDatabase database, Naming.Version version, RemoteFiles.ChangelogReader reader, Plan.Shape shape) {
        try (reader) {
            if (!reader.hasNext()) {
                return Optional.empty();
            }
            var first = reader.next();
            Optional<Attempt> attempt = Attempt.of(first);
            if (attempt.isEmpty()) {
                apply(database, first, shape);
            } else if (attempt.get().contents() == Attempt.Contents.NONE) {
                throw new IllegalStateException("version " + version + " was made of nothing, and its snapshot is"
                        + " damaged or gone: what stands before it is another state");
            }
            while (reader.hasNext()) {
                apply(database, reader.next(), shape);
            }
            return attempt;
        }
    }

    private static void apply(
            StateDatabase database, Tuple3<Enumeration.Value, byte[], byte[]> record, Plan.Shape shape) {
        byte[] key = shape.key(record._2());
        Family family = shape.family(database, record._2());
        if (family == null) {
            throw new IllegalStateException("a changelog has column family " + Family.idOf(record._2())
                    + ", which no snapshot before it knows: the snapshot that made it is gone");
        }
        if (record._1().equals(RecordType.PUT_RECORD())) {
            database.put(family, key, record._3());
        } else if (record._1().equals(RecordType.DELETE_RECORD())) {
            database.delete(family, key);
        } else if (record._1().equals(RecordType.MERGE_RECORD())) {
            database.merge(family, key, record._3());
        } else if (record._1().toString().equals(DELETE_RANGE)) {
            database.deleteRange(family, key, shape.key(record._3()));
        } else {
            throw new IllegalStateException("a changelog has a record of the kind " + record._1() + ", which is not known:"
                    + " its writer was a later version of Spark");
        }
    }
}
