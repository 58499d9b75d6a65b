package dev.forebay.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Directories of this executor, which nobody else looks into. */
final class Directories {
    private static final Logger LOG = LoggerFactory.getLogger(Directories.class);

    private Directories() {}

    /** Removes it with all that is in it. What stays is told, and harms nothing. */
    static void remove(Path directory) {
        if (!Files.exists(directory)) {
            return;
        }
        try (Stream<Path> walk = Files.walk(directory)) {
            List<Path> deepestFirst = walk.sorted(Comparator.reverseOrder()).toList();
            for (Path path : deepestFirst) {
                Files.deleteIfExists(path);
            }
        } catch (IOException | UncheckedIOException error) {
            LOG.warn("The local directory {} could not be removed", directory, error);
        }
    }
}
