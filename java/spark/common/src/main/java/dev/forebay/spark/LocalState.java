package dev.forebay.spark;

import dev.forebay.Checkpoint;
import dev.forebay.spark.Metrics.Name;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The local database of what is loaded, and where it came from. Once it could not be loaded there is none. */
final class LocalState {
    private static final Logger LOG = LoggerFactory.getLogger(LocalState.class);

    private final Opener opener;
    private final Naming naming;
    private final Metrics loads;
    private StateDatabase database;
    /** What an earlier database has left there is used by the next one. */
    private Path directory;
    private Incarnation incarnation = new Incarnation();
    private String attempt = Attempt.UNKNOWN;

    LocalState(Opener opener, Naming naming, Metrics loads) {
        this.opener = opener;
        this.naming = naming;
        this.loads = loads;
    }

    /** The database, or null. */
    StateDatabase database() {
        return database;
    }

    /** Who made what was loaded. */
    String attempt() {
        return attempt;
    }

    /**
     * Makes it by the first way that leads there, and returns that way. Another one is tried only where a snapshot is damaged
     * or not whole: what may pass is told to the caller.
     */
    History.Way load(Iterator<History.Way> ways) throws IOException {
        close();
        Opener.Unusable first = null;
        int passedOver = 0;
        try {
            while (ways.hasNext()) {
                History.Way way = ways.next();
                try {
                    take(opener.open(way, directory, incarnation));
                    return way;
                } catch (Opener.Unusable error) {
                    passedOver += 1;
                    loads.set(Name.SNAPSHOTS_PASSED_OVER, passedOver);
                    LOG.warn("The snapshot {} in {} is damaged or not whole; what stands before it is tried",
                            way.snapshot().get().version(), naming.root(), error);
                    first = first == null ? error : first;
                }
            }
        } catch (Throwable error) {
            if (first == null) {
                throw error;
            }
            first.getCause().addSuppressed(error);
        }
        throw Raise.it(first.getCause());
    }

    /** Closes it, and leaves nothing that the next one would take over. */
    void forget() {
        close();
        if (directory != null) {
            Directories.remove(directory);
            directory = null;
        }
        incarnation = new Incarnation();
    }

    private void take(Opener.Opened opened) {
        Path earlier = directory;
        database = opened.database();
        directory = opened.directory();
        incarnation = opened.incarnation();
        attempt = opened.attempt();
        if (earlier != null) {
            Directories.remove(earlier);
        }
    }

    /** A copy of all that is there, in a directory of its own. */
    LocalSnapshot snapshot(Naming.Version version) {
        Path place = opener.directory("snapshot-" + version.number());
        Checkpoint checkpoint = database.checkpoint(place);
        List<Family.Shape> shapes = database.families().stream().map(family -> family.shape).toList();
        return new LocalSnapshot(version, place, checkpoint, shapes, database.idMax(), database.counts().keys(),
                database.counts().internalKeys(), incarnation);
    }

    void close() {
        if (database != null) {
            StateDatabase closed = database;
            database = null;
            closed.close();
        }
    }
}
