"""What the native classes have that needs no native code. The rest is imported when it is called, so that to import the
package stays cheap."""

from __future__ import annotations

from forebay._forebay import Aggregator, Database, OrderedTable, StoredAggregator, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from matplotlib.figure import Figure
    from typing_extensions import Buffer

    from forebay._watch import Watch

_native: dict[type, Callable[[Any], str]] = {kind: kind.__repr__ for kind in (Aggregator, StoredAggregator)}
"""What the native halves tell of themselves."""
_KEYS = 4096
"""So many keys are deleted at a time."""


def _text(self: Database | Table | Aggregator | StoredAggregator) -> str:
    """A line for people; also of what is closed."""
    from forebay import _shown

    return _shown.text(self, _native.get(type(self), object.__repr__))


def _html(self: Database | Table | Aggregator | StoredAggregator) -> str | None:
    """What notebooks show, tables with a picture of their trees; None of what is closed. Reads nothing from files."""
    from forebay import _shown

    return _shown.html(self)


def watch(self: Database, *, every: float = 1.0, keep: int = 3600) -> Watch:
    """Begins to take samples of ``stats``, one every ``every`` seconds, the last ``keep`` of which are kept: see Watch.

    Raises Closed, and Invalid for a time that is not above 0.
    """
    from forebay._watch import watch as begin

    return begin(self, every=every, keep=keep)


def plot(self: Database) -> Figure:
    """What the last ``watch`` of this database saw, as a ``matplotlib.figure.Figure``: see ``Watch.plot``.

    Raises Invalid where there was none, ImportError where matplotlib is not installed.
    """
    from forebay._watch import last

    return last(self).plot()


def setdefault(self: Table, key: Buffer, default: Buffer) -> bytes:
    """The value of a key, which is set to ``default`` first where it has none; at once, also beside other threads."""
    while True:
        found = self.get(key)
        if found is not None:
            return found
        if self.compare_and_swap(key, None, default):
            return bytes(default)


def popitem(self: Table) -> tuple[bytes, bytes]:
    """Removes an entry and returns it; of a table in key order that of the highest key. Raises KeyError where there is
    none."""
    while True:
        entry = self.last() if isinstance(self, OrderedTable) else next(iter(self.items()), None)
        if entry is None:
            raise KeyError("popitem(): the table is empty")
        if self.compare_and_swap(entry[0], entry[1], None):
            return entry


def clear(self: Table) -> None:
    """Removes all keys that there are. Of a table in key order it costs one record; else it walks the table."""
    if isinstance(self, OrderedTable):
        self.delete_range()
        return
    from itertools import islice

    keys = iter(self)
    while some := list(islice(keys, _KEYS)):
        self.delete_many(some)


def attach() -> None:
    """Gives the classes what is here; the stub has it, too."""
    from collections.abc import MutableMapping

    for shown in (Database, Table, Aggregator, StoredAggregator):
        setattr(shown, "__repr__", _text)
        setattr(shown, "_repr_html_", _html)
    for call in (watch, plot):
        setattr(Database, call.__name__, call)
    for change in (setdefault, popitem, clear):
        setattr(Table, change.__name__, change)
    MutableMapping.register(Table)
