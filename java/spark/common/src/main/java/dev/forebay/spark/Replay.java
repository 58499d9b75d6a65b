package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.RecordType;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import scala.Enumeration;
import scala.Tuple3;

/** Does again what a changelog tells. */
final class Replay {
    private Replay() {}

    static void into(StateDatabase database, StateStoreChangelogReader reader, VersionedState.Shape shape) {
        Enumeration.Value put = RecordType.PUT_RECORD();
        Enumeration.Value delete = RecordType.DELETE_RECORD();
        try {
            while (reader.hasNext()) {
                Tuple3<Enumeration.Value, byte[], byte[]> record = reader.next();
                byte[] key = shape.hasFamilies() ? Family.keyOf(record._2()) : record._2();
                Family family = shape.hasFamilies()
                        ? database.family(Family.idOf(record._2()))
                        : database.family(shape.defaultName());
                if (family == null) {
                    throw new IllegalStateException("a changelog has column family " + Family.idOf(record._2())
                            + ", which no snapshot before it knows: the snapshot that made it is gone");
                }
                if (record._1().equals(put)) {
                    database.put(family, key, record._3());
                } else if (record._1().equals(delete)) {
                    database.delete(family, key);
                } else {
                    database.merge(family, key, record._3());
                }
            }
        } finally {
            reader.closeIfNeeded();
        }
    }
}
