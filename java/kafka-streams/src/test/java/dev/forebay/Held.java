package dev.forebay;

/** How many things of the native half somebody has: for tests of what holds some. */
public final class Held {
    private Held() {}

    public static long now() {
        return Native.held();
    }
}
