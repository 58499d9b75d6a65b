package dev.forebay.spark;

import dev.forebay.ForebayException;
import dev.forebay.spark.Metrics.Name;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.apache.hadoop.fs.ChecksumException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes the local database of a version: of a snapshot and of the changelogs behind it. */
final class Opener {
    private static final Logger LOG = LoggerFactory.getLogger(Opener.class);

    /** A snapshot is damaged, or a part of it is not there. Another one may do. */
    static final class Unusable extends Exception {
        private static final long serialVersionUID = 1;

        Unusable(Throwable cause) {
            super(cause.getMessage(), cause);
        }
    }

    /**
     * A database that is open, and where it is.
     *
     * @param attempt who made what is in it; {@link Attempt#UNKNOWN} where nothing tells
     */
    record Opened(StateDatabase database, Path directory, Incarnation incarnation, String attempt) {}

    private final Plan plan;
    private final Snapshots snapshots;
    private final Metrics loads;
    private long directories;

    Opener(Plan plan, Snapshots snapshots, Metrics loads) {
        this.plan = plan;
        this.snapshots = snapshots;
        this.loads = loads;
    }

    /** A new directory on this executor. */
    Path directory(String name) {
        directories += 1;
        return plan.local().resolve(name + "-" + directories);
    }

    /** Opens it; files that an earlier database has left in its directory are taken from there. */
    Opened open(History.Way way, Path earlier, Incarnation before) throws IOException, Unusable {
        Path directory = directory("database");
        Incarnation incarnation = new Incarnation();
        StateDatabase database = null;
        try {
            database = restore(way, directory, earlier == null ? directory : earlier, before, incarnation);
            createDefault(database);
            String attempt = replay(database, way);
            return new Opened(database, directory, incarnation, attempt);
        } catch (Throwable error) {
            close(database, error);
            Directories.remove(directory);
            throw error;
        }
    }

    /** Closes what an error has left. */
    private static void close(StateDatabase database, Throwable error) {
        try {
            if (database != null) {
                database.close();
            }
        } catch (RuntimeException second) {
            error.addSuppressed(second);
        }
    }

    /** What a way begins with. */
    private StateDatabase restore(History.Way way, Path directory, Path earlier, Incarnation before, Incarnation incarnation)
            throws IOException, Unusable {
        if (way.snapshot().isEmpty()) {
            return new StateDatabase(directory, plan.settings(), plan.pool());
        }
        Naming.Version version = way.snapshot().get().version();
        StateDatabase database = null;
        try {
            if (way.snapshot().get().maker() == Naming.Maker.ROCKSDB) {
                database = new StateDatabase(directory, plan.settings(), plan.pool());
                new RocksDbSnapshot(plan, version, directory("rocksdb")).bringInto(database);
                return database;
            }
            if (way.snapshot().get().maker() == Naming.Maker.IN_MEMORY) {
                database = new StateDatabase(directory, plan.settings(), plan.pool());
                createDefault(database);
                database.beginReplay();
                replayRows(database, plan.naming().path(way.snapshot().get()));
                database.endReplay();
                return database;
            }
            Manifest manifest = snapshots.read(version);
            snapshots.download(manifest, directory, earlier, before);
            incarnation.rebase(version, manifest);
            database = new StateDatabase(directory, plan.settings(), plan.pool());
            database.restore(manifest.families(), manifest.idMax(), manifest.keys(), manifest.internalKeys());
            return database;
        } catch (Throwable error) {
            close(database, error);
            if (isDamage(error)) {
                throw new Unusable(error);
            }
            throw error;
        }
    }

    /** Whether a file is to blame, and not the way to it, which may be free again soon. */
    static boolean isDamage(Throwable error) {
        for (Throwable at = error; at != null; at = at.getCause()) {
            if (at instanceof Manifest.Damaged || at instanceof FileNotFoundException || at instanceof ChecksumException
                    || at instanceof ForebayException.Corruption) {
                return true;
            }
        }
        return false;
    }

    private void createDefault(StateDatabase database) {
        database.createDefault(plan.shape().defaultName(), plan.shape().order(), plan.shape().values());
    }

    /** Brings in what a file of Spark's provider tells that keeps state in memory: it is as a changelog of rows. */
    private void replayRows(StateDatabase database, org.apache.hadoop.fs.Path path) throws Manifest.Damaged {
        Family family = database.family(plan.shape().defaultName());
        try (RemoteFiles.ChangelogReader reader = plan.remote().changelogReader(path)) {
            while (reader.hasNext()) {
                var record = reader.next();
                byte[] key = plan.rows().key(record._2());
                if (record._3() == null) {
                    database.delete(family, key);
                } else {
                    database.put(family, key, plan.rows().value(record._3()));
                }
            }
        } catch (Exception error) {
            if (error instanceof IOException && !isDamage(error) && canBeRead(path)) {
                throw new Manifest.Damaged("the file " + path + " has other bytes than were written to it", error);
            }
            throw error;
        }
    }

    private boolean canBeRead(org.apache.hadoop.fs.Path path) {
        try {
            plan.remote().readThrough(path);
            return true;
        } catch (Exception error) {
            return false;
        }
    }

    /** What follows. Every other way has it, too, so an error here is the version's. */
    private String replay(StateDatabase database, History.Way way) throws Manifest.Damaged {
        long begin = System.currentTimeMillis();
        String attempt = way.snapshot().flatMap(Naming.Snapshot::id).orElse(Attempt.UNKNOWN);
        database.beginReplay();
        for (Naming.Version version : way.changelogs()) {
            if (way.deltas().contains(version.number())) {
                replayRows(database, plan.naming().delta(version));
                continue;
            }
            var reader = plan.remote().changelogReader(plan.naming().changelog(version));
            Optional<Attempt> made = Replay.into(database, version, reader, plan.shape());
            if (made.isPresent() && !made.get().base().equals(attempt) && !attempt.equals(Attempt.UNKNOWN)) {
                LOG.warn("Version {} of the state in {} was made on another attempt at the version before than that which is"
                        + " there: a batch was run twice. Where its results may differ from run to run, set"
                        + " spark.sql.streaming.stateStore.checkpointFormatVersion to 2", version, plan.naming().root());
            }
            attempt = version.id().or(() -> made.map(Attempt::id)).orElse(Attempt.UNKNOWN);
        }
        database.endReplay();
        if (!way.changelogs().isEmpty()) {
            loads.set(Name.REPLAY_MILLISECONDS, Math.max(1, System.currentTimeMillis() - begin));
            loads.set(Name.REPLAYED_FILES, way.changelogs().size());
        }
        return attempt;
    }
}
