package dev.forebay.spark;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.errors.QueryExecutionErrors;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;

/**
 * Who may use a store's database: one task at a time, which has a stamp. A task that comes later waits for it, and what a
 * task does with a stamp that is not the one in use is refused. Maintenance needs none; closing waits as a task does.
 */
final class Stamps {
    private enum State {
        RELEASED,
        ACQUIRED,
        CLOSED
    }

    /** Whether a thread that has the stamp may have it again. */
    enum Reentry {
        /** The read store of a task becomes its write store: it brings its stamp along. */
        REFUSED,
        /** A task asks for a read store and for a write store, each on its own. */
        SAME_THREAD
    }

    private static final long NONE = -1;

    private final StateStoreId id;
    private final long timeoutMilliseconds;
    private final Reentry reentry;
    private State state = State.RELEASED;
    private long current = NONE;
    private long last;
    private Holder holder;
    private int holds;

    private record Holder(WeakReference<Thread> thread, TaskContext task) {
        static Holder here() {
            return new Holder(new WeakReference<>(Thread.currentThread()), TaskContext.get());
        }

        String stack() {
            Thread running = thread.get();
            return running == null
                    ? ""
                    : Arrays.stream(running.getStackTrace()).map(Object::toString).collect(Collectors.joining("\n"));
        }

        @Override
        public String toString() {
            Thread running = thread.get();
            String text = "[ThreadId: " + (running == null ? "ended" : running.getId());
            if (task != null) {
                text += ", task: partition " + task.partitionId() + "." + task.attemptNumber() + " in stage "
                        + task.stageId() + "." + task.stageAttemptNumber() + ", TID " + task.taskAttemptId();
            }
            return text + "]";
        }
    }

    Stamps(StateStoreId id, long timeoutMilliseconds, Reentry reentry) {
        this.id = id;
        this.timeoutMilliseconds = timeoutMilliseconds;
        this.reentry = reentry;
    }

    /** Waits until nobody has it, and returns a new stamp. */
    synchronized long acquire() {
        if (isHeldHere()) {
            holds += 1;
            return current;
        }
        await("load");
        if (state == State.CLOSED) {
            throw Minor.wrongTransition("CLOSED", "ACQUIRED", "load", id);
        }
        state = State.ACQUIRED;
        holder = Holder.here();
        holds = 1;
        last += 1;
        current = last;
        return current;
    }

    /** Throws unless this is the stamp in use. */
    synchronized void verify(long stamp) {
        if (stamp != current) {
            throw Minor.wrongStamp(stamp, current);
        }
    }

    /** Whether nobody had it with another stamp since: before Spark 4.1 what was committed is read until then. */
    synchronized boolean isLast(long stamp) {
        return reentry == Reentry.SAME_THREAD && state != State.CLOSED && stamp == last;
    }

    /** Whether one store has it, and not two of one thread. */
    synchronized boolean isHeldOnce() {
        return holds == 1;
    }

    /** Gives the stamp back, if it is the one in use. Who has it twice gives it back twice. */
    synchronized boolean release(long stamp) {
        if (stamp == NONE || stamp != current) {
            return false;
        }
        holds -= 1;
        if (holds > 0) {
            return true;
        }
        current = NONE;
        holder = null;
        state = State.RELEASED;
        notifyAll();
        return true;
    }

    /** Throws where the store is closed. */
    synchronized void verifyForMaintenance() {
        if (state == State.CLOSED) {
            throw Minor.wrongTransition("CLOSED", "CLOSED", "maintenance", id);
        }
    }

    /** Waits until nobody has it, and closes. Returns whether it was open. */
    synchronized boolean close() {
        if (state == State.CLOSED) {
            return false;
        }
        if (!isHeldHere()) {
            await("close");
        }
        boolean wasOpen = state != State.CLOSED;
        state = State.CLOSED;
        current = NONE;
        holder = null;
        notifyAll();
        return wasOpen;
    }

    /** Whether the thread that has it may have it again, and does so. */
    private boolean isHeldHere() {
        return reentry == Reentry.SAME_THREAD && state == State.ACQUIRED && holder.thread().get() == Thread.currentThread();
    }

    private void await(String operation) {
        long begin = System.nanoTime();
        long waited = 0;
        while (state == State.ACQUIRED && waited < timeoutMilliseconds) {
            try {
                wait(Math.max(1, Math.min(1000, timeoutMilliseconds - waited)));
            } catch (InterruptedException error) {
                throw Raise.it(error);
            }
            waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        }
        if (state == State.ACQUIRED) {
            String store = "StateStoreId(opId=" + id.operatorId() + ",partId=" + id.partitionId() + ",name=" + id.storeName()
                    + ")";
            throw Raise.it(QueryExecutionErrors.unreleasedThreadError(
                    store, operation, Holder.here().toString(), holder.toString(), waited, holder.stack()));
        }
    }
}
