package dev.forebay.spark;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.ReadStateStore;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.SupportsFineGrainedReplay;
import org.apache.spark.util.NextIterator;
import scala.Enumeration;
import scala.Option;
import scala.Tuple4;

/**
 * State of Structured Streaming in Forebay: name it in {@code spark.sql.streaming.stateStore.providerClass}. The guide's
 * page for Spark has the settings.
 */
public final class ForebayStateStoreProvider extends ProviderBase implements StateStoreProvider, SupportsFineGrainedReplay {
    /** Spark makes it by name. */
    public ForebayStateStoreProvider() {}

    @Override
    public StateStore getStore(long version, Option<String> uniqueId) {
        return open(version, uniqueId, Access.WRITE, false);
    }

    @Override
    public ReadStateStore getReadStore(long version, Option<String> uniqueId) {
        return open(version, uniqueId, Access.READ, false);
    }

    @Override
    public StateStore replayStateFromSnapshot(long first, long last) {
        return replay(first, last, Option.empty(), Option.empty(), Access.READ);
    }

    @Override
    public NextIterator<Tuple4<Enumeration.Value, UnsafeRow, UnsafeRow, Object>> getStateStoreChangeDataReader(
            long first, long last, Option<String> family) {
        return changes(first, last, family, Option.empty());
    }
}
