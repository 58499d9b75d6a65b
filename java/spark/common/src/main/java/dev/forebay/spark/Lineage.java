package dev.forebay.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.spark.sql.execution.streaming.state.LineageItem;

/**
 * Which commit stands behind which, in checkpoint format 2: from a snapshot, or from version 1, to what is loaded. A task
 * and maintenance use it.
 */
final class Lineage {
    private final List<LineageItem> items = new ArrayList<>();

    synchronized void clear() {
        items.clear();
    }

    synchronized void reset(List<LineageItem> lineage) {
        items.clear();
        items.addAll(lineage);
        items.sort(Comparator.comparingLong(LineageItem::version));
    }

    synchronized void append(LineageItem item) {
        items.add(item);
    }

    synchronized List<LineageItem> items() {
        return List.copyOf(items);
    }

    /** What stands before a snapshot is not needed any more, if the snapshot is of this history. */
    synchronized void truncate(Naming.Version snapshot) {
        boolean isHere = snapshot.id().isPresent()
                && items.contains(new LineageItem(snapshot.number(), snapshot.id().get()));
        if (isHere) {
            items.removeIf(item -> item.version() < snapshot.number());
        }
    }

    static Naming.Version version(LineageItem item) {
        return new Naming.Version(item.version(), Optional.of(item.checkpointUniqueId()));
    }

    static String text(List<LineageItem> items) {
        return items.stream().map(item -> item.version() + ":" + item.checkpointUniqueId()).collect(Collectors.joining(" "));
    }
}
