package dev.forebay;

import java.lang.ref.Cleaner;

/**
 * What the native half has a number for. An object is let go of once nobody can reach it; what is closed is let go of at
 * once. The number of what is closed stands for nothing, so to use it is an exception.
 *
 * <p>All natives stand here. They take numbers and arrays, which are copied. An object must be reachable until a call
 * with its number returns: {@link java.lang.ref.Reference#reachabilityFence}.
 */
abstract class Native {
    static {
        Library.load();
        Library.check(Native::version);
        // The native half throws them, also where this loader is closed, or there is little memory left.
        for (Class<?> exception : ForebayException.class.getDeclaredClasses()) {
            try {
                Class.forName(exception.getName(), true, Native.class.getClassLoader());
            } catch (ClassNotFoundException error) {
                throw new NoClassDefFoundError(error.getMessage());
            }
        }
    }

    private static final Cleaner CLEANER = Cleaner.create();

    final long number;
    private final Cleaner.Cleanable cleanable;

    Native(long number) {
        this.number = number;
        this.cleanable = CLEANER.register(this, new Release(number));
    }

    /** Lets go of it; again does nothing. */
    final void letGo() {
        cleanable.clean();
    }

    private record Release(long number) implements Runnable {
        @Override
        public void run() {
            release(number);
        }
    }

    /** How many numbers stand for something. */
    static native long held();

    static native void release(long number);

    static native long open(byte[] path, byte[] options, long pool, byte[] keyName, byte[] key);

    static native int attempts(long database);

    static native void close(long database);

    static native void destroy(byte[] path);

    static native long openTable(long database, byte[] name, byte[] options);

    static native void alter(long database, byte[] name, byte[] options);

    static native void dropTable(long database, byte[] name);

    static native byte[] tables(long database);

    static native long write(long database, byte[] writes, int writeBytes, byte[] metadata, int durability);

    static native byte[] metadata(long database);

    static native void sync(long database);

    static native void waitDurable(long database, long sequence);

    static native long lastSequence(long database);

    static native long durableSequence(long database);

    static native void flush(long database);

    static native void waitUntilIdle(long database);

    static native long refresh(long database);

    static native void backgroundRate(long database, long bytesASecond);

    static native long savepoint(long database, byte[] name);

    static native byte[] savepoints(long database);

    static native void rollback(long database, byte[] name);

    static native void dropSavepoint(long database, byte[] name);

    static native byte[] verifyDatabase(long database);

    static native byte[] stats(long database);

    static native byte[] describe(long database);

    static native byte[] version();

    static native void panic(byte[] text);

    static native long snapshot(long database);

    static native long openSavepoint(long database, byte[] name);

    static native long snapshotTable(long snapshot, byte[] name);

    static native byte[] snapshotMetadata(long snapshot);

    static native byte[] getValue(long table, long snapshot, byte[] key);

    static native boolean contains(long table, long snapshot, byte[] key);

    static native byte[] getMany(long table, long snapshot, byte[] keys);

    static native byte[] containsMany(long table, byte[] keys);

    static native void put(long table, byte[] key, byte[] value);

    static native void putWithTtl(long table, byte[] key, byte[] value, long milliseconds);

    static native void merge(long table, byte[] key, byte[] operand);

    static native void delete(long table, byte[] key);

    static native void deleteRange(long table, byte[] from, byte[] to);

    static native void deletePrefix(long table, byte[] prefix);

    static native boolean compareAndSwap(long table, byte[] key, byte[] expected, byte[] value);

    static native long count(long table, long snapshot);

    static native long approximateCount(long table, byte[] from, byte[] to);

    static native byte[] layout(long table);

    static native void setLayout(long table, byte[] layout);

    static native void compact(long table);

    static native byte[] scanRange(long table, long snapshot, byte[] from, byte[] to, int direction);

    static native byte[] scanPrefix(long table, long snapshot, byte[] prefix, int direction);

    static native byte[] scanNext(long scan);

    static native byte[] checkpoint(long database, byte[] path);

    static native long openBackups(byte[] path);

    static native long takeBackup(long backups, long database);

    static native byte[] listBackups(long backups);

    static native void restore(long backups, long number, byte[] path);

    static native byte[] verifyBackup(long backups, long number);

    static native void keepBackups(long backups, int newest);

    static native long openPool(long memoryBytes, int threads);

    static native void poolRate(long pool, long bytesASecond);

    static native byte[] poolStats(long pool);

    static native long cursor(long table, long snapshot);

    static native byte[] moveCursor(long cursor, int way, byte[] key);

    static native long beginTransaction(long database);

    static native byte[] transactionGet(long transaction, byte[] writes, int writeBytes, long table, byte[] key);

    static native byte[] transactionGetMany(long transaction, byte[] writes, int writeBytes, long table, byte[] keys);

    static native byte[] transactionRange(
            long transaction, byte[] writes, int writeBytes, long table, byte[] from, byte[] to, int direction);

    static native long commitTransaction(
            long transaction, byte[] writes, int writeBytes, byte[] metadata, int durability);

    static native long changes(long database, long since);

    static native byte[] changesNext(long changes);

    static native long streamOfArray(long array, long schema);

    static native long streamOfStream(long stream);

    static native long streamOfBytes(byte[] ipc);

    static native void exportStream(long number, long stream);

    static native byte[] streamBytes(long number);

    static native long newAggregator(byte[] options, byte[] keys, byte[] aggs, long rows);

    static native long openAggregator(
            long database, byte[] name, byte[] options, byte[] keys, byte[] aggs, long rows);

    static native long aggregatorUpdate(long aggregator, long rows, int durability);

    static native long aggregatorMerge(long aggregator, long states, int durability);

    static native long aggregatorCommit(
            long aggregator, long rows, byte[] writes, int writeBytes, byte[] metadata, int durability);

    static native byte[] aggregatorMetadata(long aggregator);

    static native byte[] aggregatorGet(long aggregator, byte[] key);

    static native void aggregatorDelete(long aggregator, byte[] key, int durability);

    static native long aggregatorRows(long aggregator, int wanted);

    static native long aggregatorMemory(long aggregator);

    static native byte[] functionColumns(byte[] function);
}
