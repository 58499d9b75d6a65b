package dev.forebay;

/** Which way a scan goes. */
public enum Direction {
    /** From the first key on. */
    FORWARD,
    /** From the last key back. */
    BACKWARD,
}
