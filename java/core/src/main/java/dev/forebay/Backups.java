package dev.forebay;

import java.lang.ref.Reference;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A directory of backups that share what they have in common. */
public final class Backups extends Native implements AutoCloseable {
    /**
     * A backup.
     *
     * @param number its number; later ones have greater numbers
     * @param takenAtMilliseconds when it was taken, since 1970
     * @param lastSequence the number of the last record in it
     * @param bytes of its files, also of those that others share
     */
    public record Backup(long number, long takenAtMilliseconds, long lastSequence, long bytes) {}

    /** Opens a directory of backups, or makes it. */
    public Backups(Path path) {
        super(openBackups(Items.bytes(path.toString())));
    }

    /** Takes a backup, and returns its number. */
    public long take(Database database) {
        try {
            return takeBackup(number, database.number);
        } finally {
            Reference.reachabilityFence(this);
            Reference.reachabilityFence(database);
        }
    }

    /** The backups, oldest first. */
    public List<Backup> list() {
        try {
            Items items = new Items(listBackups(number));
            List<Backup> backups = new ArrayList<>();
            while (items.hasNext()) {
                backups.add(new Backup(number(items), number(items), number(items), number(items)));
            }
            return List.copyOf(backups);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private static long number(Items items) {
        return Long.parseLong(items.text());
    }

    /** Makes a database of a backup, in a new directory. */
    public void restore(long backup, Path target) {
        try {
            restore(number, backup, Items.bytes(target.toString()));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Reads every byte of a backup. Returns what is wrong. */
    public List<String> verify(long backup) {
        try {
            return new Items(verifyBackup(number, backup)).texts();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Removes all but the newest backups, at least one. */
    public void keep(int newest) {
        try {
            keepBackups(number, newest);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void close() {
        letGo();
    }
}
