package dev.forebay.spark;

import dev.forebay.ForebayException;
import dev.forebay.spark.Metrics.Name;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Makes the local database of a version: of a snapshot and of the changelogs behind it. */
final class Opener {
    /** Some error of Spark's on the way, such as that a file is not there. */
    static final class Cause extends RuntimeException {
        private static final long serialVersionUID = 1;

        Cause(Throwable cause) {
            super(cause.getMessage(), cause);
        }
    }

    /** A database that is open, and where it is. */
    record Opened(StateDatabase database, Path directory, Incarnation incarnation) {}

    private final VersionedState.Plan plan;
    private final Snapshots snapshots;
    private final Metrics loads;
    private long directories;

    Opener(VersionedState.Plan plan, Snapshots snapshots, Metrics loads) {
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
    Opened open(History.Way way, Path earlier, Incarnation before) throws IOException {
        Path directory = directory("database");
        Incarnation incarnation = new Incarnation();
        Manifest manifest = null;
        if (way.snapshot().isPresent()) {
            manifest = snapshots.read(way.snapshot().get());
            snapshots.download(manifest, directory, earlier == null ? directory : earlier, before);
            incarnation.rebase(way.snapshot().get(), manifest);
        }
        StateDatabase database = new StateDatabase(directory, plan.settings(), plan.pool());
        try {
            if (manifest != null) {
                database.restore(manifest.families(), manifest.idMax(), manifest.keys(), manifest.internalKeys());
            }
            database.createDefault(plan.shape().defaultName(), plan.shape().order(), plan.shape().values());
            replay(database, way.changelogs());
        } catch (Throwable error) {
            database.close();
            throw error;
        }
        return new Opened(database, directory, incarnation);
    }

    private void replay(StateDatabase database, List<Naming.Version> changelogs) {
        long begin = System.currentTimeMillis();
        database.beginReplay();
        for (Naming.Version version : changelogs) {
            try {
                Replay.into(database, plan.remote().changelogReader(plan.naming().changelog(version)), plan.shape());
            } catch (ForebayException error) {
                throw error;
            } catch (Exception error) {
                throw new Cause(error);
            }
        }
        database.endReplay();
        if (!changelogs.isEmpty()) {
            loads.set(Name.REPLAY_MILLISECONDS, Math.max(1, System.currentTimeMillis() - begin));
            loads.set(Name.REPLAYED_FILES, changelogs.size());
        }
    }
}
