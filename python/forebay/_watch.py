"""What a database did over time: samples of its stats, which ``plot`` draws."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from forebay._errors import Error, Invalid
from forebay._forebay import Database

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_watches: weakref.WeakKeyDictionary[Database, Watch] = weakref.WeakKeyDictionary()


def sample_of(stats: dict[str, Any], seconds: float) -> dict[str, float]:
    """What is kept of ``Database.stats``. Units are the last words of the names."""
    written = stats["log_bytes"] + stats["manifest_bytes"] + stats["values"]["moved_bytes"]
    commit, get = stats["commit_latency_us"], stats["get_latency_us"]
    return {
        "seconds": seconds,
        "user_records": stats["user_records"],
        "user_bytes": stats["user_bytes"],
        "written_bytes": written + sum(stats["list_bytes_written"].values()),
        "gets": stats["gets"],
        "device_reads": stats["device_reads"],
        "stall_seconds": stats["stall_seconds"],
        "debt_bytes": stats["debt_bytes"],
        "disk_bytes": stats["disk_bytes"],
        "memory_bytes": stats["memory"]["total"],
        "space_amplification": stats["space_amplification"],
        "commit_p50_us": commit["p50"],
        "commit_p99_us": commit["p99"],
        "get_p50_us": get["p50"],
        "get_p99_us": get["p99"],
    }


class Watch:
    """Samples of a database's stats: one at the beginning, one every ``every`` seconds, one at ``stop``.

    ``samples`` is a list of dictionaries of numbers, for ``pandas.DataFrame``, ``polars.DataFrame`` and the like:

    - since the database was opened: ``user_records``, ``user_bytes``, ``written_bytes`` (to the device), ``gets``,
      ``device_reads`` (pages), ``stall_seconds`` (that writers waited, all together), and percentiles of latencies in
      microseconds: ``commit_p50_us``, ``commit_p99_us``, ``get_p50_us``, ``get_p99_us``;
    - at the moment: ``seconds`` since the first sample, ``debt_bytes`` of background work, ``disk_bytes``,
      ``memory_bytes``, ``space_amplification``.

    A sample costs some microseconds and no read of a device. The last ``keep`` of them are kept. A thread takes them until
    ``stop``, the end of a ``with``, or the database's close; it does not keep the database open.
    """

    def __init__(self, db: Database, *, every: float = 1.0, keep: int = 3600) -> None:
        if not every > 0:
            raise Invalid(f"every is {every} seconds; give a time above 0")
        if keep < 2:
            raise Invalid(f"keep is {keep} samples; give 2 or more")
        self._db = weakref.ref(db)
        self._every, self._begun = every, time.monotonic()
        self._samples: deque[dict[str, float]] = deque(maxlen=keep)
        self._over = threading.Event()
        # In the child of a fork there is no such thread.
        self._process = os.getpid()
        self._take()
        self._thread = threading.Thread(target=self._work, name="forebay.watch", daemon=True)
        self._thread.start()

    @property
    def samples(self) -> list[dict[str, float]]:
        """The samples so far, oldest first."""
        return list(self._samples)

    @property
    def is_running(self) -> bool:
        """Whether more samples are to come."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Takes a last sample, unless the database is closed, and ends. Stopping again does nothing."""
        if self._over.is_set() or self._process != os.getpid():
            return
        self._over.set()
        self._thread.join()
        try:
            self._take()
        except Error:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped"
        return f"<forebay.Watch: {len(self._samples)} samples, {state}>"

    def plot(self) -> Figure:
        """Amplification, waits of writers, rates and latency over time, as a ``matplotlib.figure.Figure``.

        Raises ImportError where matplotlib is not installed, Invalid where there are less than two samples.
        """
        try:
            from forebay._plot import drawn
        except ImportError as error:
            raise ImportError(f"a plot needs matplotlib: pip install matplotlib ({error})") from error
        samples = self.samples
        if len(samples) < 2:
            raise Invalid(f"there is {len(samples)} sample; wait for {self._every} seconds, or stop the watch first")
        return drawn(samples)

    def _take(self) -> bool:
        """Whether the database is still there."""
        db = self._db()
        if db is None:
            return False
        self._samples.append(sample_of(db.stats(), time.monotonic() - self._begun))
        return True

    def _work(self) -> None:
        while not self._over.wait(self._every):
            try:
                if not self._take():
                    return
            except Error:
                return


def watch(db: Database, *, every: float, keep: int) -> Watch:
    """Begins to watch, which `last` then finds."""
    begun = Watch(db, every=every, keep=keep)
    _watches[db] = begun
    return begun


def last(db: Database) -> Watch:
    """The last one of a database."""
    begun = _watches.get(db)
    if begun is None:
        raise Invalid("nothing was sampled; call watch() before what is to be seen, and plot() after it")
    return begun
