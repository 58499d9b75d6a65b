package dev.forebay.spark;

/** Throws what Spark makes. Its exceptions are checked ones for Java, and its own callers catch them as they are. */
final class Raise {
    private Raise() {}

    /** Throws it; the return type is for {@code throw Raise.it(error)}, so that the compiler sees the end of a branch. */
    static RuntimeException it(Throwable error) {
        return Raise.<RuntimeException>sneak(error);
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E sneak(Throwable error) throws E {
        throw (E) error;
    }
}
