"""A dictionary of objects in a database of its own."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any, Literal, Self

from forebay._errors import Invalid
from forebay._forebay import OrderedTable, open

if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType

Key = str | int | bytes

_BYTES, _INT, _STR = b"\x10", b"\x20", b"\x30"
_MIDDLE = 0x80
_INT_BYTES_MAX = 120


def encode(key: Key) -> bytes:
    """The bytes of a key: bytes before whole numbers before texts, each kind in its own order.

    Raises TypeError for another type, OverflowError for a number of more than 120 bytes.
    """
    if isinstance(key, str):
        return _STR + key.encode()
    if isinstance(key, bytes):
        return _BYTES + key
    if isinstance(key, int):
        size = (abs(key).bit_length() + 7) // 8
        if size > _INT_BYTES_MAX:
            raise OverflowError(f"a key of {size} bytes; a whole number may have {_INT_BYTES_MAX}")
        # The complement keeps the order of numbers below zero, of which longer ones come first.
        number, head = (key, _MIDDLE + size) if key >= 0 else ((1 << (8 * size)) + key - 1, _MIDDLE - size)
        return _INT + bytes([head]) + number.to_bytes(size, "big")
    raise TypeError(f"a key of type {type(key).__name__}; give str, int or bytes")


def decode(stored: bytes) -> Key:
    """The key of bytes that ``encode`` gave. Raises Invalid for others."""
    kind, rest = stored[:1], stored[1:]
    if kind == _STR:
        return rest.decode()
    if kind == _BYTES:
        return rest
    if kind == _INT and rest:
        size = abs(rest[0] - _MIDDLE)
        number = int.from_bytes(rest[1:], "big")
        return number if rest[0] >= _MIDDLE else number + 1 - (1 << (8 * size))
    raise Invalid(f"key {stored!r} is of another kind of table; a Shelf reads those of shelves alone")


def _dumps_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _dumps_pickle(value: Any) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def _as_bytes(value: Any) -> bytes:
    return bytes(memoryview(value))


_CODECS: dict[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "pickle": (_dumps_pickle, pickle.loads),
    "json": (_dumps_json, json.loads),
    "bytes": (_as_bytes, bytes),
}


class _Values(ValuesView[Any]):
    _mapping: Shelf

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping.range())


class _Items(ItemsView[Key, Any]):
    _mapping: Shelf

    def __iter__(self) -> Iterator[tuple[Key, Any]]:
        return self._mapping.range()


class Shelf(MutableMapping[Key, Any]):
    """A dictionary of objects, in a database of its own: what ``shelve``, ``dbm`` and rocksdict's ``Rdict`` are used for.

    Keys are texts, whole numbers and bytes, all of which may stand beside each other; loops are in the order bytes, numbers,
    texts, each kind in its own. Values are whatever ``values`` says: ``"pickle"``, ``"json"`` or ``"bytes"``; it is kept with
    the database. Unpickling runs what the bytes say: open no shelf of pickles of people whom you would not let run programs.

    ``path`` is a directory; options are those of ``forebay.open``, such as ``memory="64MB"``. Any number of threads may use
    it. A value that is taken out is a copy: put it back after a change. ``len`` walks all keys, if something has changed.

    Raises Invalid where ``values`` is not what the shelf was made with, and what ``forebay.open`` raises.

    >>> with fb.Shelf("settings", values="json") as shelf:
    ...     shelf["theme"] = {"dark": True}
    ...     shelf.update({1: "one", 2: "two"})
    """

    def __init__(
        self, path: str | PathLike[str], *, values: Literal["pickle", "json", "bytes"] | None = None, **options: Any
    ) -> None:
        if values is not None and values not in _CODECS:
            raise Invalid(f'values is {values!r}; give "pickle", "json" or "bytes"')
        self._db = open(path, **options)
        try:
            kept = [name for name in self._db.tables() if name in _CODECS]
            if values is not None and kept and kept != [values]:
                raise Invalid(f"the shelf {path} has values of {kept[0]}; leave values out")
            name = kept[0] if kept else values or "pickle"
            self._table: OrderedTable = self._db.ordered_table(name)
        except BaseException:
            self._db.close()
            raise
        self._dumps, self._loads = _CODECS[name]

    def __getitem__(self, key: Key) -> Any:
        found = self._table.get(encode(key))
        if found is None:
            raise KeyError(key)
        return self._loads(found)

    def __setitem__(self, key: Key, value: Any) -> None:
        self._table[encode(key)] = self._dumps(value)

    def __delitem__(self, key: Key) -> None:
        try:
            del self._table[encode(key)]
        except KeyError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str | int | bytes) and encode(key) in self._table

    def __iter__(self) -> Iterator[Key]:
        return (decode(key) for key in self._table)

    def __reversed__(self) -> Iterator[Key]:
        return (decode(key) for key in self._table.keys(reverse=True))

    def __len__(self) -> int:
        return self._table.count()

    def __bool__(self) -> bool:
        return bool(self._table)

    def __repr__(self) -> str:
        return f"<forebay.Shelf of {self._db!r}>"

    def values(self) -> ValuesView[Any]:
        """The values, in the order of the keys."""
        return _Values(self)

    def items(self) -> ItemsView[Key, Any]:
        """Keys and values, in the order of the keys."""
        return _Items(self)

    def range(
        self, start: Key | None = None, stop: Key | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[Key, Any]]:
        """The entries from ``start`` up to ``stop``, which is not among them, as they are now."""
        edges = [None if key is None else encode(key) for key in (start, stop)]
        entries = self._table.range(edges[0], edges[1], reverse=reverse)
        return ((decode(key), self._loads(value)) for key, value in entries)

    def update(self, other: Any = (), /, **more: Any) -> None:
        """Sets what a mapping or pairs have, in parts of about 1 MiB, each of which is whole or not at all."""
        pairs: Iterable[tuple[Key, Any]] = other.items() if isinstance(other, Mapping) else other
        self._table.update((encode(key), self._dumps(value)) for key, value in pairs)
        if more:
            self.update(more)

    def popitem(self) -> tuple[Key, Any]:
        """Removes the entry of the highest key, and returns it. Raises KeyError where there is none."""
        key, value = self._table.popitem()
        return decode(key), self._loads(value)

    def clear(self) -> None:
        """Removes all entries, which costs one record."""
        self._table.clear()

    def sync(self) -> None:
        """Makes everything so far survive a power loss."""
        self._db.sync()

    def close(self) -> None:
        """Makes everything durable and closes. Closing again does nothing."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
