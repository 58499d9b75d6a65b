package dev.forebay.spark;

import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.apache.spark.sql.execution.streaming.state.StateStoreProvider;

/**
 * State of Structured Streaming in Forebay: name it in {@code spark.sql.streaming.stateStore.providerClass}. The guide's
 * page for Spark has the settings.
 */
public final class ForebayStateStoreProvider extends ProviderSince42 {
    private volatile boolean isUnloaded;
    private ReentrantReadWriteLock maintenanceLock;

    /** Spark makes it by name. */
    public ForebayStateStoreProvider() {
        StateStoreProvider.$init$(this);
    }

    // Fields of a trait: its own code sets them and asks for them by these names.

    @Override
    public boolean unloaded() {
        return isUnloaded;
    }

    @Override
    public void unloaded_$eq(boolean is) {
        isUnloaded = is;
    }

    @Override
    public ReentrantReadWriteLock maintenanceLock() {
        return maintenanceLock;
    }

    @Override
    public void org$apache$spark$sql$execution$streaming$state$StateStoreProvider$_setter_$maintenanceLock_$eq(
            ReentrantReadWriteLock lock) {
        maintenanceLock = lock;
    }

    // Spark's maintenance calls these two, each from threads of its own and both at once, where it called doMaintenance.

    @Override
    public void doSnapshotMaintenance() {
        maintain(state()::upload);
    }

    @Override
    public void doCleanupMaintenance() {
        maintain(state()::clean);
    }
}
