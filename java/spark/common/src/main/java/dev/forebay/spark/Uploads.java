package dev.forebay.spark;

import java.io.IOException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * Snapshots of one store on their way to where checkpoints are, and versions that go from there. A task and maintenance
 * use it at once: one uploads or deletes at a time.
 */
final class Uploads {
    private final Snapshots snapshots;
    private final Cleaner cleaner;
    private final Plan.Retention retention;
    private final Consumer<Naming.Version> uploaded;
    private final ConcurrentLinkedQueue<LocalSnapshot> waiting = new ConcurrentLinkedQueue<>();
    private volatile Snapshots.Upload last = Snapshots.Upload.NONE;
    private volatile long versionMax = -1;

    Uploads(Snapshots snapshots, Cleaner cleaner, Plan.Retention retention, Consumer<Naming.Version> uploaded) {
        this.snapshots = snapshots;
        this.cleaner = cleaner;
        this.retention = retention;
        this.uploaded = uploaded;
    }

    /** What the last one took. */
    Snapshots.Upload last() {
        return last;
    }

    /** The newest version of which there was a snapshot, or -1. */
    long versionMax() {
        return versionMax;
    }

    /** Uploads it at once. None that is older is needed then. */
    synchronized void upload(LocalSnapshot local) throws IOException {
        discard(older -> older.version().number() < local.version().number());
        last = snapshots.upload(local);
        versionMax = Math.max(versionMax, local.version().number());
        uploaded.accept(local.version());
    }

    /** Uploads it with the next maintenance, unless there is a newer one then: older ones are never needed. */
    void await(LocalSnapshot local) {
        for (LocalSnapshot older = waiting.poll(); older != null; older = waiting.poll()) {
            older.remove();
        }
        waiting.add(local);
    }

    /**
     * A history is given up: nothing behind a version is uploaded any more, but for what is under way. No changelog of the
     * next history says that it is of that.
     */
    void giveUp(long version) {
        discard(local -> local.version().number() > version);
    }

    private void discard(Predicate<LocalSnapshot> isUnwanted) {
        for (LocalSnapshot local : waiting) {
            if (isUnwanted.test(local) && waiting.remove(local)) {
                local.remove();
            }
        }
    }

    /** Uploads the snapshot that waits. */
    synchronized void uploadNewest() throws IOException {
        LocalSnapshot newest = waiting.poll();
        if (newest != null) {
            boolean isDone = false;
            try {
                upload(newest);
                isDone = true;
            } finally {
                if (isDone || !waiting.isEmpty()) {
                    newest.remove();
                } else {
                    waiting.add(newest);
                }
            }
        }
    }

    /** Deletes versions that are too old. */
    synchronized void clean(long versionMax) throws IOException {
        cleaner.clean(versionMax, retention.versions(), retention.deletedMax(), retention.deletedMin());
    }

    /** Once it returns nothing is under way, and nothing waits. */
    synchronized void clear() {
        waiting.clear();
    }
}
