package dev.forebay.kafka;

import dev.forebay.Database;
import dev.forebay.Durability;
import dev.forebay.Options;
import dev.forebay.Table;
import dev.forebay.TableOptions;
import dev.forebay.WriteBatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The database of a store. It has no log: the changelog is one. What is durable has the offset that belongs to it.
 *
 * <p>Under exactly-once nothing may be there that was not committed, so a commit is a savepoint, and a database that has
 * anything later goes back to it when it is opened. So a crash costs what was written since, and no local state.
 */
final class StateDatabase implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StateDatabase.class);
    private static final String SAVEPOINT = "commit-";
    /** Where the engine keeps the metadata of batches. */
    private static final String METADATA = "commit.metadata";

    private final Database database;
    private final Settings settings;
    /** That of the last commit under exactly-once, or null. */
    private String savepoint;
    /** Records that were written since the data were made durable, and since the last commit. */
    private long undurable;
    private long uncommitted;
    private byte[] committed;
    /** Under at-least-once what goes once that is durable which made it go: else a crash would leave neither. */
    private final Deque<String> expired = new ArrayDeque<>();

    private StateDatabase(Database database, Settings settings, boolean isRestorable) {
        this.database = database;
        this.settings = settings;
        if (settings.isExactlyOnce()) {
            goBack(isRestorable);
        } else {
            // They would hold files for ever.
            database.savepoints().forEach(database::dropSavepoint);
        }
        committed = database.metadata();
    }

    /** Opens it. Where it can be restored from a changelog, what may not have been committed goes. */
    static StateDatabase open(Path path, Settings settings, boolean isRestorable) throws IOException {
        Files.createDirectories(path);
        // A changelog is replayed, or a record comes back for its key, soon after it was written.
        Options options = new Options().set("log", "false").set("system_cache", "true").pool(SharedPool.acquire(settings));
        Database database = null;
        try {
            database = Database.open(path, options);
            return new StateDatabase(database, settings, isRestorable);
        } catch (RuntimeException | Error error) {
            try {
                if (database != null) {
                    database.close();
                }
            } catch (RuntimeException second) {
                error.addSuppressed(second);
            } finally {
                SharedPool.release();
            }
            throw error;
        }
    }

    /**
     * To the last commit. A dropped table takes no sequence number, so whether anything came later is not asked. Savepoints
     * before the last are left over from a crash. Without one the last run was not under exactly-once, or has committed
     * nothing: what the former has left stays where nobody could make it anew.
     */
    private void goBack(boolean isRestorable) {
        List<String> savepoints = database.savepoints();
        if (savepoints.isEmpty() && !isRestorable && database.metadata() != null) {
            LOG.warn("A store without a changelog is opened under exactly-once: all it has is taken for committed");
            makeDurable();
            return;
        }
        if (savepoints.isEmpty()) {
            database.tables().keySet().forEach(database::dropTable);
            return;
        }
        savepoint = savepoints.get(savepoints.size() - 1);
        database.rollback(savepoint);
        savepoints.stream().filter(name -> !name.equals(savepoint)).forEach(database::dropSavepoint);
    }

    /** What the last commit kept, or null. */
    byte[] committed() {
        return committed;
    }

    /** Opens a table, or makes it. One that is there keeps its layout. */
    Table table(String name) {
        return database.table(name, tables().contains(name) ? new TableOptions() : TableOptions.layout(settings.layout()));
    }

    /** Drops a table whose entries have expired: with the next commit, or so that the last savepoint still has it. */
    void dropTable(String name) {
        if (settings.isExactlyOnce()) {
            database.dropTable(name);
        } else {
            expired.add(name);
        }
        wrote(1);
    }

    /** Drops a table that can be made anew of others. */
    void dropDerived(String name) {
        database.dropTable(name);
        wrote(1);
    }

    /** Drops all there is. What was committed goes first, so that after a crash nothing is taken for the rest of it. */
    void clear() {
        database.savepoints().forEach(database::dropSavepoint);
        savepoint = null;
        Set<String> tables = tables();
        tables.stream().filter(METADATA::equals).forEach(database::dropTable);
        tables.stream().filter(name -> !METADATA.equals(name)).forEach(database::dropTable);
        committed = null;
        wrote(1);
    }

    boolean isExactlyOnce() {
        return settings.isExactlyOnce();
    }

    Set<String> tables() {
        return database.tables().keySet();
    }

    void write(WriteBatch batch) {
        int records = batch.size();
        database.write(batch, Durability.MEMORY);
        wrote(records);
    }

    /** For writes that went straight to a table. */
    void wrote(int records) {
        undurable += records;
        uncommitted += records;
    }

    /** Keeps this with the data, durably once there is enough of it. */
    void commit(byte[] metadata) {
        if (uncommitted == 0 && Arrays.equals(metadata, committed)) {
            return;
        }
        database.write(new WriteBatch(), Durability.MEMORY, metadata);
        committed = metadata;
        undurable += 1;
        uncommitted = 0;
        // Without a savepoint there is no offset after a crash, and the host wipes all stores of the task.
        boolean isFirst = settings.isExactlyOnce() && savepoint == null;
        if (undurable >= settings.commitRecords() || isFirst || !expired.isEmpty()) {
            makeDurable();
        }
    }

    /** What is there is what was committed. */
    void makeDurable() {
        if (settings.isExactlyOnce()) {
            String last = savepoint;
            String next = SAVEPOINT + database.lastSequence();
            if (!next.equals(last)) {
                database.savepoint(next);
                savepoint = next;
                if (last != null) {
                    database.dropSavepoint(last);
                }
            }
        } else {
            database.flush();
            for (String name = expired.peek(); name != null; name = expired.peek()) {
                database.dropTable(name);
                expired.remove();
            }
        }
        undurable = 0;
    }

    Map<String, Number> stats() {
        return database.stats();
    }

    /** What was not committed under exactly-once is gone when it is opened again. */
    @Override
    public void close() {
        try {
            if (settings.isExactlyOnce() && uncommitted == 0 && undurable > 0) {
                makeDurable();
            }
        } finally {
            try {
                database.close();
            } finally {
                SharedPool.release();
            }
        }
    }
}
