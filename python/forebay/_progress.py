"""Bars for long calls: ``with forebay.progress(): ...``."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from types import TracebackType
from typing import Any, Protocol, Self

from forebay._forebay import _running
from forebay._shown import size


class _Bar(Protocol):
    def show(self, done: int, all: int) -> None: ...
    def close(self) -> None: ...


class _Line:
    """A line of text that is written anew, where it is seen."""

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit, self._width = what, unit, 0

    def show(self, done: int, all: int) -> None:
        number = size(done) if self._unit == "B" else f"{done:,} {self._unit}s"
        share = f" ({100 * done // all} %)" if all else ""
        text = f"{self._what}: {number}{share}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()


class _Tqdm:
    """A bar of tqdm's."""

    def __init__(self, made: Any, what: str, unit: str, done: int) -> None:
        divisor = 1024 if unit == "B" else 1000
        # The rate is that from now on: it was begun before.
        self._bar = made(desc=what, unit=unit, unit_scale=True, unit_divisor=divisor, initial=done)

    def show(self, done: int, all: int) -> None:
        self._bar.total = all or None
        self._bar.n = done
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


def _tqdm() -> Any:
    """tqdm's bar for where this runs, or None where tqdm is not installed."""
    try:
        with warnings.catch_warnings():
            # Without ipywidgets it warns, and draws with characters.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


class progress:
    """Shows how far long calls are, of all threads, while it is entered.

    These are ``put_many``, ``put_arrow``, ``update`` of tables and aggregators, ``commit`` and ``merge`` of aggregators,
    ``get_many`` of theirs, ``verify``, ``compact``, ``rescue``, and backups, of which it only shows that they go on. Calls
    that take less than ``every`` seconds show nothing, and a bar stays where the last look saw it: that a call is over is no
    sign that it did all.

    Bars are tqdm's where that is installed, in notebooks those of ipywidgets where that is; else there is a line of text on
    the standard error, if a terminal or a notebook shows it. Nothing of this runs amid a call: a thread looks every
    ``every`` seconds.

    >>> with fb.progress():
    ...     table.put_many(keys, values)
    """

    def __init__(self, *, every: float = 0.1) -> None:
        if not every > 0:
            raise ValueError(f"every is {every} seconds; give a time above 0")
        self._every = every
        self._over = threading.Event()
        self._process = 0
        self._thread: threading.Thread | None = None
        self._bars: dict[int, _Bar] = {}
        self._tqdm: Any = None

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("this progress was entered before; make another one")
        self._tqdm = _tqdm()
        # In the child of a fork there is no such thread, and locks of tqdm's may be held for ever.
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._work, name="forebay.progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None and self._process == os.getpid():
            self._over.set()
            self._thread.join()

    def _bar(self, what: str, unit: str, done: int) -> _Bar | None:
        if self._tqdm is not None:
            return _Tqdm(self._tqdm, what, unit, done)
        is_seen = sys.stderr is not None and (sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel"))
        return _Line(what, unit) if is_seen else None

    def _work(self) -> None:
        while not self._over.wait(self._every):
            self._look()
        for bar in self._bars.values():
            bar.close()

    def _look(self) -> None:
        running = _running()
        for number in self._bars.keys() - {call[0] for call in running}:
            self._bars.pop(number).close()
        for number, what, unit, done, all in running:
            bar = self._bars.get(number) or self._bar(what, unit, done)
            if bar is not None:
                self._bars[number] = bar
                bar.show(done, all)
