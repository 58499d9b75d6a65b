package dev.forebay.spark;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.streaming.state.ReadStateStore;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import org.apache.spark.sql.execution.streaming.state.StateStoreInstanceMetric;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;
import org.apache.spark.sql.execution.streaming.state.SupportsFineGrainedReplay;
import org.apache.spark.util.NextIterator;
import scala.Enumeration;
import scala.Option;
import scala.Tuple4;
import scala.jdk.javaapi.CollectionConverters;

/** What Spark calls of a provider since 4.1, in all versions alike. */
abstract class ProviderSince41 extends ProviderBase implements StateStoreProvider, SupportsFineGrainedReplay {
    @Override
    public ReadStateStore getReadStore(long version, Option<String> uniqueId) {
        return open(version, uniqueId, Access.READ, false);
    }

    @Override
    public StateStore replayStateFromSnapshot(
            long first, long last, boolean isReadOnly, Option<String> firstId, Option<String> lastId) {
        return replay(first, last, firstId, lastId, isReadOnly ? Access.READ : Access.WRITE);
    }

    @Override
    public NextIterator<Tuple4<Enumeration.Value, UnsafeRow, UnsafeRow, Object>> getStateStoreChangeDataReader(
            long first, long last, Option<String> family, Option<String> lastId) {
        return changes(first, last, family, lastId);
    }

    @Override
    public scala.collection.immutable.Seq<StateStoreInstanceMetric> supportedInstanceMetrics() {
        return CollectionConverters.asScala(java.util.List.of(Minor.SNAPSHOT_UPLOADED)).toSeq();
    }
}
