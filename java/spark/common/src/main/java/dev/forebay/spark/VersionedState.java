package dev.forebay.spark;

import dev.forebay.Checkpoint;
import dev.forebay.ForebayException;
import dev.forebay.Pool;
import dev.forebay.spark.Metrics.Name;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.LongConsumer;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Versions of one store. A version is loaded into the local database, changed there, and committed: its changes are then
 * in a changelog where checkpoints are. From time to time all of it is copied there, behind the task's back.
 *
 * <p>What is loaded is a version as it was committed, and what the task with the stamp wrote since; after an error, nothing.
 * A task and maintenance use it at once: what both touch is in {@link Uploads}, or made for several threads.
 */
final class VersionedState {
    private static final Logger LOG = LoggerFactory.getLogger(VersionedState.class);
    private static final long NOTHING = -1;

    /** What a store is made with. */
    record Plan(
            RemoteFiles remote, Naming naming, Path local, Settings settings, Pool pool, Shape shape, Retention retention) {}

    /** How the first family is, and whether there may be more. */
    record Shape(String defaultName, Family.Order order, Family.Values values, boolean hasFamilies, boolean hasIds) {}

    /** How often there are snapshots, and how many versions are kept. */
    record Retention(int deltas, int versions, int deletedMax, long deletedMin) {}

    private final Plan plan;
    private final History history;
    private final Opener opener;
    private final Uploads uploads;
    private final Lineage lineage = new Lineage();
    private final LongConsumer uploaded;
    final Metrics loads = Metrics.make();
    private final Metrics commits = Metrics.make();

    private StateDatabase database;
    private Path directory;
    private Incarnation incarnation = new Incarnation();
    private long loaded = NOTHING;
    private Optional<String> loadedId = Optional.empty();
    private Optional<String> nextId = Optional.empty();
    private StateStoreChangelogWriter changelog;
    private long lastSnapshot;
    private boolean isSnapshotForced;
    private boolean isChangelogLeftOut;
    /** Snapshots that were there beyond the version that was loaded: of a history that was given up. */
    private final Set<Naming.Version> stale = new HashSet<>();
    private volatile long versionMax = NOTHING;

    VersionedState(Plan plan, LongConsumer uploaded) {
        this.plan = plan;
        this.uploaded = uploaded;
        this.history = new History(plan.remote(), plan.naming());
        long grace = plan.settings().graceMilliseconds();
        Snapshots snapshots = new Snapshots(plan.remote(), plan.naming());
        Cleaner cleaner = new Cleaner(plan.remote(), plan.naming(), snapshots, grace);
        this.opener = new Opener(plan, snapshots, loads);
        this.uploads = new Uploads(snapshots, cleaner, plan.retention(), version -> {
            lineage.truncate(version);
            uploaded.accept(version.number());
        });
    }

    History history() {
        return history;
    }

    /** The database of what is loaded. */
    StateDatabase database() {
        return database;
    }

    /** Whether a version is loaded, and this one. */
    enum Access {
        READ,
        WRITE
    }

    /** Loads a version: what is there is kept if it is that. */
    void load(long version, Optional<String> id, Access access) throws IOException {
        long begin = System.currentTimeMillis();
        loads.clear();
        isChangelogLeftOut = false;
        boolean isLoaded = loaded == version && loadedId.equals(id) && database != null;
        try {
            if (!isLoaded) {
                loadAnew(version, id);
            }
            loadedId = id;
            nextId = plan.shape().hasIds() ? Optional.of(UUID.randomUUID().toString()) : Optional.empty();
            dropChangelog();
            if (access == Access.WRITE) {
                openChangelog();
            }
        } catch (Throwable error) {
            giveUp();
            throw error;
        }
        versionMax = Math.max(versionMax, version);
        loads.set(Name.LOAD_MILLISECONDS, System.currentTimeMillis() - begin);
    }

    private void openChangelog() {
        plan.remote().makeDirectories(plan.naming().root());
        Naming.Version next = new Naming.Version(loaded + 1, nextId);
        Optional<List<LineageItem>> before = nextId.map(known -> lineage.items());
        changelog = plan.remote().changelogWriter(plan.naming().changelog(next), plan.shape().hasFamilies(), before);
    }

    private void loadAnew(long version, Optional<String> id) throws IOException {
        loaded = NOTHING;
        closeDatabase();
        stale.clear();
        List<History.Way> ways;
        if (version == 0) {
            ways = List.of(new History.Way(Optional.empty(), List.of(), List.of()));
            noteStale(0);
        } else if (id.isPresent()) {
            ways = history.ways(new LineageItem(version, id.get()));
        } else {
            ways = history.ways(version, noteStale(version));
        }
        Throwable first = null;
        for (History.Way way : ways) {
            try {
                follow(way);
                break;
            } catch (IOException | ForebayException | Opener.Cause error) {
                closeDatabase();
                if (Thread.currentThread().isInterrupted() || isInterrupt(error)) {
                    throw Raise.it(error instanceof Opener.Cause ? error.getCause() : error);
                }
                LOG.warn("Version {} of the state in {} cannot be made of {}; what stands before it is tried", version,
                        plan.naming().root(), way.snapshot().map(Naming.Version::toString).orElse("nothing"), error);
                first = first == null ? error : first;
            }
        }
        if (database == null) {
            throw Raise.it(first instanceof Opener.Cause ? first.getCause() : first);
        }
        loaded = version;
        // What came without ids has no lineage: the next commit begins one.
        isSnapshotForced |= plan.shape().hasIds() && id.isEmpty() && version > 0;
    }

    /** A task that is killed tries no other way. */
    private static boolean isInterrupt(Throwable error) {
        for (Throwable at = error; at != null; at = at.getCause()) {
            if (at instanceof InterruptedException || at instanceof InterruptedIOException || at instanceof ClosedByInterruptException) {
                return true;
            }
        }
        return false;
    }

    /** Begins with nothing, as if that were a version; its commit is a snapshot, and no changelog leads there. */
    void loadNothing(long version, Access access) throws IOException {
        load(0, Optional.empty(), Access.READ);
        loaded = version;
        isSnapshotForced = true;
        isChangelogLeftOut = access == Access.WRITE;
        versionMax = Math.max(versionMax, version);
    }

    private List<Naming.Version> noteStale(long version) {
        if (!plan.shape().hasIds() && version < versionMax) {
            // None of its snapshots may come after those of the next history.
            uploads.giveUp(version);
        }
        List<Naming.Version> there = history.snapshots();
        there.stream().filter(snapshot -> snapshot.id().isEmpty() && snapshot.number() > version).forEach(stale::add);
        return there;
    }

    /** Loads the very snapshot of a version, and changelogs up to another one: for readers of the past. */
    void loadFrom(Naming.Version snapshot, Naming.Version last) throws IOException {
        loads.clear();
        loaded = NOTHING;
        long begin = System.currentTimeMillis();
        try {
            closeDatabase();
            dropChangelog();
            List<LineageItem> items = List.of();
            List<Naming.Version> changelogs = new ArrayList<>();
            if (last.id().isPresent() && last.number() > snapshot.number()) {
                items = history.lineage(snapshot.number() + 1, new LineageItem(last.number(), last.id().get()));
                items.forEach(item -> changelogs.add(Lineage.version(item)));
            } else {
                for (long number = snapshot.number() + 1; number <= last.number(); number++) {
                    changelogs.add(new Naming.Version(number, Optional.empty()));
                }
            }
            follow(new History.Way(Optional.of(snapshot), changelogs, items));
        } catch (Throwable error) {
            giveUp();
            throw error instanceof Opener.Cause cause ? Raise.it(cause.getCause()) : Raise.it(error);
        }
        loaded = last.number();
        loadedId = last.id();
        loads.set(Name.SNAPSHOT_LOAD_MILLISECONDS, System.currentTimeMillis() - begin);
    }

    private void follow(History.Way way) throws IOException {
        Path earlier = directory;
        Opener.Opened opened = opener.open(way, earlier, incarnation);
        database = opened.database();
        directory = opened.directory();
        incarnation = opened.incarnation();
        isSnapshotForced = false;
        lastSnapshot = way.begin();
        lineage.reset(way.lineage());
        way.snapshot().ifPresent(snapshot -> uploaded.accept(snapshot.number()));
        if (earlier != null) {
            Directories.remove(earlier);
        }
    }

    /** A family was made, or removed: changelogs do not tell that, so the commit has a snapshot. */
    void forceSnapshot() {
        isSnapshotForced = true;
    }

    /** The number by which changelogs name a family. */
    short familyNumber(String name) {
        if (name.equals(plan.shape().defaultName())) {
            return 0;
        }
        Family family = database == null ? null : database.family(name);
        if (family == null) {
            throw new IllegalStateException("column family " + name + " is not known: load a version that has it");
        }
        return family.shape.id();
    }

    /** Where changes are noted, or null where a version is only read. */
    StateStoreChangelogWriter changelog() {
        return changelog;
    }

    /** What a commit is known by: its own id, and that of what it is based on. */
    record Committed(long version, Optional<String> id, Optional<String> base) {}

    /** Commits what was written: once it returns, the version can be loaded anywhere. */
    Committed commit() throws IOException {
        commits.clear();
        Naming.Version next = new Naming.Version(loaded + 1, nextId);
        LocalSnapshot local = null;
        boolean isForced = isSnapshotForced;
        try {
            if (changelog == null && !isChangelogLeftOut) {
                throw new IllegalStateException("version " + next + " was loaded to be read, and is written");
            }
            long begin = System.currentTimeMillis();
            database.flush();
            commits.set(Name.FLUSH_MILLISECONDS, System.currentTimeMillis() - begin);
            if (isForced || next.number() - lastSnapshot >= plan.retention().deltas()) {
                local = snapshot(next);
            }
            begin = System.currentTimeMillis();
            boolean isStale = stale.remove(new Naming.Version(next.number(), Optional.empty()));
            if (isForced) {
                // It takes the place of a stale one at once: the changelog of that one may not do without it.
                uploads.upload(local);
            } else if (isStale) {
                plan.remote().delete(plan.naming().snapshot(next));
            }
            long changelogBegin = System.currentTimeMillis();
            if (changelog != null) {
                changelog.commit();
                changelog = null;
            }
            long end = System.currentTimeMillis();
            commits.set(Name.CHANGELOG_MILLISECONDS, end - changelogBegin);
            commits.set(Name.SYNC_MILLISECONDS, end - begin);
            if (isForced) {
                local.remove();
                isSnapshotForced = false;
            } else if (local != null) {
                uploads.await(local);
            }
            local = null;
        } catch (Throwable error) {
            giveUp();
            if (local != null) {
                local.remove();
            }
            throw error;
        }
        Committed committed = new Committed(next.number(), nextId, loadedId);
        nextId.ifPresent(id -> lineage.append(new LineageItem(next.number(), id)));
        if (isForced) {
            lineage.truncate(next);
        }
        loaded = next.number();
        loadedId = nextId;
        versionMax = Math.max(versionMax, loaded);
        return committed;
    }

    private LocalSnapshot snapshot(Naming.Version version) {
        long begin = System.currentTimeMillis();
        Path place = opener.directory("snapshot-" + version.number());
        Checkpoint checkpoint = database.checkpoint(place);
        List<Family.Shape> shapes = database.families().stream().map(family -> family.shape).toList();
        lastSnapshot = version.number();
        commits.set(Name.CHECKPOINT_MILLISECONDS, System.currentTimeMillis() - begin);
        return new LocalSnapshot(version, place, checkpoint, shapes, database.idMax(), database.keys(),
                database.internalKeys(), incarnation);
    }

    /** Forgets what is loaded: after an error, or as the task gives up. */
    void giveUp() {
        loaded = NOTHING;
        loadedId = Optional.empty();
        nextId = Optional.empty();
        isChangelogLeftOut = false;
        lineage.clear();
        dropChangelog();
    }

    private void dropChangelog() {
        if (changelog != null) {
            changelog.abort();
            changelog = null;
        }
    }

    /** Uploads the newest snapshot that waits, and deletes versions that are too old. */
    void maintain() throws IOException {
        uploads.maintain(versionMax);
    }

    /** The numbers of the last commit. */
    Metrics.Told told(Metrics operations) {
        return Metrics.Told.of(database, uploads, List.of(loads, commits, operations));
    }

    private void closeDatabase() {
        if (database != null) {
            StateDatabase closed = database;
            database = null;
            closed.close();
        }
    }

    /** Closes all, and removes what is on this executor. */
    void close() {
        giveUp();
        uploads.clear();
        try {
            closeDatabase();
        } catch (ForebayException error) {
            LOG.warn("The local database of the state in {} did not close as it should", plan.naming().root(), error);
        }
        Directories.remove(plan.local());
        plan.remote().close();
    }
}
