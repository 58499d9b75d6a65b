package dev.forebay.spark;

import dev.forebay.Scan;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.StateStoreIterator;
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.BoxedUnit;

/** Entries of a scan as rows. The pair that is given is the same each time, as Spark has it. */
final class Rows extends AbstractIterator<UnsafeRowPair> {
    /** What a key with a list of values gives. */
    enum Lists {
        /** One pair, with the first value. */
        FIRST,
        /** A pair for each value. */
        EACH
    }

    private final StateDatabase database;
    private final Scan scan;
    private final Coder coder;
    private final Lists lists;
    private final Consumer<UnsafeRowPair> check;
    private final UnsafeRowPair pair = new UnsafeRowPair(null, null);
    private boolean isReady;
    private boolean isClosed;
    private UnsafeRow key;
    private Iterator<UnsafeRow> values;

    private Rows(StateDatabase database, Scan scan, Coder coder, Lists lists, Consumer<UnsafeRowPair> check) {
        this.database = database;
        this.scan = scan;
        this.coder = coder;
        this.lists = lists;
        this.check = check;
    }

    /** As what Spark wants; closing it again does nothing. */
    static StateStoreIterator<UnsafeRowPair> of(
            StateDatabase database, Scan scan, Coder coder, Lists lists, Consumer<UnsafeRowPair> check) {
        Rows rows = new Rows(database, scan, coder, lists, check);
        return new StateStoreIterator<>(rows, () -> {
            rows.close();
            return BoxedUnit.UNIT;
        });
    }

    private void close() {
        if (!isClosed) {
            isClosed = true;
            database.close(scan);
        }
    }

    @Override
    public boolean hasNext() {
        if (!isReady && !isClosed) {
            isReady = advance();
            if (!isReady) {
                close();
            }
        }
        return isReady;
    }

    private boolean advance() {
        if (lists == Lists.FIRST) {
            return scan.advance();
        }
        while (values == null || !values.hasNext()) {
            if (!scan.advance()) {
                return false;
            }
            values = coder.values().decodeValues(scan.value());
            key = null;
        }
        return true;
    }

    @Override
    public UnsafeRowPair next() {
        if (!hasNext()) {
            throw new java.util.NoSuchElementException("no more rows");
        }
        isReady = false;
        // Not before: decoders may use a row again, and Spark still has the last one while it asks whether there is more.
        if (lists == Lists.FIRST || key == null) {
            key = coder.keys().decodeKey(scan.key());
        }
        pair.withRows(key, lists == Lists.FIRST ? coder.values().decodeValue(scan.value()) : values.next());
        check.accept(pair);
        return pair;
    }
}
