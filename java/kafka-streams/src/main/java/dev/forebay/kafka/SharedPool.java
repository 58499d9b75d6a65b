package dev.forebay.kafka;

import dev.forebay.Pool;
import org.apache.kafka.common.config.ConfigException;

/** The memory and the threads of all stores of a process. They are there while a store is open. */
final class SharedPool {
    private static Pool pool;
    private static Settings made;
    private static int users;

    private SharedPool() {}

    /** For a store that opens; each is followed by a {@link #release}. */
    static synchronized Pool acquire(Settings settings) {
        if (users == 0) {
            pool = new Pool(settings.memoryBytes(), settings.threads());
            made = settings;
        }
        if (settings.memoryBytes() != made.memoryBytes() || settings.threads() != made.threads()) {
            throw new ConfigException(Settings.MEMORY_BYTES + " and " + Settings.THREADS + " are " + settings.memoryBytes()
                    + " and " + settings.threads() + " here, and " + made.memoryBytes() + " and " + made.threads()
                    + " in the stores that this process has open; it has one memory for all: set the same everywhere");
        }
        users += 1;
        return pool;
    }

    static synchronized void release() {
        users -= 1;
        if (users == 0) {
            pool.close();
            pool = null;
        }
    }

    /** How many stores are open. */
    static synchronized int users() {
        return users;
    }
}
