"""Forebay: an embedded store, and group-by, for data that arrive faster than they can be sorted.

>>> import forebay as fb
>>> with fb.open("users.db", memory="64MB") as db:
...     users = db.ordered_table("users")
...     users[b"ada"] = b"1815"
...     list(users.prefix(b"a"))
[(b'ada', b'1815')]

Keys and values are bytes. Columns are Arrow's, of any library: ``docs/guide/python.md`` has the whole.

After a fork handles of before raise :class:`Forked` in the child. None can be pickled: open the database where it is
needed, with ``read_only=True`` beside a process that writes. What is open when the interpreter ends is closed.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os

from forebay import functions as functions
from forebay._errors import (
    Busy,
    ChangesGone,
    Closed,
    Conflict,
    Corruption,
    Error,
    Forked,
    InternalError,
    Invalid,
    IoError,
    NewerFormat,
    NoSpace,
    NotFound,
    Poisoned,
    TooLong,
)
from forebay._forebay import (
    Aggregator,
    AggregatorSnapshot,
    Backups,
    Batch,
    Change,
    Changes,
    Column,
    Cursor,
    Database,
    OrderedTable,
    Pool,
    Rows,
    Scan,
    ScanIterator,
    Snapshot,
    StoredAggregator,
    Table,
    Transaction,
    __version__,
    _close_all,
    _forked,
    destroy,
    open,
    rescue,
)
from forebay.functions import *  # noqa: F403
from forebay.functions import __all__ as _functions

_atexit.register(_close_all)
_os.register_at_fork(after_in_child=_forked)

__all__ = [
    "Aggregator",
    "AggregatorSnapshot",
    "Backups",
    "Batch",
    "Busy",
    "Change",
    "Changes",
    "ChangesGone",
    "Closed",
    "Column",
    "Conflict",
    "Corruption",
    "Cursor",
    "Database",
    "Error",
    "Forked",
    "InternalError",
    "Invalid",
    "IoError",
    "NewerFormat",
    "NoSpace",
    "NotFound",
    "OrderedTable",
    "Poisoned",
    "Pool",
    "Rows",
    "Scan",
    "ScanIterator",
    "Snapshot",
    "StoredAggregator",
    "Table",
    "TooLong",
    "Transaction",
    "__version__",
    "destroy",
    "functions",
    "open",
    "rescue",
]
__all__ += _functions
