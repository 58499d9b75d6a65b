package dev.forebay.spark;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.NextIterator;
import scala.Enumeration;
import scala.Tuple3;
import scala.Tuple4;

/** What versions changed in one family, record after record: for Spark's state data source. */
final class Changes extends NextIterator<Tuple4<Enumeration.Value, UnsafeRow, UnsafeRow, Object>> {
    private final RemoteFiles remote;
    private final Naming naming;
    private final Iterator<Naming.Version> versions;
    private final Coder coder;
    /** The family's number, or null where there is one family. */
    private final Short family;
    private RemoteFiles.ChangelogReader reader;
    private long version;

    Changes(RemoteFiles remote, Naming naming, List<Naming.Version> versions, Coder coder, Short family) {
        this.remote = remote;
        this.naming = naming;
        this.versions = versions.iterator();
        this.coder = coder;
        this.family = family;
    }

    @Override
    public Tuple4<Enumeration.Value, UnsafeRow, UnsafeRow, Object> getNext() {
        while (true) {
            if (reader != null && !reader.hasNext()) {
                reader.close();
                reader = null;
            }
            if (reader == null) {
                if (!versions.hasNext()) {
                    finished_$eq(true);
                    return null;
                }
                Naming.Version next = versions.next();
                version = next.number();
                reader = remote.changelogReader(naming.changelog(next));
                continue;
            }
            Tuple3<Enumeration.Value, byte[], byte[]> record = reader.next();
            if (Attempt.of(record).isEmpty() && (family == null || Family.idOf(record._2()) == family)) {
                byte[] key = family == null ? record._2() : Family.keyOf(record._2());
                UnsafeRow value = record._3() == null ? null : coder.values().decodeValue(record._3());
                return new Tuple4<>(record._1(), coder.keys().decodeKey(key), value, version - 1);
            }
        }
    }

    @Override
    public void close() {
        if (reader != null) {
            reader.close();
        }
    }
}
