package dev.forebay;

/**
 * Why a call failed. The text names the file, the offset, the key or the option, and says what to do. Each subclass tells
 * the caller what can be done.
 */
public class ForebayException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Made by the native half, too. */
    ForebayException(String text) {
        super(text);
    }

    /** There is no database, or no table, of this name. */
    public static final class NotFound extends ForebayException {
        private static final long serialVersionUID = 1;

        NotFound(String text) {
            super(text);
        }
    }

    /** The database is open elsewhere, or here. */
    public static final class Busy extends ForebayException {
        private static final long serialVersionUID = 1;

        Busy(String text) {
            super(text);
        }
    }

    /** Stored bytes are not what was written. Other data stay readable. */
    public static final class Corruption extends ForebayException {
        private static final long serialVersionUID = 1;

        Corruption(String text) {
            super(text);
        }
    }

    /** What was read was changed since by somebody else; nothing was written. */
    public static final class Conflict extends ForebayException {
        private static final long serialVersionUID = 1;

        Conflict(String text) {
            super(text);
        }
    }

    /** The changes that were asked for are no more kept: copy what there is, and begin from there. */
    public static final class ChangesGone extends ForebayException {
        private static final long serialVersionUID = 1;

        ChangesGone(String text) {
            super(text);
        }
    }

    /** The disk is full, or a table may take no more of it. */
    public static final class NoSpace extends ForebayException {
        private static final long serialVersionUID = 1;

        NoSpace(String text) {
            super(text);
        }
    }

    /** The call or an option is wrong. */
    public static final class InvalidArgument extends ForebayException {
        private static final long serialVersionUID = 1;

        InvalidArgument(String text) {
            super(text);
        }
    }

    /** What was used is closed. */
    public static final class Closed extends ForebayException {
        private static final long serialVersionUID = 1;

        Closed(String text) {
            super(text);
        }
    }

    /** The operating system refused a file operation. */
    public static final class Io extends ForebayException {
        private static final long serialVersionUID = 1;

        Io(String text) {
            super(text);
        }
    }

    /** The records of a key merge to a value that is longer than any may be. */
    public static final class TooLong extends ForebayException {
        private static final long serialVersionUID = 1;

        TooLong(String text) {
            super(text);
        }
    }

    /** The database was made by a newer version. */
    public static final class NewerFormat extends ForebayException {
        private static final long serialVersionUID = 1;

        NewerFormat(String text) {
            super(text);
        }
    }

    /** An earlier failure left the log's tail unknown; nothing more is written. Open the database again. */
    public static final class Poisoned extends ForebayException {
        private static final long serialVersionUID = 1;

        Poisoned(String text) {
            super(text);
        }
    }

    /** A fault of Forebay itself. */
    public static final class Internal extends ForebayException {
        private static final long serialVersionUID = 1;

        Internal(String text) {
            super(text);
        }
    }

    /** Something else. */
    public static final class Other extends ForebayException {
        private static final long serialVersionUID = 1;

        Other(String text) {
            super(text);
        }
    }
}
