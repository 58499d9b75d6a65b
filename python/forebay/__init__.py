"""Forebay: an embedded store, and group-by, for data that arrive faster than they can be sorted.

>>> import forebay as fb
>>> with fb.open("users.db", memory="64MB") as db:
...     users = db.ordered_table("users")
...     users[b"ada"] = b"1815"
...     list(users.prefix(b"a"))
[(b'ada', b'1815')]

Keys and values are bytes. Columns are Arrow's, of any library: ``docs/guide/python.md`` has the whole. Beside it there are
``forebay.plyvel``, with plyvel's calls, ``forebay.polars``, which scans as lazy frames and needs Polars, and
``forebay.spark``, which groups data frames of PySpark's.

After a fork handles of before raise :class:`Forked` in the child. None can be pickled: open the database where it is
needed, with ``read_only=True`` beside a process that writes. What is open when the interpreter ends is closed.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys
from builtins import list as _list
from collections.abc import Callable as _Callable

from forebay import _attached
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
    BatchIterator,
    Change,
    Changes,
    Column,
    Cube,
    CubeSnapshot,
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
    Windows,
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


def _close_with_multiprocessing(close: _Callable[[], None]) -> None:
    """Children of multiprocessing may end without ``atexit``, but by finalizers of its own."""
    util = _sys.modules.get("multiprocessing.util")
    process = _sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, _close_behind_threads, args=(close,), exitpriority=0)


def _close_behind_threads(close: _Callable[[], None]) -> None:
    """Closes once the other threads are over, which multiprocessing waits for only behind its finalizers."""
    import threading

    closing = "forebay-close"

    def others() -> _list[threading.Thread]:
        apart = (threading.current_thread(), threading.main_thread())
        return [
            thread
            for thread in threading.enumerate()
            if not (thread.daemon or thread in apart or thread.name == closing)
        ]

    def wait_and_close() -> None:
        while waited_for := others():
            waited_for[0].join()
        close()

    if others():
        # They may wait for what comes behind the finalizers, as those of executors do; this thread is waited for with them.
        threading.Thread(target=wait_and_close, name=closing, daemon=False).start()
    else:
        close()


def _register() -> None:
    # A child that begins forgets the finalizers of before, and calls behind that what is registered for this moment.
    if (util := _sys.modules.get("multiprocessing.util")) is not None:
        util.register_after_fork(_close_all, _close_with_multiprocessing)


def _in_child() -> None:
    _forked()
    _register()


_register()
_close_with_multiprocessing(_close_all)
_os.register_at_fork(after_in_child=_in_child)

_attached.attach()

# These are imported when they are first asked for.
_LATER = {"Shelf": "_shelf", "Watch": "_watch", "progress": "_progress"}
TYPE_CHECKING = False
if TYPE_CHECKING:
    from forebay._progress import progress
    from forebay._shelf import Shelf
    from forebay._watch import Watch


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'forebay' has no attribute {name!r}")
    import importlib

    found = globals()[name] = getattr(importlib.import_module(f"forebay.{_LATER[name]}"), name)
    return found


def __dir__() -> _list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "Aggregator",
    "AggregatorSnapshot",
    "Backups",
    "Batch",
    "BatchIterator",
    "Busy",
    "Change",
    "Changes",
    "ChangesGone",
    "Closed",
    "Column",
    "Conflict",
    "Corruption",
    "Cube",
    "CubeSnapshot",
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
    "Shelf",
    "Snapshot",
    "StoredAggregator",
    "Table",
    "TooLong",
    "Transaction",
    "Watch",
    "Windows",
    "__version__",
    "destroy",
    "functions",
    "open",
    "progress",
    "rescue",
]
__all__ += _functions
