# The native half of `forebay`: its calls, their types, and what help() shows of them.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypedDict, TypeVar, Unpack, final, overload

from matplotlib.figure import Figure
from typing_extensions import Buffer, disjoint_base

from forebay._watch import Watch

_T = TypeVar("_T")
_Path = str | PathLike[str]
_Durability = Literal["memory", "os", "disk"]

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class _ArrowSchema(Protocol):
    def __arrow_c_schema__(self) -> object: ...

_Arrow = _ArrowStream | _ArrowArray
# A moment; without a zone in UTC, as a number in milliseconds since 1970.
_Moment = datetime | date | int

class _Function(Protocol):
    """What ``forebay.UserAggregate`` is."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def state(self) -> Any: ...
    @property
    def answer(self) -> Any: ...
    @property
    def columns(self) -> Sequence[str]: ...
    def update(self, values: Column, groups: Column, /) -> Any: ...
    def merge(self, states: Column, groups: Column, /) -> Any: ...
    def evaluate(self, states: Column, /) -> Any: ...

class _DatabaseOptions(TypedDict, total=False):
    memory: int | str
    write_buffer: int | str
    write_buffers: int
    background_threads: int
    background_rate: int | str
    durability: _Durability
    log: bool
    sync_interval: timedelta | str
    read_compaction_ratio: float
    keep_changes: int | str
    resident_percent: int
    open_files_max: int
    transaction_attempts: int
    transaction_reads: int | str
    create_if_missing: bool
    read_only: bool
    salvage: bool
    system_cache: bool
    memory_limit: int | str

class _TableOptions(TypedDict, total=False):
    layout: str
    existing: bool
    merge_rule: str
    ttl: timedelta | str
    time_to_live: timedelta | str
    prefix_filter: int | str
    values_apart: int | str
    codec: Literal["none", "lz4"]
    max_space_amplification: float
    reclaim_interval: timedelta | str
    filter_bits_per_key: int
    node_bytes: int | str
    fan_out: int
    fast_per_slow: int
    lists_max: int
    repeats_max: float

class _AggregatorOptions(TypedDict, total=False):
    layout: str
    existing: bool
    ttl: timedelta | str
    time_to_live: timedelta | str
    prefix_filter: int | str
    deletes: bool
    codec: Literal["none", "lz4"]
    max_space_amplification: float
    reclaim_interval: timedelta | str
    filter_bits_per_key: int
    node_bytes: int | str
    fan_out: int
    fast_per_slow: int
    lists_max: int
    repeats_max: float

__all__ = [
    "Aggregator",
    "AggregatorSnapshot",
    "Backups",
    "Batch",
    "BatchIterator",
    "Change",
    "Changes",
    "Column",
    "Cube",
    "CubeSnapshot",
    "Cursor",
    "Database",
    "OrderedTable",
    "Pool",
    "Rows",
    "Scan",
    "ScanIterator",
    "Snapshot",
    "StoredAggregator",
    "Table",
    "Transaction",
    "Windows",
    "Writes",
    "__version__",
    "_close_all",
    "_forked",
    "_running",
    "destroy",
    "open",
    "quoted",
    "rescue",
]
__version__: str

def open(path: _Path, *, pool: Pool | None = None, **options: Unpack[_DatabaseOptions]) -> Database:
    """Opens the database in a directory, or makes one there.

    ``memory`` is the limit for everything, in bytes or as ``"512MB"`` (units are powers of 1024): 256 MiB by default, 1 MiB
    at least. ``durability`` is that of writes that say none: ``"memory"``, ``"os"`` (the default: survives the process) or
    ``"disk"`` (survives a power loss). With ``read_only=True`` any number of processes read beside one that writes. Times
    are timedeltas, or texts such as ``"100ms"``. ``docs/guide/memory.md`` and ``docs/guide/durability.md`` have the others.

    Raises Busy where it is open elsewhere, NotFound where it is not there and may not be made, Corruption, NewerFormat,
    Invalid for an option that is none, IoError.
    """

def destroy(path: _Path) -> None:
    """Removes the database in a directory. Raises Busy where it is open, Invalid where the directory is no database."""

def rescue(source: _Path, target: _Path, **options: Unpack[_DatabaseOptions]) -> dict[str, Any]:
    """Copies all that can be read of a damaged database to a new one. Returns a report of what could not."""

def quoted(name: str) -> str:
    """The word that stands for a column's name in a function's text."""

def _close_all() -> None:
    """Closes what is open, before the interpreter goes."""

def _running() -> list[tuple[int, str, str, int, int]]:
    """The long calls that go on: number, name, unit, how many are done, and of how many, 0 where that is not known."""

def _forked() -> None:
    """Told in the child of a fork: nothing of the parent's is touched again."""

@final
class Pool:
    """One memory and a few threads for many databases of a process: give it to each ``open``."""

    def __new__(cls, memory: int | str, threads: int = 2) -> Self: ...
    def set_background_rate(self, bytes_a_second: int | str) -> None:
        """How many bytes a second background work of all databases goes through; 0 for no limit."""
    def stats(self) -> dict[str, Any]:
        """Who has how much of the memory, in bytes, and what the threads are at."""

@final
class Database:
    """An open database: tables, aggregators, and what is done with all of them at once.

    It may be used by any number of threads. As a context manager it is closed at the end; so it is when the interpreter
    ends. Tables and snapshots that are still held can be read after that, and all their other calls raise Closed or
    Invalid.
    """

    @property
    def path(self) -> Any:
        """The directory, as a pathlib.Path."""
    def close(self) -> None:
        """Makes everything durable and closes. Closing again does nothing. Waits for calls of other threads."""
    def __enter__(self) -> Database: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None: ...
    def table(self, name: str, **options: Unpack[_TableOptions]) -> Table:
        """Opens a table, or makes it: an OrderedTable where its layout keeps keys in order.

        ``layout`` is ``"wb-tree"`` (hash order, the default), ``"wb-tree:ordered"``, ``"leveling:t=10"`` and so on:
        ``docs/guide/layouts.md``. Options count when the table is made; others later raise Invalid, and ``alter`` changes
        them. ``merge_rule`` is ``"append:,"``, ``"append"``, ``"max"``, ``"min"`` or ``"add"``. ``existing=True`` raises
        NotFound instead of making it.
        """
    def ordered_table(self, name: str, **options: Unpack[_TableOptions]) -> OrderedTable:
        """The same of a table that keeps its keys in order; ``"wb-tree:ordered"`` by default."""
    def aggregator(
        self,
        name: str,
        *,
        key: str | Sequence[str] | None = None,
        aggs: Mapping[str, str | _Function] | None = None,
        schema: _ArrowSchema | _Arrow | None = None,
        **options: Unpack[_AggregatorOptions],
    ) -> StoredAggregator:
        """Opens groups that the database keeps, or makes them.

        ``key`` names the columns to group by, none for one group of all rows; ``aggs`` gives each answer a name and a
        function. Both are kept, and may be left out later; others then raise Invalid. The types of the key's columns are
        those of what is first added, or of ``schema``, which raises Invalid where others are kept. Until then reads
        raise Invalid; with ``schema`` there are no rows yet.
        """
    def windows(
        self,
        name: str,
        *,
        time: str | None = None,
        every: timedelta | str | None = None,
        retain: timedelta | str | None = None,
        key: str | Sequence[str] | None = None,
        aggs: Mapping[str, str | _Function] | None = None,
        schema: _ArrowSchema | _Arrow | None = None,
    ) -> Windows:
        """Opens groups by key and by time that the database keeps, in windows, or makes them.

        ``time`` names the column of times: timestamps, dates, or whole numbers of milliseconds since 1970. A window is
        ``every`` long, a timedelta or such as ``"15m"``, ``"1d"``, ``"1w"`` (from Monday on), ``"1mo"``, ``"1q"``,
        ``"1y"``, and ``retain`` says how far back they are kept, all where it is left out: ``Windows.expire`` drops the
        others. Windows lie side by side from 1970 on, in UTC. ``key``, ``aggs`` and ``schema`` are those of
        ``aggregator``. All is kept, and may be left out later.
        """
    def drop_windows(self, name: str) -> None:
        """Drops windows with all there is of them."""
    def cube(
        self,
        name: str,
        *,
        key: str | Sequence[str] | None = None,
        aggs: Mapping[str, str | _Function] | None = None,
        groupings: Literal["cube", "rollup"] | Sequence[Sequence[str]] | None = None,
        schema: _ArrowSchema | _Arrow | None = None,
    ) -> Cube:
        """Opens groups by several columns and by fewer of them that the database keeps up to date together, or makes them.

        ``key``, ``aggs`` and ``schema`` are those of ``aggregator``. ``groupings`` says by which columns there are groups:
        ``"cube"`` (by any of them, the default), ``"rollup"`` (by all, all but the last, and so on to none), or lists of
        columns, to which all columns are added. All is kept, and may be left out later. At most 12 columns.
        """
    def drop_cube(self, name: str) -> None:
        """Drops a cube with all there is of it."""
    def tables(self) -> dict[str, str]:
        """The tables' names and their layouts."""
    def drop_table(self, name: str) -> None:
        """Drops a table with all its records; of an aggregator drop ``NAME.schema``, too."""
    def alter(self, name: str, **options: Unpack[_TableOptions]) -> None:
        """Gives a table in use other options; those that are not named stay."""
    def batch(self, *, durability: _Durability | None = None) -> Batch:
        """A batch: writes to any tables that are committed together, or not at all."""
    def snapshot(self) -> Snapshot:
        """The database as it is now, over all tables."""
    def begin(self, *, durability: _Durability | None = None) -> Transaction:
        """Begins a transaction, which its context commits. ``transaction`` also begins anew after a conflict."""
    def transaction(self, act: Callable[[Transaction], _T], *, durability: _Durability | None = None) -> _T:
        """Calls ``act`` with a transaction, commits it, and returns what ``act`` returned.

        Where somebody else has changed what it read, ``act`` is called again, up to ``transaction_attempts`` times: it
        should do nothing but read and write. An exception of it ends this, and nothing is written. Raises Conflict at
        last.
        """
    def savepoint(self, name: str) -> int:
        """Keeps all tables as they are now, under a name, inside the database. Returns the last record's number."""
    def savepoints(self) -> list[dict[str, Any]]:
        """The savepoints, oldest first."""
    def open_savepoint(self, name: str) -> Snapshot:
        """The database as it was at a savepoint."""
    def rollback(self, name: str) -> None:
        """Makes all tables what they were at a savepoint, at once."""
    def drop_savepoint(self, name: str) -> None:
        """Gives up a savepoint."""
    def changes(self, since: int = 0) -> Changes:
        """All changes after the one of this number, commit by commit, up to now.

        Each item is the number to go on from and a list of Change. Raises ChangesGone where the log does not go back that
        far: ``keep_changes`` says how far it does.
        """
    def keep_changes(self, bytes: int | str) -> None:
        """How much of the log is kept for ``changes``, in bytes."""
    def checkpoint(self, path: _Path) -> dict[str, Any]:
        """Makes a copy of the database in a new directory on the same file system. Returns its files and last record."""
    def verify(self) -> dict[str, Any]:
        """Reads every byte and checks it. ``["problems"]`` of the report lists what is damaged."""
    def damage(self) -> list[dict[str, Any]]:
        """What could not be read so far, of a database that is open with ``salvage=True``."""
    def stats(self) -> dict[str, Any]:
        """Counters and gauges: bytes, seconds, and shares."""
    def describe(self) -> dict[str, Any]:
        """How the tables are laid out."""
    def refresh(self) -> int:
        """Of a database that is open with ``read_only=True``: goes on to what was written since. Returns the last
        record's number."""
    def writer_stats(self, patience: timedelta | float) -> dict[str, Any] | None:
        """The stats of the process that has it open to write, if it answers within this time (seconds)."""
    def flush(self) -> None:
        """Writes all buffered records to files."""
    def sync(self) -> None:
        """Makes everything accepted so far survive a power loss."""
    def wait_durable(self, sequence: int) -> None:
        """Returns once all records up to this number survive a power loss."""
    def wait_until_idle(self) -> None:
        """Returns once background work has nothing left to do."""
    def set_background_rate(self, bytes_a_second: int | str) -> None:
        """How many bytes a second background work goes through; 0 for no limit."""
    @property
    def last_sequence(self) -> int:
        """The number of the last accepted record."""
    @property
    def durable_sequence(self) -> int:
        """The number up to which records survive a power loss."""
    def watch(self, *, every: float = 1.0, keep: int = 3600) -> Watch:
        """Begins to take samples of ``stats``, one every ``every`` seconds, the last ``keep`` of which are kept: see Watch.

        Raises Closed, and Invalid for a time that is not above 0.
        """
    def plot(self) -> Figure:
        """What the last ``watch`` of this database saw, as a ``matplotlib.figure.Figure``: see ``Watch.plot``.

        Raises Invalid where there was none, ImportError where matplotlib is not installed.
        """
    def _repr_html_(self) -> str | None:
        """What notebooks show, tables with a picture of their trees; None of what is closed. Reads nothing from files."""

@disjoint_base
class Table:
    """A mapping of bytes to bytes. Keys have up to 64 KiB, values up to 256 MiB: ``key_bytes_max``, ``value_bytes_max``.

    Keys and values are anything that is bytes; text raises TypeError. It may be used by any number of threads. Loops see
    the table as it was when they began. There is no ``len``, as it would have to walk the table: see ``count``.
    """

    @property
    def name(self) -> str:
        """The table's name."""
    @property
    def layout(self) -> str:
        """How its records are laid out."""
    @property
    def key_bytes_max(self) -> int:
        """The longest key, in bytes."""
    @property
    def value_bytes_max(self) -> int:
        """The longest value, in bytes."""
    def set_layout(self, layout: str) -> None:
        """Gives the table another layout while it is in use. Rewrites it where the order changes."""
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> ScanIterator[bytes]: ...
    def keys(self, *, reverse: bool = False) -> Scan[bytes]:
        """The keys, in the table's own order."""
    def values(self, *, reverse: bool = False) -> Scan[bytes]:
        """The values, in the order of the keys."""
    def items(self, *, reverse: bool = False) -> Scan[tuple[bytes, bytes]]:
        """Keys and values, in the table's own order; also as a stream of Arrow's, of two binary columns."""
    @overload
    def get(self, key: Buffer, default: None = None) -> bytes | None:
        """The value of a key, or ``default``."""
    @overload
    def get(self, key: Buffer, default: _T) -> bytes | _T: ...
    @overload
    def get_many(self, keys: Scan[bytes]) -> list[bytes | None]: ...
    @overload
    def get_many(self, keys: _Arrow) -> Column: ...
    @overload
    def get_many(self, keys: Iterable[Buffer]) -> list[bytes | None]:
        """The values of keys, as of one moment, in their order.

        Of a sequence of bytes a list, with None for a key that is not there. Of a column of Arrow's (binary, text or whole
        numbers; not null) a binary column, with nulls.
        """
    def put(self, key: Buffer, value: Buffer, *, ttl: timedelta | float | str | None = None) -> None:
        """Sets a key; for a time (a timedelta, seconds, or a text such as ``"1h"``), in a table with ``ttl``."""
    def delete(self, key: Buffer) -> None:
        """Removes a key, present or not. Reads nothing, unlike ``del``, which raises KeyError."""
    def merge(self, key: Buffer, operand: Buffer) -> None:
        """Merges an operand into a key, by the table's rule. Reads nothing."""
    def put_many(
        self, keys: _Arrow | Iterable[Buffer], values: _Arrow | Iterable[Buffer], *, durability: _Durability | None = None
    ) -> int:
        """Sets many keys. Returns how many.

        Keys and values are two columns of Arrow's, of equal length, or two iterables of bytes. Columns of values are binary
        or text, where null deletes the key; those of keys may be whole numbers, too, which are kept in 1 to 8 bytes in
        their order. They are committed in parts of about 1 MiB, each whole or not at all: for all or nothing there is
        ``Batch.put_many``.
        """
    def delete_many(self, keys: _Arrow | Iterable[Buffer], *, durability: _Durability | None = None) -> int:
        """Removes many keys, present or not, in parts as ``put_many``. Returns how many were given."""
    def put_arrow(self, data: _Arrow, key: str, value: str, *, durability: _Durability | None = None) -> int:
        """Sets the keys of one column to the values of another, of record batches, in parts as ``put_many``. Returns how
        many rows."""
    def update(
        self,
        pairs: Mapping[Any, Buffer] | Iterable[tuple[Buffer, Buffer]],
        *,
        durability: _Durability | None = None,
    ) -> int:
        """Sets the keys of a mapping, or of pairs, in parts as ``put_many``. Returns how many."""
    def pop(self, key: Buffer, *default: Any) -> Any:
        """Removes a key and returns its value, or ``default``; without one it raises KeyError."""
    def compare_and_swap(self, key: Buffer, expected: Buffer | None, new: Buffer | None) -> bool:
        """Gives a key another value if it has the expected one; None is no value. Returns whether it had."""
    def get_with_expiry(self, key: Buffer) -> tuple[bytes, int | None] | None:
        """The value of a key, and when it expires, in milliseconds since 1970; None where it never does."""
    def expire(self, key: Buffer, unix_milliseconds: int) -> bool:
        """Lets a key expire at a time. Returns whether it is there."""
    def persist(self, key: Buffer) -> bool:
        """Lets a key never expire. Returns whether it is there."""
    def count(self) -> int:
        """How many keys there are. Walks the table, and remembers the number while the table does not change."""
    def compact(self, *, rewrite: bool = False) -> None:
        """Merges all there is: the least space, and the fewest reads. With `rewrite` also what is merged already is
        written anew, by the options and the data key of now."""
    def stats(self) -> dict[str, Any]:
        """What ``Database.stats`` tells of this table: its layout, its levels, and the space it takes, in bytes. Reads
        nothing."""
    def describe(self) -> dict[str, Any]:
        """What ``Database.describe`` tells of this table: its options, levels and nodes. Reads nothing."""
    def setdefault(self, key: Buffer, default: Buffer) -> bytes:
        """The value of a key, which is set to ``default`` first where it has none; at once, also beside other threads."""
    def popitem(self) -> tuple[bytes, bytes]:
        """Removes an entry and returns it; of a table in key order that of the highest key. Raises KeyError where there is
        none."""
    def clear(self) -> None:
        """Removes all keys that there are. Of a table in key order it costs one record; else it walks the table."""
    def _repr_html_(self) -> str | None:
        """What notebooks show, tables with a picture of their trees; None of what is closed. Reads nothing from files."""

@final
class OrderedTable(Table):
    """A table that keeps its keys in the order of their bytes."""

    def range(
        self, start: Buffer | None = None, end: Buffer | None = None, *, reverse: bool = False
    ) -> Scan[tuple[bytes, bytes]]:
        """The entries from ``start`` up to ``end``, which is not among them; also as a stream of Arrow's."""
    def prefix(self, prefix: Buffer, *, reverse: bool = False) -> Scan[tuple[bytes, bytes]]:
        """The entries whose keys begin so; also as a stream of Arrow's."""
    def first(self) -> tuple[bytes, bytes] | None:
        """The entry with the lowest key."""
    def last(self) -> tuple[bytes, bytes] | None:
        """The entry with the highest key."""
    def nearest(
        self, key: Buffer, side: Literal["below", "at_or_below", "at_or_above", "above"]
    ) -> tuple[bytes, bytes] | None:
        """The entry nearest to a key, on one side of it."""
    def cursor(self) -> Cursor:
        """A cursor over the table as it is now, before its first entry."""
    def delete_range(self, start: Buffer | None = None, end: Buffer | None = None) -> None:
        """Removes all keys from ``start`` up to ``end``. Costs one record, however many they are."""
    def delete_prefix(self, prefix: Buffer) -> None:
        """Removes all keys that begin so. Costs one record."""
    def compact_range(self, start: Buffer | None = None, end: Buffer | None = None) -> None:
        """Merges what there is of a range."""
    def approximate(self, start: Buffer | None = None, end: Buffer | None = None) -> tuple[int, int]:
        """About how many records a range has, and bytes, without reading."""

@final
class Scan(Iterable[_T]):
    """A table, or part of it, as it was when this was asked for.

    Each loop begins anew, and so does each stream of Arrow's: record batches of at most 65,536 rows with the binary columns
    ``key`` and ``value``. It holds files and memory until it goes.
    """

    def __iter__(self) -> ScanIterator[_T]: ...
    def batches(self) -> BatchIterator:
        """The record batches one by one, from the beginning: each is an array of Arrow's, a structure of the columns."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...

@final
class ScanIterator(Iterator[_T]):
    """What a loop over a Scan is given, one by one."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...

@final
class Cursor:
    """Goes to any place of a table in key order, and from there either way. Each step tells whether there is an entry."""

    def seek(self, key: Buffer) -> bool:
        """Goes to the first entry whose key is not below this one."""
    def seek_for_prev(self, key: Buffer) -> bool:
        """Goes to the last entry whose key is not above this one."""
    def seek_to_first(self) -> bool:
        """Goes to the first entry."""
    def seek_to_last(self) -> bool:
        """Goes to the last entry."""
    def next(self) -> bool:
        """Goes to the next entry."""
    def prev(self) -> bool:
        """Goes to the entry before."""
    @property
    def entry(self) -> tuple[bytes, bytes] | None:
        """The key and the value here."""

@disjoint_base
class Writes:
    """Writes to any tables of a database that are committed together. They belong to one thread at a time."""

    def put(self, table: Table, key: Buffer, value: Buffer, *, ttl: timedelta | float | str | None = None) -> None:
        """Sets a key."""
    def delete(self, table: Table, key: Buffer) -> None:
        """Removes a key, present or not."""
    def merge(self, table: Table, key: Buffer, operand: Buffer) -> None:
        """Merges an operand into a key."""
    def delete_range(self, table: Table, start: Buffer | None = None, end: Buffer | None = None) -> None:
        """Removes all keys from ``start`` up to ``end``."""
    def delete_prefix(self, table: Table, prefix: Buffer) -> None:
        """Removes all keys that begin so."""
    def put_many(self, table: Table, keys: _Arrow | Iterable[Buffer], values: _Arrow | Iterable[Buffer]) -> int:
        """Sets many keys: see ``Table.put_many``. Returns how many."""
    def delete_many(self, table: Table, keys: _Arrow | Iterable[Buffer]) -> int:
        """Removes many keys. Returns how many."""
    def put_arrow(self, table: Table, data: _Arrow, key: str, value: str) -> int:
        """Sets the keys of one column to the values of another. Returns how many rows."""
    def clear(self) -> None:
        """Forgets what was written so far."""
    @property
    def encoded_bytes(self) -> int:
        """How many bytes the writes take in the log."""
    def __len__(self) -> int: ...

@final
class Batch(Writes):
    """Writes that are committed at the end of a ``with``, unless that ends by an exception; or by ``commit``.

    What is wrong with a write, such as a key that is too long, is raised by the commit, and nothing is written.
    """

    def commit(self) -> int:
        """Writes all of it, or on an error nothing, and begins anew. Returns the number of its last record."""
    def __enter__(self) -> Batch: ...
    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None: ...

@final
class Transaction(Writes):
    """Reads of one moment with its own writes on top. A ``with`` commits it, unless that ends by an exception."""

    def get(self, table: Table, key: Buffer, default: Any = None) -> Any:
        """The value of a key, or ``default``."""
    def get_many(self, table: Table, keys: Iterable[Buffer]) -> list[bytes | None]:
        """The values of keys, in their order."""
    def items(self, table: Table, *, reverse: bool = False) -> ScanIterator[tuple[bytes, bytes]]:
        """All entries of a table."""
    def range(
        self, table: Table, start: Buffer | None = None, end: Buffer | None = None, *, reverse: bool = False
    ) -> ScanIterator[tuple[bytes, bytes]]:
        """The entries of a range of keys."""
    def prefix(self, table: Table, prefix: Buffer, *, reverse: bool = False) -> ScanIterator[tuple[bytes, bytes]]:
        """The entries whose keys begin so."""
    def commit(self) -> int:
        """Writes all of it. Raises Conflict, and writes nothing, where somebody else has changed what was read."""
    def rollback(self) -> None:
        """Gives it up."""
    def __enter__(self) -> Transaction: ...
    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None: ...

@final
class Snapshot:
    """The database as it was at one moment. It holds files and memory until it is closed, as a ``with`` does."""

    def close(self) -> None:
        """Lets go of what it holds."""
    def __enter__(self) -> Snapshot: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None: ...
    def tables(self) -> dict[str, str]:
        """The tables that there were, and their layouts."""
    def table(self, name: str) -> Table:
        """A table that there was, also one that was dropped since."""
    def get(self, table: Table, key: Buffer, default: Any = None) -> Any:
        """The value that a key had, or ``default``."""
    @overload
    def get_many(self, table: Table, keys: Scan[bytes]) -> list[bytes | None]: ...
    @overload
    def get_many(self, table: Table, keys: _Arrow) -> Column: ...
    @overload
    def get_many(self, table: Table, keys: Iterable[Buffer]) -> list[bytes | None]:
        """The values that keys had: see ``Table.get_many``."""
    def items(self, table: Table, *, reverse: bool = False) -> Scan[tuple[bytes, bytes]]:
        """All entries that a table had."""
    def range(
        self, table: Table, start: Buffer | None = None, end: Buffer | None = None, *, reverse: bool = False
    ) -> Scan[tuple[bytes, bytes]]:
        """The entries that a range had."""
    def prefix(self, table: Table, prefix: Buffer, *, reverse: bool = False) -> Scan[tuple[bytes, bytes]]:
        """The entries whose keys began so."""
    def cursor(self, table: Table) -> Cursor:
        """A cursor over a table as it was, before its first entry."""
    def count(self, table: Table) -> int:
        """How many keys a table had."""

@final
class Changes(Iterator[tuple[int, list[Change]]]):
    """What was committed, commit by commit: the number to go on from, and the changes."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[int, list[Change]]: ...

@final
class Change:
    """One operation of a commit."""

    @property
    def sequence(self) -> int: ...
    @property
    def table(self) -> str: ...
    @property
    def operation(self) -> Literal["put", "delete", "merge", "delete_range", "other"]: ...
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def expiry_milliseconds(self) -> int | None: ...

@final
class Backups:
    """A directory of backups that share what they have in common."""

    def __new__(cls, path: _Path) -> Self: ...
    def take(self, db: Database) -> dict[str, Any]:
        """Takes a backup. Returns its number, its bytes, and those that were copied."""
    def list(self) -> builtins.list[dict[str, Any]]:
        """The backups, oldest first."""
    def newest(self) -> int:
        """The number of the newest backup."""
    def restore(self, number: int, target: _Path) -> None:
        """Makes a database of a backup, in a new directory."""
    def verify(self, number: int) -> builtins.list[str]:
        """Reads every byte of a backup. Returns what is wrong."""
    def keep(self, newest: int) -> None:
        """Removes all but the newest backups, at least one."""

@final
class Column:
    """An array of Arrow's: give it to ``pyarrow.array``, ``polars.Series``, or whatever else takes such."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[Any, Any]: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __len__(self) -> int: ...

@final
class Rows:
    """Record batches of Arrow's: give them to ``pyarrow.table``, ``polars.DataFrame``, a query of DuckDB's, and so on.

    Each consumer gets a stream from the beginning, as of when it asks. Batches have at most 65,536 rows, and are made while
    they are read, without the interpreter's lock.
    """

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    def batches(self) -> BatchIterator:
        """The record batches one by one, from the beginning: each is an array of Arrow's, a structure of the columns."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...

@final
class BatchIterator(Iterator[Column]):
    """Record batches one by one, each an array of Arrow's: a structure of the columns."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Column: ...

@final
class Aggregator:
    """Group-by of columns, in memory that is bounded; beyond that in files.

    ``key`` names the columns to group by, none for one group of all rows; null is a group. ``aggs`` gives each answer a
    name and a function, such as ``forebay.sum("amount")``. ``memory`` is in bytes or as ``"512MB"``, 1 GiB by default;
    where it does not suffice groups go to files in the directory ``spill``, and without one it is an error (Invalid). ``threads`` of its own add what one ``update`` brings. The types of columns are those of what is first
    added, or of ``schema``. Any number of threads add and read.
    """

    def __new__(
        cls,
        *,
        key: str | Sequence[str] | None = None,
        aggs: Mapping[str, str | _Function],
        memory: int | str | None = None,
        spill: _Path | None = None,
        threads: int = 2,
        schema: _ArrowSchema | _Arrow | None = None,
    ) -> Self: ...
    def update(self, data: _Arrow) -> int:
        """Adds the rows of a table, a record batch, or a stream of such. Returns how many.

        Raises Invalid for a value that a function does not take, with its row, counted from 1 in its record batch: which
        of the other rows are added by then is not known.
        """
    def merge(self, states: _Arrow) -> int:
        """Merges what ``states`` of another aggregator of these groups gave. Returns how many."""
    def get(self, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The answers of one group by their names, or None. The key's values come in order, or by their names."""
    def get_many(self, keys: _Arrow) -> Rows:
        """The answers of groups, a row for each row of ``keys``, in their order; null where there is no such group."""
    def top(self, name: str, count: int = 10) -> Rows:
        """The groups with the greatest answers under a name, the greatest first. Walks all groups."""
    def result(self) -> Rows:
        """All groups with their answers."""
    def states(self) -> Rows:
        """All groups with their states, for ``merge`` here or on another machine."""
    def by(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Aggregator:
        """Groups by some of the columns of the key, or by none, as of now, in memory: for roll-ups and cubes.

        They are an aggregator of their own, made of the states that are here, so every function is right, also one of
        distinct values. What is added later to either is not added to the other. ``memory`` and ``spill`` are those of
        ``Aggregator``. Raises Invalid for a column that is not in the key, or comes twice.
        """
    def rollup(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Rows:
        """Groups by all columns, by all but the last, and so on to none, as ``GROUP BY ROLLUP`` has them.

        The columns are those of the key, or those that are named, in this order. Where a row's grouping leaves out a column,
        that is null; ``grouping`` tells such nulls from others, as SQL's ``GROUPING_ID``: a bit for each column, the last
        one's the lowest, is set where the column is left out. One grouping after the other is made of states while rows are
        read, of what is there by then; ``memory`` and ``spill`` are those of ``Aggregator``, for each.
        """
    def cube(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Rows:
        """Groups by all columns, by any fewer of them, and by none, as ``GROUP BY CUBE`` has them. See ``rollup``."""
    @property
    def memory_bytes(self) -> int:
        """How many bytes of memory it takes now."""
    def close(self) -> None:
        """Lets go of memory and files. All further calls raise Closed."""
    def __enter__(self) -> Aggregator: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None: ...
    def _repr_html_(self) -> str | None:
        """What notebooks show, tables with a picture of their trees; None of what is closed. Reads nothing from files."""

@final
class StoredAggregator:
    """Groups that a database keeps: ``Database.aggregator`` opens them. Any number of threads add and read."""

    @property
    def name(self) -> str:
        """Its name."""
    def update(self, data: _Arrow, *, durability: _Durability | None = None) -> int:
        """Adds the rows of a table, a record batch, or a stream of such. Returns how many.

        They are committed in parts. Raises Invalid for a value that a function does not take: the rows of the record
        batch it is in, and of parts that were not committed before, are not added. ``commit`` adds all or nothing.
        """
    def commit(
        self,
        data: _Arrow | None = None,
        *,
        metadata: Buffer | None = None,
        batch: Batch | None = None,
        durability: _Durability | None = None,
    ) -> int:
        """Adds rows, and keeps ``metadata`` with them, such as how far the input was read: all of it or nothing.

        What ``batch`` holds for other tables is committed with them, as durably as either was asked to be. After any
        crash ``metadata`` is that of the last commit that was kept. Returns the number of the last record.
        """
    @property
    def metadata(self) -> bytes | None:
        """The bytes that came with the last commit."""
    def merge(self, states: _Arrow, *, durability: _Durability | None = None) -> int:
        """Merges what ``states`` of another aggregator of these groups gave, batch by batch. Returns how many."""
    def get(self, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The answers of one group by their names, or None. The key's values come in order, or by their names."""
    def delete(self, *key: Any, **named: Any) -> None:
        """Removes a group, of an aggregator that was made with ``deletes=True``."""
    def get_many(self, keys: _Arrow) -> Rows:
        """The answers of groups, a row for each row of ``keys``, in their order; null where there is no such group.

        All are of one moment.
        """
    def top(self, name: str, count: int = 10) -> Rows:
        """The groups with the greatest answers under a name, the greatest first. Walks all groups."""
    def result(self) -> Rows:
        """All groups with their answers."""
    def states(self) -> Rows:
        """All groups with their states, for ``merge`` here or on another machine."""
    def by(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Aggregator:
        """Groups by some of the columns of the key, or by none, as of now, in memory: for roll-ups and cubes.

        They are an aggregator of their own, made of the states that are here, so every function is right, also one of
        distinct values. What is added later to either is not added to the other. ``memory`` and ``spill`` are those of
        ``Aggregator``. Raises Invalid for a column that is not in the key, or comes twice.
        """
    def rollup(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Rows:
        """Groups by all columns, by all but the last, and so on to none, as ``GROUP BY ROLLUP`` has them.

        The columns are those of the key, or those that are named, in this order. Where a row's grouping leaves out a column,
        that is null; ``grouping`` tells such nulls from others, as SQL's ``GROUPING_ID``: a bit for each column, the last
        one's the lowest, is set where the column is left out. One grouping after the other is made of states while rows are
        read, of what is there now; ``memory`` and ``spill`` are those of ``Aggregator``, for each.
        """
    def cube(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Rows:
        """Groups by all columns, by any fewer of them, and by none, as ``GROUP BY CUBE`` has them. See ``rollup``."""
    def at(self, snapshot: Snapshot) -> AggregatorSnapshot:
        """The groups as they were when a snapshot was taken, also a savepoint's (``Database.open_savepoint``).

        Raises NotFound where the aggregator was not there, and Invalid where nothing was added to this one yet, where it
        was one of other groups by then, or of another database.
        """
    def finalize(self) -> None:
        """Merges all there is to one state a group: the least space, and the fewest reads."""
    def _repr_html_(self) -> str | None:
        """What notebooks show, tables with a picture of their trees; None of what is closed. Reads nothing from files."""

@final
class Cube:
    """Groups by several columns and by fewer of them that a database keeps: ``Database.cube`` opens it. All groupings agree
    at every commit. Any number of threads add and read.
    """

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def groupings(self) -> list[list[str]]:
        """By which columns there are groups: a list for each grouping, that of all columns first."""
    def update(self, data: _Arrow, *, durability: _Durability | None = None) -> int:
        """Adds the rows of a table, a record batch, or a stream of such, to all groupings. Returns how many.

        They are committed in parts, each of which all groupings have or none. Raises Invalid for a value that a function
        does not take: the rows of parts that were not committed before are not added. ``commit`` adds all or nothing.
        """
    def commit(
        self,
        data: _Arrow | None = None,
        *,
        metadata: Buffer | None = None,
        batch: Batch | None = None,
        durability: _Durability | None = None,
    ) -> int:
        """Adds rows, and keeps ``metadata`` with them, such as how far the input was read: all groupings have all of it, or
        none has anything.

        What ``batch`` holds for tables is committed with them, as durably as either was asked to be. After any crash
        ``metadata`` is that of the last commit that was kept. Returns the number of the last record.
        """
    def merge(self, states: _Arrow, *, durability: _Durability | None = None) -> int:
        """Merges what ``states`` of other groups by the same columns gave, batch by batch. Returns how many."""
    @property
    def metadata(self) -> bytes | None:
        """The bytes that came with the last commit."""
    def get(self, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The answers of one group by their names, or None: of the grouping by the columns that are named.

        ``get(country="no")`` is over all cities, ``get()`` over all there is. Values without a name are of the first columns
        of the key. Raises Invalid for a grouping that is not kept.
        """
    def by(self, *columns: str) -> AggregatorSnapshot:
        """The groups by some of the columns of the key, or by none, as of now: of a grouping that is kept.

        They are read as those of ``StoredAggregator.at``, and hold what a snapshot holds. Raises Invalid for a grouping that
        is not kept.
        """
    def result(self) -> Rows:
        """All groups of all groupings with their answers, by ``grouping``, as of now.

        Where a row's grouping leaves out a column, that is null; ``grouping`` tells such nulls from others, as SQL's
        ``GROUPING_ID``: a bit for each column, the last one's the lowest, is set where the column is left out. Whoever reads
        the rows, and whenever, sees that moment: a snapshot is held as long as they are.
        """
    def states(self) -> Rows:
        """The groups by all columns with their states, for ``merge`` here or on another machine."""
    def stats(self) -> list[dict[str, Any]]:
        """Of each grouping its columns, its table, and about how many records and bytes that has of it. Reads nothing."""
    def at(self, snapshot: Snapshot) -> CubeSnapshot:
        """The cube as it was when a snapshot was taken, also a savepoint's (``Database.open_savepoint``).

        Raises NotFound where it was not there, and Invalid where nothing was added to this one yet, where it was another
        cube by then, or of another database.
        """

@final
class CubeSnapshot:
    """A cube as it was when a snapshot was taken: ``Cube.at`` gives it. All groupings are of that moment."""

    @property
    def metadata(self) -> bytes | None:
        """The bytes that came with the last commit there was."""
    def get(self, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The answers of one group by their names, or None. See ``Cube.get``."""
    def by(self, *columns: str) -> AggregatorSnapshot:
        """The groups by some of the columns of the key, or by none. See ``Cube.by``."""
    def result(self) -> Rows:
        """All groups of all groupings with their answers, by ``grouping``. See ``Cube.result``."""
    def states(self) -> Rows:
        """The groups by all columns with their states, for ``merge`` here or on another machine."""

@final
class Windows:
    """Groups by key and by time that a database keeps: ``Database.windows`` opens them. Any number of threads add and read.

    The first column of the key is ``window``, where a group's window begins.
    """

    @property
    def name(self) -> str:
        """Their name."""
    def update(
        self, data: _Arrow, *, late: Literal["refuse", "drop"] = "refuse", durability: _Durability | None = None
    ) -> int:
        """Adds the rows of a table, a record batch, or a stream of such, each to the window of its time. Returns how many.

        They are committed in parts. Rows from before what ``expire`` keeps are refused, with ``late="drop"`` left out:
        ``late_rows`` counts them. Raises Invalid for a row without a time, or a value that a function does not take: the
        rows of the record batch it is in, and of parts that were not committed before, are not added. ``commit`` adds all
        or nothing.
        """
    def commit(
        self,
        data: _Arrow | None = None,
        *,
        metadata: Buffer | None = None,
        batch: Batch | None = None,
        late: Literal["refuse", "drop"] = "refuse",
        durability: _Durability | None = None,
    ) -> int:
        """Adds rows, and keeps ``metadata`` with them, such as how far the input was read: all of it or nothing, in however
        many windows the rows are.

        What ``batch`` holds for tables is committed with them, as durably as either was asked to be. After any crash
        ``metadata`` is that of the last commit that was kept. Returns the number of the last record.
        """
    @property
    def metadata(self) -> bytes | None:
        """The bytes that came with the last commit."""
    @property
    def late_rows(self) -> int:
        """How many rows this object has left out, as they came too late. Of those that had come in time, and whose window
        ``expire`` dropped before they were committed, each group counts as one."""
    def expire(self, now: _Moment) -> int:
        """Makes it ``now``: drops the windows that are no longer kept, and returns how many. No clock is read.

        Kept are the window in which it is now and those that ``retain`` reaches back to. Rows from before are refused from
        then on, so a time that is too late cannot be taken back; an earlier one than once before does nothing.
        """
    @property
    def kept_from(self) -> Any:
        """From when on times are kept. Rows from before are late."""
    def windows(self, start: _Moment | None = None, end: _Moment | None = None) -> list[Any]:
        """Where the windows begin that are kept and that have rows, ascending: those from ``start`` on, before ``end``."""
    def get(self, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The answers of one group by their names, or None. First comes a time within its window, then the key's values, in
        order or by their names."""
    def get_many(self, keys: _Arrow) -> Rows:
        """The answers of groups, a row for each row of ``keys``, in their order; null where there is no such group.

        All are of one moment. The column ``window`` of ``keys`` has the type of that of ``result``, and times within windows.
        """
    def top(self, name: str, count: int = 10, *, start: _Moment | None = None, end: _Moment | None = None) -> Rows:
        """The groups with the greatest answers under a name, the greatest first. Walks all groups of these windows."""
    def result(self, start: _Moment | None = None, end: _Moment | None = None) -> Rows:
        """All groups of the windows that begin from ``start`` on, before ``end``, with their answers: window by window."""
    def window(self, at: _Moment) -> Rows:
        """All groups of the window that a time is in."""
    def states(self, start: _Moment | None = None, end: _Moment | None = None) -> Rows:
        """The same groups as ``result`` with their states, for ``Aggregator.merge`` here or on another machine."""
    def by(
        self,
        *columns: str,
        start: _Moment | None = None,
        end: _Moment | None = None,
        memory: int | str | None = None,
        spill: _Path | None = None,
    ) -> Aggregator:
        """Groups over all windows that begin from ``start`` on, before ``end``, by some columns of the key, in memory.

        With ``window`` among the columns they are by window. They are an aggregator of their own, as
        ``StoredAggregator.by`` makes it. Raises Invalid for a column that is not in the key, or comes twice.
        """

@final
class AggregatorSnapshot:
    """Groups as they were when a snapshot was taken: ``StoredAggregator.at`` and ``Cube.by`` give them.

    They hold what the snapshot holds, also once that is closed. They are read as those of ``StoredAggregator``.
    """

    @property
    def metadata(self) -> bytes | None:
        """The bytes that came with the last commit there was."""
    def get(self, *key: Any, **named: Any) -> dict[str, Any] | None:
        """The answers of one group by their names, or None. The key's values come in order, or by their names."""
    def get_many(self, keys: _Arrow) -> Rows:
        """The answers of groups, a row for each row of ``keys``, in their order; null where there was no such group."""
    def top(self, name: str, count: int = 10) -> Rows:
        """The groups with the greatest answers under a name, the greatest first. Walks all groups."""
    def result(self) -> Rows:
        """All groups with their answers."""
    def states(self) -> Rows:
        """All groups with their states, for ``merge`` here or on another machine."""
    def by(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Aggregator:
        """Groups by some of the columns of the key, or by none, in memory: for roll-ups and cubes.

        They are an aggregator of their own, made of the states that are here, so every function is right, also one of
        distinct values. What is added later to either is not added to the other. ``memory`` and ``spill`` are those of
        ``Aggregator``. Raises Invalid for a column that is not in the key, or comes twice.
        """
    def rollup(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Rows:
        """Groups by all columns, by all but the last, and so on to none, as ``GROUP BY ROLLUP`` has them.

        The columns are those of the key, or those that are named, in this order. Where a row's grouping leaves out a column,
        that is null; ``grouping`` tells such nulls from others, as SQL's ``GROUPING_ID``: a bit for each column, the last
        one's the lowest, is set where the column is left out. One grouping after the other is made of states while rows are
        read; ``memory`` and ``spill`` are those of ``Aggregator``, for each.
        """
    def cube(self, *columns: str, memory: int | str | None = None, spill: _Path | None = None) -> Rows:
        """Groups by all columns, by any fewer of them, and by none, as ``GROUP BY CUBE`` has them. See ``rollup``."""
