package dev.forebay.spark;

import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.spark.sql.execution.streaming.state.LineageItem;

/** The changelog of the version that comes next, from when a task begins with it until it is committed or given up. */
final class NextChangelog {
    private final Plan plan;
    private final Lineage lineage;
    private String id = Attempt.UNKNOWN;
    private RemoteFiles.ChangelogWriter writer;

    NextChangelog(Plan plan, Lineage lineage) {
        this.plan = plan;
        this.lineage = lineage;
    }

    /** Another attempt begins: its version has a name of its own. */
    void draw() {
        id = UUID.randomUUID().toString();
    }

    /** What the version is called. */
    String id() {
        return id;
    }

    /** Where changes are noted, or null where a version is only read. */
    RemoteFiles.ChangelogWriter writer() {
        return writer;
    }

    /** Begins it, on a version that an attempt has made. */
    void open(long before, String attempt, Attempt.Contents contents) {
        plan.remote().makeDirectories(plan.naming().root());
        boolean hasIds = plan.shape().hasIds();
        Naming.Version next = new Naming.Version(before + 1, hasIds ? Optional.of(id) : Optional.empty());
        Optional<List<LineageItem>> items = hasIds ? Optional.of(lineage.items()) : Optional.empty();
        writer = plan.remote().changelogWriter(plan.naming().changelog(next), plan.shape().hasFamilies(), items);
        if (!hasIds) {
            writer.delete(new Attempt(id, attempt, contents).key());
        }
    }

    void commit() {
        writer.commit();
        writer = null;
    }

    void drop() {
        if (writer != null) {
            writer.abort();
            writer = null;
        }
    }
}
