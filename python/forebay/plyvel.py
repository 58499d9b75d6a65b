"""plyvel's calls, on a database of Forebay's: a program written for plyvel runs with ``import forebay.plyvel as plyvel``.

What it opens are directories of Forebay's, not LevelDB's: the table ``leveldb`` in key order, which is also that of the face
for programs in C. So ``DB.forebay`` has everything else of the engine, and several programs in turn may use one database.

What is otherwise than in plyvel: comparators of one's own are refused, as keys are in the order of their bytes; an open
database holds a lock of its directory as LevelDB's does; ``memory`` is one limit for everything; block sizes, restart
intervals and bits of Bloom filters are taken and passed by; ``repair_db`` checks every byte and raises CorruptionError where
one is damaged, for which there is ``forebay.rescue``. Iterators of a database see it as it was when they began, and any number
of threads may use a database, also while one closes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator as _Iterator
from typing import TYPE_CHECKING, Any, Self

import forebay as _forebay
from forebay._errors import Corruption as CorruptionError
from forebay._errors import Error, Invalid
from forebay._errors import IoError as IOError
from forebay._forebay import OrderedTable

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

__all__ = [
    "DB",
    "CorruptionError",
    "Error",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "PrefixedDB",
    "RawIterator",
    "Snapshot",
    "WriteBatch",
    "destroy_db",
    "repair_db",
]

__leveldb_version__ = "1.23"
"""The LevelDB whose calls these are."""
__version__ = "1.5.1"
"""The plyvel whose calls these are."""

_TABLE = "leveldb"
# A write buffer is a quarter of Forebay's limit; merges and filters want some, too.
_BUFFERS_IN_LIMIT = 4
_MEMORY_MIN = 16 << 20
_WRITE_BUFFER, _CACHE = 4 << 20, 8 << 20
_OPEN_FILES_MIN = 16


class IteratorInvalidError(Error):
    """A RawIterator that stands on no entry was asked for one."""


def _as_bytes(given: Buffer, what: str) -> bytes:
    if type(given) is bytes:
        return given
    try:
        return bytes(memoryview(given))
    except TypeError:
        raise TypeError(f"{what} is a {type(given).__name__}; give bytes") from None


def _after(prefix: bytes) -> bytes | None:
    """The first key behind all that begin so; None where there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _number(value: int | None, name: str) -> int | None:
    if value is not None and not isinstance(value, int):
        raise TypeError(f"{name} is a {type(value).__name__}; give an integer")
    return value


def _no_contains(self: object, key: object) -> bool:
    raise TypeError("__contains__ is not supported; compare get() with None")


class _Closing:
    """What a ``with`` closes."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class DB(_Closing):
    """A database: see plyvel's documentation. ``name`` is a directory.

    ``memory`` is Forebay's limit for everything, in bytes or as ``"64MB"``; without it, it is made of ``write_buffer_size``
    and ``lru_cache_size`` if one of them is given, and 256 MiB otherwise.

    Raises Error where the database is missing (without ``create_if_missing``), there (with ``error_if_exists``) or open
    elsewhere; IOError, CorruptionError; TypeError and ValueError for wrong arguments.
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: str | None = "snappy",
        bloom_filter_bits: int = 0,
        comparator: Any = None,
        comparator_name: bytes | None = None,
        *,
        memory: int | str | None = None,
    ) -> None:
        self._name = os.fspath(name)
        if not isinstance(self._name, str):
            raise TypeError("name is bytes; give a text")
        for value, option in (
            (block_size, "block_size"),
            (block_restart_interval, "block_restart_interval"),
            (max_file_size, "max_file_size"),
            (bloom_filter_bits, "bloom_filter_bits"),
        ):
            _number(value, option)
        _refuse_comparator(comparator, comparator_name)
        if compression not in ("snappy", None, False):
            raise ValueError(f"compression is {compression!r}; give 'snappy' or None")
        options: dict[str, Any] = {}
        sizes = _number(write_buffer_size, "write_buffer_size"), _number(lru_cache_size, "lru_cache_size")
        if memory is not None:
            options["memory"] = memory
        elif sizes != (None, None):
            buffer, cache = (usual if size is None else size for size, usual in zip(sizes, (_WRITE_BUFFER, _CACHE), strict=True))
            options["memory"] = max(_BUFFERS_IN_LIMIT * buffer + cache, _MEMORY_MIN)
        if _number(max_open_files, "max_open_files") is not None:
            options["open_files_max"] = max(max_open_files or 0, _OPEN_FILES_MIN)
        self._db = _opened(self._name, create_if_missing, error_if_exists, options)
        try:
            self._table = _table(self._db, "lz4" if compression else "none")
        except BaseException:
            self._db.close()
            raise
        self._closed = False

    @property
    def name(self) -> str:
        """The directory."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._closed

    @property
    def forebay(self) -> _forebay.Database:
        """The database itself, with all that Forebay has besides."""
        return self._db

    def __repr__(self) -> str:
        return f"<forebay.plyvel.DB of {self._db!r}>"

    def _open(self) -> OrderedTable:
        if self._closed:
            raise RuntimeError("the database is closed")
        return self._table

    def close(self) -> None:
        """Closes it. All other calls of it, of its iterators and of its snapshots then raise RuntimeError."""
        self._closed = True
        self._db.close()

    def get(
        self, key: Buffer, default: Any = None, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> Any:
        """The value of a key, or ``default``. Checksums are always verified."""
        return self._open().get(key, default)

    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = None) -> None:
        """Sets a key. With ``sync`` it survives a power loss, else the end of the process."""
        table = self._open()
        if not sync:
            table.put(key, value)
            return
        with self._db.batch(durability="disk") as batch:
            batch.put(table, key, value)

    def delete(self, key: Buffer, *, sync: bool | None = None) -> None:
        """Removes a key, present or not."""
        table = self._open()
        if not sync:
            table.delete(key)
            return
        with self._db.batch(durability="disk") as batch:
            batch.delete(table, key)

    def write_batch(self, *, transaction: bool = False, sync: bool | None = None) -> WriteBatch:
        """Writes that are made together: see WriteBatch."""
        self._open()
        return WriteBatch(self, b"", transaction, bool(sync))

    def snapshot(self) -> Snapshot:
        """The database as it is now."""
        return Snapshot(self, b"")

    def iterator(self, **options: Any) -> Iterator:
        """Keys and values in order: see Iterator for the arguments."""
        return Iterator(self, self._open_snapshot(), b"", **options)

    def raw_iterator(self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None) -> RawIterator:
        """LevelDB's own kind of iterator."""
        return RawIterator(self, self._open_snapshot())

    def _open_snapshot(self) -> _forebay.Snapshot:
        self._open()
        return self._db.snapshot()

    def __iter__(self) -> Iterator:
        return self.iterator()

    __contains__ = _no_contains

    def get_property(self, name: Buffer) -> bytes | None:
        """What LevelDB tells by this name: ``leveldb.stats`` and ``leveldb.sstables``, here in JSON,
        ``leveldb.approximate-memory-usage`` in bytes, ``leveldb.num-files-at-level<N>``; else None."""
        self._open()
        asked = _as_bytes(name, "name")
        level = asked.removeprefix(b"leveldb.num-files-at-level")
        if asked == b"leveldb.stats":
            return json.dumps(self._db.stats()).encode()
        if asked == b"leveldb.sstables":
            return json.dumps(self._db.describe()).encode()
        if asked == b"leveldb.approximate-memory-usage":
            return b"%d" % self._db.stats()["memory"]["total"]
        if level != asked and level.isdigit():
            levels = self._table.stats()["levels"]
            # Forebay counts from 1.
            return b"%d" % sum(here["lists"] for here in levels if here["level"] == int(level) + 1)
        return None

    def compact_range(self, *, start: Buffer | None = None, stop: Buffer | None = None) -> None:
        """Merges what there is of a range."""
        self._open().compact_range(start, stop)

    def approximate_size(self, start: Buffer, stop: Buffer) -> int:
        """About how many bytes the records of a range have, without reading."""
        return self._open().approximate(_as_bytes(start, "start"), _as_bytes(stop, "stop"))[1]

    def approximate_sizes(self, *ranges: tuple[Buffer, Buffer]) -> list[int]:
        """The same of several ranges."""
        return [self.approximate_size(start, stop) for start, stop in ranges]

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """The keys that begin so, without that."""
        return PrefixedDB(self, _as_bytes(prefix, "prefix"))


def _refuse_comparator(comparator: Any, name: bytes | None) -> None:
    if comparator is None and name is None:
        return
    if comparator is None or name is None:
        raise ValueError("comparator and comparator_name belong together")
    if not callable(comparator) or not isinstance(name, bytes):
        raise TypeError("comparator is a callable, and comparator_name is bytes")
    raise ValueError(f"comparator {name!r}: keys are in the order of their bytes; give no comparator")


def _opened(name: str, create: bool, refuse: bool, options: dict[str, Any]) -> _forebay.Database:
    try:
        db = _forebay.open(name, create_if_missing=False, **options)
    except _forebay.NotFound:
        if not create:
            raise
        return _forebay.open(name, **options)
    if refuse:
        db.close()
        raise Invalid(f"{name} exists, and error_if_exists is set")
    return db


def _table(db: _forebay.Database, codec: Any) -> OrderedTable:
    try:
        # Compression is what the table was made with.
        return db.ordered_table(_TABLE, existing=True)
    except _forebay.NotFound:
        return db.ordered_table(_TABLE, codec=codec)


class WriteBatch:
    """Writes that are made together, all or none: by ``write``, or at the end of a ``with``.

    A ``with`` that ends by an exception writes what there is by then, unless ``transaction`` is set.
    """

    def __init__(self, db: DB, prefix: bytes, transaction: bool, sync: bool) -> None:
        self._db, self._prefix, self._transaction, self._sync = db, prefix, transaction, sync
        # Of each key the last write counts; None deletes.
        self._writes: dict[bytes, bytes | None] = {}

    def put(self, key: Buffer, value: Buffer) -> None:
        """Sets a key."""
        self._db._open()
        self._writes[self._prefix + _as_bytes(key, "key")] = _as_bytes(value, "value")

    def delete(self, key: Buffer) -> None:
        """Removes a key."""
        self._db._open()
        self._writes[self._prefix + _as_bytes(key, "key")] = None

    def clear(self) -> None:
        """Forgets what was written so far."""
        self._writes.clear()

    def append(self, source: WriteBatch) -> None:
        """Adds the writes of another batch behind these."""
        self._writes.update(source._writes)

    def approximate_size(self) -> int:
        """About how many bytes the writes take."""
        return 12 + sum(len(key) + len(value or b"") + 2 for key, value in self._writes.items())

    def write(self) -> None:
        """Makes the writes. They stay in the batch: ``clear`` forgets them."""
        table = self._db._open()
        deleted = [key for key, value in self._writes.items() if value is None]
        put = self._writes if not deleted else {key: value for key, value in self._writes.items() if value is not None}
        batch = self._db.forebay.batch(durability="disk" if self._sync else None)
        batch.put_many(table, put.keys(), put.values())  # type: ignore[arg-type]
        batch.delete_many(table, deleted)
        batch.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._transaction:
            self.write()


class Snapshot(_Closing):
    """A database as it was."""

    def __init__(self, db: DB, prefix: bytes) -> None:
        self._db, self._prefix = db, prefix
        self._held: _forebay.Snapshot | None = db._open_snapshot()

    def _open(self) -> _forebay.Snapshot:
        self._db._open()
        if self._held is None:
            raise RuntimeError("the snapshot is closed")
        return self._held

    def get(
        self, key: Buffer, default: Any = None, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> Any:
        """The value that a key had, or ``default``."""
        held = self._open()
        return held.get(self._db._table, self._prefix + _as_bytes(key, "key"), default)

    def iterator(self, **options: Any) -> Iterator:
        """Keys and values in order: see Iterator for the arguments."""
        return Iterator(self._db, self._open(), self._prefix, **options)

    def raw_iterator(self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None) -> RawIterator:
        """LevelDB's own kind of iterator, of a snapshot of the whole database."""
        return RawIterator(self._db, self._open())

    def __iter__(self) -> Iterator:
        return self.iterator()

    __contains__ = _no_contains

    def close(self) -> None:
        """Lets go of what it holds."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    release = close


class Iterator(_Closing):
    """Keys and values from ``start`` up to ``stop``, or of a ``prefix``, in order or in reverse.

    It stands between two entries: ``next`` returns the one ahead, ``prev`` the one behind, and each steps over it. Ahead is
    what ``reverse`` makes of it, while ``seek`` and its kin go by the order of the keys. ``include_start`` and
    ``include_stop`` say whether the ends are among the entries; without ``include_value`` or ``include_key`` the other one
    comes alone, and without both None.
    """

    def __init__(
        self,
        db: DB,
        snapshot: _forebay.Snapshot,
        within: bytes,
        /,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> None:
        if prefix is not None and (start is not None or stop is not None):
            raise TypeError("give either a prefix, or start and stop")
        self._db, self._snapshot, self._within = db, snapshot, within
        # From this key on, and up to this one, which is not among them; None for no end.
        self._low: bytes = within
        self._high: bytes | None = _after(within)
        if prefix is not None:
            self._low = within + _as_bytes(prefix, "prefix")
            self._high = _after(self._low)
        if start is not None:
            self._low = within + _as_bytes(start, "start") + (b"" if include_start else b"\0")
        if stop is not None:
            self._high = within + _as_bytes(stop, "stop") + (b"\0" if include_stop else b"")
        self._is_reverse, self._keys, self._values = reverse, include_key, include_value
        self._is_closed = False
        # It stands before this key; None at the end.
        self._place: bytes | None = None
        self._walk: _Iterator[tuple[bytes, bytes]] | None = None
        self._goes_up = True
        self._stand(self._high if reverse else self._low)

    def _open(self) -> None:
        if self._is_closed or self._db._closed:
            raise RuntimeError("the iterator or its database is closed")

    def _stand(self, place: bytes | None) -> None:
        self._open()
        self._place, self._walk = place, None

    def _step(self, up: bool) -> Any:
        self._open()
        if self._walk is None or self._goes_up != up:
            self._walk, self._goes_up = self._begun(up), up
        entry = next(self._walk, None)
        if entry is None:
            self._stand(self._high if up else self._low)
            raise StopIteration
        key, value = entry
        self._place = key + b"\0" if up else key
        if not self._keys:
            return value if self._values else None
        key = key[len(self._within) :]
        return (key, value) if self._values else key

    def _begun(self, up: bool) -> _Iterator[tuple[bytes, bytes]]:
        """A walk this way from where it stands."""
        if up and self._place is None:
            return iter(())
        start, end = (self._place, self._high) if up else (self._low, self._place)
        return iter(self._snapshot.range(self._db._table, start, end, reverse=not up))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._step(not self._is_reverse)

    def prev(self) -> Any:
        """The entry behind; raises StopIteration where there is none."""
        return self._step(self._is_reverse)

    def seek(self, target: Buffer) -> None:
        """Stands before the first key that is not below ``target``, within the range."""
        place = max(self._within + _as_bytes(target, "target"), self._low)
        self._stand(place if self._high is None else min(place, self._high))

    def seek_to_start(self) -> None:
        """Stands before the lowest key of the range."""
        self._stand(self._low)

    def seek_to_stop(self) -> None:
        """Stands behind the highest key of the range."""
        self._stand(self._high)

    def close(self) -> None:
        """Lets go of what it holds. All other calls then raise RuntimeError."""
        self._is_closed, self._walk = True, None

    __contains__ = _no_contains


class RawIterator(_Closing):
    """LevelDB's own kind of iterator: it stands on an entry, or on none, and is then not valid."""

    def __init__(self, db: DB, snapshot: _forebay.Snapshot) -> None:
        self._db = db
        self._cursor: _forebay.Cursor | None = snapshot.cursor(db._table)

    def _open(self) -> _forebay.Cursor:
        if self._cursor is None or self._db._closed:
            raise RuntimeError("the iterator or its database is closed")
        return self._cursor

    def _here(self) -> tuple[bytes, bytes]:
        entry = self._open().entry
        if entry is None:
            raise IteratorInvalidError("the iterator stands on no entry")
        return entry

    def valid(self) -> bool:
        """Whether it stands on an entry."""
        return self._open().entry is not None

    def seek_to_first(self) -> None:
        """Goes to the lowest key."""
        self._open().seek_to_first()

    def seek_to_last(self) -> None:
        """Goes to the highest key."""
        self._open().seek_to_last()

    def seek(self, target: Buffer) -> None:
        """Goes to the first key that is not below ``target``."""
        self._open().seek(target)

    def next(self) -> None:
        """Goes one key up. Raises IteratorInvalidError where it stands on none."""
        self._here()
        self._open().next()

    def prev(self) -> None:
        """Goes one key down. Raises IteratorInvalidError where it stands on none."""
        self._here()
        self._open().prev()

    def key(self) -> bytes:
        """The key here. Raises IteratorInvalidError where there is none."""
        return self._here()[0]

    def value(self) -> bytes:
        """The value here. Raises IteratorInvalidError where there is none."""
        return self._here()[1]

    def item(self) -> tuple[bytes, bytes]:
        """Key and value here. Raises IteratorInvalidError where there are none."""
        return self._here()

    def close(self) -> None:
        """Lets go of what it holds."""
        self._cursor = None


class PrefixedDB:
    """The keys of a database that begin with ``prefix``, without that: ``DB.prefixed_db`` makes it."""

    def __init__(self, db: DB, prefix: bytes) -> None:
        self._db, self._prefix = db, prefix

    @property
    def db(self) -> DB:
        """The database."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """What keys begin with there."""
        return self._prefix

    def _key(self, key: Buffer) -> bytes:
        return self._prefix + _as_bytes(key, "key")

    def get(
        self, key: Buffer, default: Any = None, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> Any:
        """The value of a key, or ``default``."""
        return self._db.get(self._key(key), default)

    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = None) -> None:
        """Sets a key: see DB.put."""
        self._db.put(self._key(key), value, sync=sync)

    def delete(self, key: Buffer, *, sync: bool | None = None) -> None:
        """Removes a key, present or not."""
        self._db.delete(self._key(key), sync=sync)

    def write_batch(self, *, transaction: bool = False, sync: bool | None = None) -> WriteBatch:
        """Writes that are made together: see WriteBatch."""
        self._db._open()
        return WriteBatch(self._db, self._prefix, transaction, bool(sync))

    def snapshot(self) -> Snapshot:
        """These keys as they are now."""
        return Snapshot(self._db, self._prefix)

    def iterator(self, **options: Any) -> Iterator:
        """Keys and values in order: see Iterator for the arguments."""
        return Iterator(self._db, self._db._open_snapshot(), self._prefix, **options)

    def __iter__(self) -> Iterator:
        return self.iterator()

    __contains__ = _no_contains

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """Those of these keys that begin so, without that."""
        return PrefixedDB(self._db, self._key(prefix))

    def __repr__(self) -> str:
        return f"<forebay.plyvel.PrefixedDB {self._prefix!r} of {self._db!r}>"


def repair_db(name: str | os.PathLike[str], **options: Any) -> None:
    """Opens a database, which repairs what a crash has left, and reads every byte of it.

    Raises CorruptionError where one is damaged: ``forebay.rescue`` copies what can be read.
    """
    with DB(name, **(options | {"create_if_missing": False, "error_if_exists": False})) as db:
        problems = db.forebay.verify()["problems"]
    if problems:
        error = CorruptionError(f"{problems[0]}; forebay.rescue copies what can be read")
        error.path = os.fspath(name)
        raise error


def destroy_db(name: str | os.PathLike[str]) -> None:
    """Removes a database. Does nothing where there is none."""
    try:
        _forebay.destroy(name)
    except _forebay.NotFound:
        pass
