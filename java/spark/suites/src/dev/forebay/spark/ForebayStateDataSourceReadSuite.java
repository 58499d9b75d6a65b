package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;

/** State, as the state data source reads it. */
public final class ForebayStateDataSourceReadSuite
        extends org.apache.spark.sql.execution.datasources.v2.state.StateDataSourceReadSuite {
    @Override
    public StateStoreProvider newStateStoreProvider() {
        return new ForebayStateStoreProvider();
    }

    @Override
    public void beforeAll() {
        super.beforeAll();
        spark().conf().set("spark.sql.streaming.stateStore.providerClass", "dev.forebay.spark.ForebayStateStoreProvider");
    }
}
