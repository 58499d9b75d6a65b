package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.ReadStateStore;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import scala.Option;

/**
 * State of Structured Streaming in Forebay: name it in {@code spark.sql.streaming.stateStore.providerClass}. The guide's
 * page for Spark has the settings.
 */
public final class ForebayStateStoreProvider extends ProviderSince41 {
    /** Spark makes it by name. */
    public ForebayStateStoreProvider() {}

    @Override
    public StateStore getStore(long version, Option<String> uniqueId) {
        return open(version, uniqueId, Access.WRITE, false);
    }

    @Override
    public StateStore upgradeReadStoreToWriteStore(ReadStateStore store, long version, Option<String> uniqueId) {
        return upgrade((ForebayStateStore) store, version, uniqueId);
    }
}
