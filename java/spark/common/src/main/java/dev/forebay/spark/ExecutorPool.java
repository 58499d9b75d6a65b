package dev.forebay.spark;

import dev.forebay.Pool;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory and the threads of all stores of this process: an executor, or the driver of a local master. The first store
 * decides how much there is, and it stays so until the process ends.
 */
final class ExecutorPool {
    private static final Logger LOG = LoggerFactory.getLogger(ExecutorPool.class);

    private static Pool pool;
    private static long memoryBytes;
    private static int threads;

    private ExecutorPool() {}

    static synchronized Pool of(Settings settings) {
        if (pool == null) {
            pool = new Pool(settings.memoryBytes(), settings.threads());
            memoryBytes = settings.memoryBytes();
            threads = settings.threads();
            Minor.tellMemory(ExecutorPool::usedBytes);
        } else if (memoryBytes != settings.memoryBytes() || threads != settings.threads()) {
            LOG.warn("The state stores of this process have {} bytes and {} threads since the first of them was made;"
                    + " {}memory and threads of a later query change nothing", memoryBytes, threads, Settings.PREFIX);
        }
        return pool;
    }

    /** How much all stores hold, as the pool counts it. */
    static long usedBytes() {
        Pool now;
        synchronized (ExecutorPool.class) {
            now = pool;
        }
        if (now == null) {
            return 0;
        }
        Map<String, Number> stats = now.stats();
        return stats.getOrDefault("taken_bytes", 0).longValue();
    }
}
