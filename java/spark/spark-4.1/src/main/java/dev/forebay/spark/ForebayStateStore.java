package dev.forebay.spark;

import org.apache.spark.sql.execution.streaming.state.StateStore;

/** A version of state, which a task reads and changes. */
public final class ForebayStateStore extends StoreBase implements StateStore {
    ForebayStateStore(ProviderBase provider, long version, long stamp, Access access) {
        super(provider, version, stamp, access);
    }
}
