package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.ReadStateStore;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import scala.Option;

/** What Spark calls of a provider since 4.2. */
abstract class ProviderSince42 extends ProviderSince41 {
    @Override
    public StateStore getStore(long version, Option<String> uniqueId, boolean isSnapshotForced, boolean isEmpty) {
        ForebayStateStore store = open(version, uniqueId, Access.WRITE, isEmpty);
        if (isSnapshotForced) {
            state().forceSnapshot();
        }
        return store;
    }

    @Override
    public StateStore upgradeReadStoreToWriteStore(
            ReadStateStore store, long version, Option<String> uniqueId, boolean isSnapshotForced) {
        StateStore upgraded = upgrade((ForebayStateStore) store, version, uniqueId);
        if (isSnapshotForced) {
            state().forceSnapshot();
        }
        return upgraded;
    }
}
