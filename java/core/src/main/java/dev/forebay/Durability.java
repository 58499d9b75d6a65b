package dev.forebay;

/** What a write survives. */
public enum Durability {
    /** Nothing but the database's own close: the fastest, and for databases without a log. */
    MEMORY,
    /** The end of the process, not a power loss. The usual one. */
    OS,
    /** A power loss, too. */
    DISK,
}
