package dev.forebay.spark;

import dev.forebay.ForebayException;
import dev.forebay.spark.Metrics.Name;
import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
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
    /** Once so many tasks gave up without a commit, a file that is here may be damaged: all are fetched anew. */
    private static final int GIVEN_UP_MAX = 2;

    private final Plan plan;
    private final History history;
    private final LocalState local;
    private final Uploads uploads;
    private final Lineage lineage = new Lineage();
    private final NextChangelog next;
    private final LongConsumer uploaded;
    private final Metrics loads = Metrics.make();
    private final Metrics commits = Metrics.make();

    private long loaded = NOTHING;
    private Optional<String> loadedId = Optional.empty();
    /** Who made what is loaded. */
    private String attempt = Attempt.UNKNOWN;
    /** Whether this task has looked that what is loaded is what others find. */
    private boolean isConfirmed;
    private long lastSnapshot;
    /** Those of the last load: readers give up what is loaded, and ask for changes then. */
    private Map<String, Short> familyNumbers = Map.of();
    private boolean isSnapshotForced;
    private boolean isChangelogLeftOut;
    /** What is loaded was made of nothing, and is no version that others find. */
    private boolean isNothing;
    /** How often, since the last commit. */
    private int givenUp;
    private volatile long versionMax = NOTHING;

    VersionedState(Plan plan, LongConsumer uploaded) {
        this.plan = plan;
        this.uploaded = uploaded;
        this.history = new History(plan.remote(), plan.naming());
        this.next = new NextChangelog(plan, lineage);
        Snapshots snapshots = new Snapshots(plan.remote(), plan.naming());
        Cleaner cleaner = new Cleaner(plan, snapshots);
        this.local = new LocalState(new Opener(plan, snapshots, loads), plan.naming(), loads);
        this.uploads = new Uploads(snapshots, cleaner, plan.retention(), version -> {
            lineage.truncate(version);
            uploaded.accept(version.number());
        });
    }

    History history() {
        return history;
    }

    /** The database of what is loaded, or null. */
    StateDatabase database() {
        return local.database();
    }

    /** Loads a version: what is there is kept if it is that. */
    void load(long version, Optional<String> id, Access access) throws IOException {
        long begin = System.currentTimeMillis();
        isChangelogLeftOut = false;
        try {
            if (!isHere(version, id)) {
                loadAnew(version, id);
            }
            loadedId = id;
            next.drop();
            next.draw();
            if (access == Access.WRITE) {
                next.open(loaded, attempt, Attempt.Contents.CHANGES);
            }
        } catch (Throwable error) {
            giveUp();
            throw error;
        }
        versionMax = Math.max(versionMax, version);
        loads.add(Name.LOAD_MILLISECONDS, System.currentTimeMillis() - begin);
    }

    private boolean isHere(long version, Optional<String> id) {
        if (loaded != version || !loadedId.equals(id) || database() == null) {
            return false;
        }
        if (!isConfirmed && !plan.shape().hasIds() && version > 0) {
            // Another task of the same batch may have written over it since.
            Optional<Attempt> made = history.ourAttempt(version);
            isConfirmed = !isNothing && made.map(Attempt::id).orElse(Attempt.UNKNOWN).equals(attempt);
            return isConfirmed;
        }
        return true;
    }

    private void loadAnew(long version, Optional<String> id) throws IOException {
        loaded = NOTHING;
        loads.clear();
        if (!plan.shape().hasIds() && version < versionMax) {
            // None of its snapshots may come after those of the next history.
            uploads.giveUp(version);
        }
        if (givenUp >= GIVEN_UP_MAX) {
            local.forget();
        }
        Iterator<History.Way> ways;
        if (version == 0) {
            ways = List.of(new History.Way(Optional.empty(), List.of(), List.of())).iterator();
        } else if (id.isPresent()) {
            ways = history.ways(new LineageItem(version, id.get()));
        } else {
            ways = history.ways(version);
        }
        follow(ways);
        loaded = version;
        // What came without ids has no lineage: the next commit begins one.
        isSnapshotForced |= plan.shape().hasIds() && id.isEmpty() && version > 0;
    }

    /** Begins with nothing, as if that were a version; its commit is a snapshot, and no changelog leads there. */
    void loadNothing(long version, Access access) throws IOException {
        load(0, Optional.empty(), Access.READ);
        loaded = version;
        isNothing = true;
        isSnapshotForced = true;
        isChangelogLeftOut = access == Access.WRITE;
        versionMax = Math.max(versionMax, version);
    }

    /** Loads the very snapshot of a version, and changelogs up to another one: for readers of the past. */
    void loadFrom(Naming.Version snapshot, Naming.Version last) throws IOException {
        loads.clear();
        loaded = NOTHING;
        long begin = System.currentTimeMillis();
        try {
            next.drop();
            follow(List.of(history.way(snapshot, last)).iterator());
        } catch (Throwable error) {
            giveUp();
            throw error;
        }
        loaded = last.number();
        loadedId = last.id();
        loads.set(Name.SNAPSHOT_LOAD_MILLISECONDS, System.currentTimeMillis() - begin);
    }

    private void follow(Iterator<History.Way> ways) throws IOException {
        History.Way way = local.load(ways);
        attempt = local.attempt();
        isNothing = false;
        isConfirmed = true;
        // What another provider has left is brought in once.
        isSnapshotForced = way.takesOver();
        lastSnapshot = way.begin();
        lineage.reset(way.lineage());
        familyNumbers = database().families().stream()
                .collect(Collectors.toMap(family -> family.shape.name(), family -> family.shape.id()));
        way.snapshot().ifPresent(snapshot -> uploaded.accept(snapshot.number()));
    }

    /** A family was made, or removed: changelogs do not tell that, so the commit has a snapshot. */
    void forceSnapshot() {
        isSnapshotForced = true;
    }

    /** The number by which changelogs name a family. */
    short familyNumber(String name) {
        Family family = database() == null ? null : database().family(name);
        Short number = family == null ? familyNumbers.get(name) : Short.valueOf(family.shape.id());
        if (number == null && name.equals(plan.shape().defaultName())) {
            return 0;
        }
        if (number == null) {
            throw new IllegalStateException("column family " + name + " is not known: load a version that has it");
        }
        return number;
    }

    /** Where changes are noted, or null where a version is only read. */
    RemoteFiles.ChangelogWriter changelog() {
        return next.writer();
    }

    /** What a commit is known by: its own id, and that of what it is based on. */
    record Committed(long version, Optional<String> id, Optional<String> base) {}

    /** Commits what was written: once it returns, the version can be loaded anywhere. */
    Committed commit() throws IOException {
        commits.clear();
        LocalSnapshot copy = null;
        boolean isForced = isSnapshotForced;
        Naming.Version made = new Naming.Version(loaded + 1, Optional.of(next.id()));
        try {
            if (next.writer() == null && !isChangelogLeftOut) {
                throw new IllegalStateException("version " + made.number() + " was loaded to be read, and is written");
            }
            long begin = System.currentTimeMillis();
            database().flush();
            commits.set(Name.FLUSH_MILLISECONDS, System.currentTimeMillis() - begin);
            if (isForced || made.number() - lastSnapshot >= plan.retention().deltas()) {
                copy = snapshot(made);
            }
            begin = System.currentTimeMillis();
            commits.set(Name.FORCED_SNAPSHOTS, isForced ? 1 : 0);
            if (isForced) {
                uploads.upload(copy);
            }
            commitChangelog();
            commits.set(Name.SYNC_MILLISECONDS, System.currentTimeMillis() - begin);
            if (isForced) {
                copy.remove();
                isSnapshotForced = false;
            } else if (copy != null) {
                uploads.await(copy);
            }
            copy = null;
        } catch (Throwable error) {
            giveUp();
            if (copy != null) {
                copy.remove();
            }
            throw error;
        }
        return committed(made, isForced);
    }

    private void commitChangelog() {
        long begin = System.currentTimeMillis();
        if (isChangelogLeftOut && !plan.shape().hasIds()) {
            // It takes the place of one that an earlier history has left.
            next.open(loaded, attempt, Attempt.Contents.NONE);
        }
        if (next.writer() != null) {
            next.commit();
        }
        commits.set(Name.CHANGELOG_MILLISECONDS, System.currentTimeMillis() - begin);
    }

    private Committed committed(Naming.Version made, boolean isForced) {
        Optional<String> id = plan.shape().hasIds() ? made.id() : Optional.empty();
        Committed committed = new Committed(made.number(), id, loadedId);
        id.ifPresent(known -> lineage.append(new LineageItem(made.number(), known)));
        if (isForced) {
            lineage.truncate(made);
        }
        loaded = made.number();
        isNothing = false;
        loadedId = id;
        attempt = next.id();
        isConfirmed = false;
        givenUp = 0;
        versionMax = Math.max(versionMax, loaded);
        return committed;
    }

    private LocalSnapshot snapshot(Naming.Version version) {
        long begin = System.currentTimeMillis();
        LocalSnapshot copy = local.snapshot(version);
        lastSnapshot = version.number();
        commits.set(Name.CHECKPOINT_MILLISECONDS, System.currentTimeMillis() - begin);
        return copy;
    }

    /** Forgets what is loaded: after an error, or as the task gives up. */
    void giveUp() {
        givenUp += 1;
        loaded = NOTHING;
        loadedId = Optional.empty();
        isChangelogLeftOut = false;
        lineage.clear();
        next.drop();
    }

    /** No task has the store any more. What was given up is closed; its files stay, for the next one. */
    void endTask() {
        if (loaded == NOTHING) {
            local.close();
        } else {
            isConfirmed = false;
            database().forgetReads();
        }
    }

    /** Uploads the newest snapshot that waits, and deletes versions that are too old. */
    void maintain() throws IOException {
        upload();
        clean();
    }

    /** Uploads the newest snapshot that waits. */
    void upload() throws IOException {
        uploads.uploadNewest();
    }

    /** Deletes versions that are too old. */
    void clean() throws IOException {
        uploads.clean(versionMax);
    }

    /** The numbers of the last commit, and of the loads before it. */
    Metrics.Told told(Metrics operations) {
        Metrics.Told told = Metrics.Told.of(database(), uploads, List.of(loads, commits, operations));
        loads.clear();
        return told;
    }

    /** Closes all, and removes what is on this executor. */
    void close() {
        giveUp();
        uploads.clear();
        try {
            local.close();
        } catch (ForebayException error) {
            LOG.warn("The local database of the state in {} did not close as it should", plan.naming().root(), error);
        }
        Directories.remove(plan.local());
        plan.remote().close();
    }
}
