package dev.forebay;

import java.lang.ref.Reference;
import java.util.Map;

/**
 * A memory and a few threads for many databases: {@link Options#pool}. A process has one, as a rule. Any number of threads
 * may use it. It stays as long as a database has it, also once it is closed.
 */
public final class Pool extends Native implements AutoCloseable {
    /**
     * Makes a pool.
     *
     * @param memoryBytes for all databases together, at least 4 MiB
     * @param threads for background work, 1 to 64
     */
    public Pool(long memoryBytes, int threads) {
        super(openPool(memoryBytes, threads));
    }

    /** How many bytes a second background work of all databases goes through; 0 for no limit. */
    public void setBackgroundRate(long bytesASecond) {
        try {
            poolRate(number, bytesASecond);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Who has what, by names such as {@code databases.0.share_bytes}. */
    public Map<String, Number> stats() {
        try {
            return Items.numbers(poolStats(number));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** No database is opened with it any more. */
    @Override
    public void close() {
        letGo();
    }
}
