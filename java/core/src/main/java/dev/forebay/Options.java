package dev.forebay;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Options of a database, by name and text: {@code set("memory", "512M")}, {@code set("log", "false")}. The guide's page
 * for Java lists them; {@code -} and {@code _} are the same. What is wrong is told when the database is opened.
 */
public final class Options {
    private final List<byte[]> texts = new ArrayList<>();
    private Pool pool;
    private String keyName;
    private byte[] key;

    /** The usual ones. */
    public Options() {}

    /** Sets an option; of several with one name the last counts. */
    public Options set(String name, String value) {
        texts.add(Items.bytes(Objects.requireNonNull(name, "name")));
        texts.add(Items.bytes(Objects.requireNonNull(value, "value")));
        return this;
    }

    /** The database has its memory and threads of this pool. It may be closed before the database is. */
    public Options pool(Pool pool) {
        this.pool = Objects.requireNonNull(pool, "pool");
        return this;
    }

    /**
     * The database is encrypted by this key of 32 bytes, under this name: a new one, or one that was made so. Another key
     * does not open it. The array is copied; keep neither longer than you need.
     */
    public Options key(String name, byte[] key) {
        this.keyName = Objects.requireNonNull(name, "name");
        this.key = key.clone();
        return this;
    }

    String keyName() {
        return keyName;
    }

    byte[] key() {
        return key;
    }

    Pool pool() {
        return pool;
    }

    byte[] items() {
        return Items.of(texts);
    }
}
