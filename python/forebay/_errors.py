"""What calls raise. Each class says what is to be done."""

from __future__ import annotations


class Error(Exception):
    """Why a call failed. Its text names the file, the offset, the key or the option."""

    path: str | None = None
    """The file or directory that it is about, if it is about one."""


class IoError(Error, OSError):
    """The operating system refused a file operation on ``path``. Try again once the cause is gone."""


class NoSpace(IoError):
    """The disk is full, or a table may take no more of it. Let go of snapshots and scans, and try again."""


class Corruption(Error):
    """The bytes of ``path`` at ``offset`` are not what was written. Other data stay readable."""

    offset: int | None = None
    """Where in the file, in bytes."""


class Invalid(Error, ValueError):
    """The call or an option is wrong. Correct the call."""


class TooLong(Error, ValueError):
    """What a key's records come to is longer than any value may be, or than a column of Arrow takes."""


class NotFound(Error, LookupError):
    """There is no database, table, savepoint or aggregator of this name."""


class Busy(Error, RuntimeError):
    """The database is open elsewhere, or here. ``path`` is the lock's file."""

    process: int | None = None
    """The process that has it open to write, if it tells."""


class Conflict(Error, RuntimeError):
    """What a transaction has read was changed by somebody else, so nothing of it was written. Begin it anew."""


class ChangesGone(Error, RuntimeError):
    """The log does not go back that far. Copy the database anew, and follow its changes from there."""

    since: int | None = None
    """The number that changes were asked for after."""
    oldest: int | None = None
    """The number of the oldest record that the log still has."""
    rolled_back: int | None = None
    """The number of the last rollback, where that is the reason."""


class NewerFormat(Error, RuntimeError):
    """The database was made by a newer version of Forebay."""


class Poisoned(Error, RuntimeError):
    """An earlier failure left the log's tail unknown, and nothing more is written. Open the database anew."""


class InternalError(Error, RuntimeError):
    """Forebay contradicts itself. Report it, with this text."""


class Closed(Error, ValueError):
    """The database, snapshot or transaction was closed before."""


class Forked(Error, RuntimeError):
    """This was opened before a fork and is the parent process's. Open it anew in this one."""
