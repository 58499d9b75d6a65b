package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;

/** What batches have changed, as the state data source reads it. */
public final class ForebayStateDataSourceChangeDataReaderSuite
        extends org.apache.spark.sql.execution.datasources.v2.state.StateDataSourceChangeDataReaderSuite {
    @Override
    public StateStoreProvider newStateStoreProvider() {
        return new ForebayStateStoreProvider();
    }
}
