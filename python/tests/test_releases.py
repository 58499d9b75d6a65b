"""Arrow's structures are released once each: what comes in, what goes out, and whatever is raised meanwhile.

Capsules of either side are watched: the function that releases a structure is replaced by one that counts, in place, before
whoever takes it sees it. So are those of what a stream gives.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, py_object
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa
import pytest

import forebay as fb

RELEASE = CFUNCTYPE(None, c_void_p)
GET = CFUNCTYPE(c_int, c_void_p, c_void_p)


class Schema(Structure):
    _fields_ = [
        ("format", c_void_p),
        ("name", c_void_p),
        ("metadata", c_void_p),
        ("flags", c_int64),
        ("n_children", c_int64),
        ("children", c_void_p),
        ("dictionary", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    ]


class Array(Structure):
    _fields_ = [
        ("length", c_int64),
        ("null_count", c_int64),
        ("offset", c_int64),
        ("n_buffers", c_int64),
        ("n_children", c_int64),
        ("buffers", POINTER(c_void_p)),
        ("children", c_void_p),
        ("dictionary", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    ]


class Stream(Structure):
    _fields_ = [
        ("get_schema", c_void_p),
        ("get_next", c_void_p),
        ("get_last_error", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    ]


pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = c_void_p, [py_object, c_char_p]


class Watch:
    """Counts releases, by structure."""

    # What is called must live as long as it may be called, also where a test fails.
    calls: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        self.released: list[tuple[str, int]] = []

    def structure(self, kind: str, found: Any) -> None:
        number, release = len(self.released), RELEASE(found.release)
        self.released.append((kind, 0))

        def count(pointer: int) -> None:
            self.released[number] = (kind, self.released[number][1] + 1)
            release(pointer)

        found.release = self.call(RELEASE(count))

    def call(self, function: Any) -> int | None:
        self.calls.append(function)
        return ctypes.cast(function, c_void_p).value

    def stream(self, found: Stream) -> None:
        self.structure("stream", found)
        for name, kind, made in (("get_schema", "schema", Schema), ("get_next", "array", Array)):

            def get(
                stream: int, out: int, kind: str = kind, made: Any = made, get: Any = GET(getattr(found, name))
            ) -> int:
                code: int = get(stream, out)
                if code == 0 and made.from_address(out).release:
                    self.structure(kind, made.from_address(out))
                return code

            setattr(found, name, self.call(GET(get)))

    def __call__(self, inner: Any) -> Any:
        """The same object, watched."""
        return Watched(inner, self)

    def check(self, least: int = 1) -> None:
        gc.collect()
        wrong = {at: told for at, told in enumerate(self.released) if told[1] != 1}
        assert not wrong, wrong
        assert len(self.released) >= least


class Watched:
    def __init__(self, inner: Any, watch: Watch) -> None:
        self.inner, self.watch = inner, watch
        for name in ("stream", "array", "schema"):
            if hasattr(inner, f"__arrow_c_{name}__"):
                setattr(self, f"__arrow_c_{name}__", getattr(self, name))

    def stream(self, requested_schema: object = None) -> Any:
        capsule = self.inner.__arrow_c_stream__()
        self.watch.stream(Stream.from_address(pointer_of(capsule, b"arrow_array_stream")))
        return capsule

    def array(self, requested_schema: object = None) -> Any:
        schema, array = self.inner.__arrow_c_array__()
        self.watch.structure("schema", Schema.from_address(pointer_of(schema, b"arrow_schema")))
        self.watch.structure("array", Array.from_address(pointer_of(array, b"arrow_array")))
        return schema, array

    def schema(self) -> Any:
        capsule = self.inner.__arrow_c_schema__()
        self.watch.structure("schema", Schema.from_address(pointer_of(capsule, b"arrow_schema")))
        return capsule


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.check(0)


class Sum(fb.UserAggregate):
    """Watches what it is given and what it gives, and fails where it is told to."""

    name = "sum"
    state = {"sum": "Int64"}
    answer = "Int64"

    def __init__(self, watch: Watch, *columns: str) -> None:
        super().__init__(*columns)
        self.watch = watch
        self.fails: str | None = None

    def update(self, values: Any, groups: Any) -> Any:
        if self.fails == "update":
            raise ZeroDivisionError("update")
        return self.merge(values, groups)

    def merge(self, states: Any, groups: Any) -> Any:
        frame = pl.DataFrame(pa.table(pa.record_batch(self.watch(states))))
        sums = frame.group_by(pl.Series(pa.array(self.watch(groups))).alias("g")).agg(sum=pl.first().sum()).sort("g")
        if self.fails == "rows":
            sums = sums.slice(1)
        return self.watch(sums.select("sum").to_arrow().to_batches()[0])

    def evaluate(self, states: Any) -> Any:
        if self.fails == "evaluate":
            raise ZeroDivisionError("evaluate")
        return self.watch(pa.record_batch(self.watch(states)).column(0))


TABLE = pa.table({"k": [1, 2, 1, 3] * 50, "v": list(range(200)), "t": ["1", "2", "x", "3"] * 50})


def parts(rows: int = 7) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=rows))


Groups = fb.Aggregator | fb.StoredAggregator


@pytest.fixture(params=["memory", "stored"])
def make(request: pytest.FixtureRequest, db: fb.Database) -> Callable[..., Groups]:
    def make(**aggs: Any) -> Groups:
        if request.param == "memory":
            return fb.Aggregator(key="k", aggs=aggs)
        return db.aggregator("g", key="k", aggs=aggs)

    return make


def test_what_groups_are_given(make: Callable[..., Groups], watch: Watch) -> None:
    groups = make(n=fb.count(), s=fb.sum("v"))
    assert groups.update(watch(TABLE)) == 200 == groups.update(watch(parts()))
    assert groups.update(watch(TABLE.to_batches()[0])) == 200
    pa.table(groups.get_many(watch(TABLE.select(["k"]))))
    watch.check(40)
    for wrong in (TABLE.select(["k"]), TABLE.rename_columns(["k", "v2", "t"]), pa.table({"k": ["a"], "v": [1]})):
        with pytest.raises(fb.Invalid):
            groups.update(watch(wrong))
        with pytest.raises(fb.Error):
            groups.merge(watch(wrong))
    with pytest.raises(TypeError):
        groups.update(watch(pa.array([1])))
    with pytest.raises(fb.Invalid, match="no column"):
        groups.get_many(watch(TABLE.select(["v"])))


def test_streams_that_end_amid(make: Callable[..., Groups], watch: Watch) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from parts()
        gc.collect()
        raise OSError("the source is gone")

    groups = make(n=fb.count())
    with pytest.raises((OSError, ValueError), match="the source is gone"):
        groups.update(watch(pa.RecordBatchReader.from_batches(TABLE.schema, failing())))
    refusing = make(s=fb.sum("t")) if isinstance(groups, fb.Aggregator) else groups
    if refusing is not groups:
        with pytest.raises(fb.Invalid, match="`x` is not a number"):
            refusing.update(watch(parts()))
    watch.check(20)


@pytest.mark.parametrize("fails", [None, "update", "rows", "evaluate"])
def test_functions_in_python(make: Callable[..., Groups], fails: str | None, watch: Watch) -> None:
    function = Sum(watch, "v")
    groups = make(s=function, n=fb.count())
    groups.update(watch(TABLE))
    function.fails = fails
    wrong = (ZeroDivisionError, fb.Invalid)
    for act in (
        lambda: groups.update(watch(parts())),
        lambda: groups.get(1),
        lambda: groups.get_many(TABLE.select(["k"])),
        lambda: groups.top("s", 2),
        lambda: pa.table(watch(groups.states())),
    ):
        try:
            act()
        except (*wrong, OSError, ValueError, pa.ArrowException):
            assert fails is not None
    # A consumer that is gone amid an exception runs nothing of Python's: so it lives until that is over.
    reader = pa.RecordBatchReader.from_stream(watch(groups.result()))
    try:
        reader.read_all()
    except (OSError, ValueError, pa.ArrowException):
        assert fails is not None
    del reader
    watch.check(20)


def test_what_groups_give(make: Callable[..., Groups], watch: Watch) -> None:
    groups = make(n=fb.count(), u=fb.set("t"))
    for start in range(0, 100_000, 50_000):
        groups.update(pa.table({"k": range(start, start + 50_000), "t": ["x"] * 50_000, "v": [0] * 50_000}))
    result = watch(groups.result())
    whole = pa.table(result)
    assert whole.num_rows == 100_000
    # Each consumer has its own; one reads a part, one nothing, and one never begins.
    half, other = pa.RecordBatchReader.from_stream(result), pa.RecordBatchReader.from_stream(result)
    first = half.read_next_batch()
    capsule = result.__arrow_c_stream__()
    gc.collect()
    assert first.num_rows == 65_536
    del half, other, capsule, whole
    gc.collect()
    assert sum(first["n"].to_pylist()) == 65_536, "a batch outlives its stream"
    assert pl.DataFrame(result).height == 100_000
    del first
    for rows in (groups.states(), groups.top("n", 3), groups.get_many(pa.table({"k": [1, -1]}))):
        pa.table(watch(rows))
        pa.schema(watch(rows))
    reader = pa.RecordBatchReader.from_stream(result)
    with pytest.raises(RuntimeError, match="consumer"):
        for batch in reader:
            raise RuntimeError("of the consumer")
    del reader, batch
    if isinstance(groups, fb.Aggregator):
        late = pa.RecordBatchReader.from_stream(result)
        groups.close()
        assert sum(batch.num_rows for batch in late) == 100_000
        del late
    del result
    watch.check(20)


def test_tables(db: fb.Database, watch: Watch) -> None:
    table = db.ordered_table("t")
    keys = pa.chunked_array([[f"{number:05}".encode() for number in range(start, start + 100)] for start in (0, 100)])
    table.put_many(watch(keys), watch(keys))
    table.put_many(watch(keys.chunk(0)), watch(keys.chunk(1)))
    table.put_arrow(watch(pa.table({"id": keys, "w": keys})), "id", "w")
    found = pa.array(watch(table.get_many(watch(keys.chunk(0)))))
    assert found.to_pylist()[1] == b"00001"
    del found
    scan = watch(table.range(b"00010", b"00150"))
    assert pa.table(scan).num_rows == 140
    half = pa.RecordBatchReader.from_stream(scan)
    del half, scan
    with pytest.raises((TypeError, fb.Error)):
        table.put_many(watch(pa.array([1.5])), watch(pa.array([b"x"])))
    with pytest.raises((TypeError, ValueError)):
        table.put_many(watch(keys), watch(keys.chunk(0)))
    with pytest.raises((fb.Error, KeyError)):
        table.put_arrow(watch(pa.table({"id": keys})), "id", "w")
    table.delete_many(watch(keys))
    watch.check(12)


AMID_THE_END = """
import sys
import pyarrow as pa, polars as pl
import forebay as fb
db = fb.open(sys.argv[1], memory="4MB")
stored, memory = db.aggregator("g", key="k", aggs={"n": fb.count()}), fb.Aggregator(key="k", aggs={"n": fb.count()})
held = []
for groups in (stored, memory):
    groups.update(pa.table({"k": range(100_000)}))
    reader = pa.RecordBatchReader.from_stream(groups.result())
    held += [reader, reader.read_next_batch(), groups.result().__arrow_c_stream__(), groups.get_many(pa.table({"k": [1]}))]
table = db.table("t")
table.put_many([b"a"], [b"b"])
held += [table.get_many(pa.array([b"a"])), iter(table.items()), pl.DataFrame(memory.result())]
if sys.argv[2] == "cycle":
    held.append(held)
    del held, groups, reader
print("done")
"""


@pytest.mark.parametrize("how", ["held", "cycle"])
def test_the_interpreter_ends_amid_streams(how: str, place: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", AMID_THE_END, place / "db", how],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
