package dev.forebay;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * What a checkpoint is made of.
 *
 * @param lastSequence the number of the last record that is in it
 * @param files its files
 */
public record Checkpoint(long lastSequence, List<CheckpointFile> files) {
    /**
     * A file of a checkpoint. Where two checkpoints of a database have files of equal name, length and digest, those have
     * the same bytes: who copies checkpoints elsewhere copies such a file once.
     *
     * @param name its name in the checkpoint's directory
     * @param bytes its length
     * @param digest none for files that are made for each checkpoint, and for value files: copy these each time
     */
    public record CheckpointFile(String name, long bytes, OptionalLong digest) {}

    static Checkpoint of(Items items) {
        long lastSequence = Long.parseLong(items.text());
        List<CheckpointFile> files = new ArrayList<>();
        while (items.hasNext()) {
            String name = items.text();
            long bytes = Long.parseLong(items.text());
            String digest = items.text();
            OptionalLong known = digest == null ? OptionalLong.empty() : OptionalLong.of(Long.parseLong(digest));
            files.add(new CheckpointFile(name, bytes, known));
        }
        return new Checkpoint(lastSequence, List.copyOf(files));
    }
}
