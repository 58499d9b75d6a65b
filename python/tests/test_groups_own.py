"""Aggregation functions in Python: held against plain loops, and everything that may go wrong in them."""

from __future__ import annotations

import _thread
import gc
import random
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import forebay as fb


Aggs = dict[str, str | fb.UserAggregate]


class Mean(fb.UserAggregate):
    """By Polars."""

    name = "mean"
    state = {"sum": "Float64", "n": "Int64"}
    answer = "Float64"
    tolerance = 1e-9

    def update(self, values: Any, groups: Any) -> Any:
        frame = pl.DataFrame(values).select(pl.first().cast(pl.Float64).alias("v")).with_columns(g=pl.Series(groups))
        parts = frame.group_by("g").agg(sum=pl.col("v").sum(), n=pl.col("v").count().cast(pl.Int64))
        return parts.sort("g").select("sum", "n")

    def merge(self, states: Any, groups: Any) -> Any:
        return pl.DataFrame(states).group_by(pl.Series(groups).alias("g")).sum().sort("g")

    def evaluate(self, states: Any) -> Any:
        states = pl.DataFrame(states)
        return pl.select(pl.when(states["n"] > 0).then(states["sum"] / states["n"])).to_series()


class Words(fb.UserAggregate):
    """All texts in order: by pyarrow and plain Python, with a state that grows, and an answer that is a list."""

    name = "words"
    version = 3
    state = pa.schema([("words", pa.list_(pa.large_string()))])
    answer = pa.list_(pa.string_view())

    def update(self, values: Any, groups: Any) -> Any:
        return self.merge([[word] for word in pa.record_batch(values).column(0).to_pylist()], groups)

    def merge(self, states: Any, groups: Any) -> Any:
        groups = pa.array(groups).to_pylist()
        words: list[list[Any]] = [[] for _ in range(max(groups) + 1)]
        lists = states if isinstance(states, list) else pa.record_batch(states).column(0).to_pylist()
        for group, more in zip(groups, lists, strict=True):
            words[group] += more
        return pa.record_batch({"words": pa.array([sorted(one, key=str) for one in words], pa.list_(pa.string()))})

    def evaluate(self, states: Any) -> Any:
        return pa.chunked_array(pa.record_batch(states).column(0).cast(pa.list_(pa.string())))


def rows(rng: random.Random, count: int, keys: int) -> pa.Table:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    return pa.table(
        {
            "k": pa.array([maybe(rng.randrange(keys)) for _ in range(count)], pa.int32()),
            "s": pa.array([rng.choice(["a", "b,c", "é"]) for _ in range(count)]).dictionary_encode(),
            "v": [maybe(rng.randrange(100)) for _ in range(count)],
            "w": [maybe(rng.choice(["x", "yy", "ß"])) for _ in range(count)],
        }
    )


def expected(table: pa.Table, key: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in table.to_pylist():
        groups.setdefault(tuple(row[name] for name in key), []).append(row)
    answers = {}
    for group, those in groups.items():
        values = [row["v"] for row in those if row["v"] is not None]
        answers[group] = {
            "m": sum(values) / len(values) if values else None,
            "words": sorted((row["w"] for row in those), key=str),
            "n": len(those),
        }
    return answers


def found(groups: fb.Aggregator | fb.StoredAggregator, key: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row.pop(name) for name in key): row for row in pa.table(groups.result()).to_pylist()}


def close(one: Any, other: Any) -> bool:
    for answers in (one, other):
        for row in answers.values():
            row["m"] = None if row["m"] is None else round(row["m"], 9)
    return bool(one == other)


AGGS: Aggs = {"m": Mean("v"), "words": Words("w"), "n": fb.count()}


@pytest.mark.parametrize("where", ["memory", "files", "stored"])
@pytest.mark.parametrize("key", [[], ["k"], ["s", "k"]], ids=",".join)
def test_functions_of_ones_own(where: str, key: list[str], rng: random.Random, place: Path) -> None:
    table = rows(rng, 3000, 40)
    with fb.open(place / "db", memory="4MB") as db:
        groups: fb.Aggregator | fb.StoredAggregator
        if where == "stored":
            groups = db.aggregator("g", key=key, aggs=AGGS)
        else:
            groups = fb.Aggregator(key=key, aggs=AGGS, memory="64MB", spill=place if where == "files" else None)
        assert groups.update(table.slice(0, 1000)) == 1000
        assert groups.update(table.slice(0, 0)) == 0
        # Each call brings every group a state: lists become long, and are merged in between.
        for start in range(1000, 3000, 20):
            assert groups.update(table.slice(start, 20)) == 20
        wanted = expected(table, key)
        assert close(found(groups, key), wanted)
        if where == "stored":
            groups.finalize()  # type: ignore[union-attr]
            db.flush()
            assert close(found(groups, key), wanted)
        for group in rng.sample(sorted(wanted, key=str), min(5, len(wanted))):
            one = groups.get(*group)
            assert one is not None and close({0: one}, {0: wanted[group]})
        if key == ["k"]:
            asked = pa.table({"k": pa.array([3, 777, None], pa.int32())})
            many = pa.table(groups.get_many(asked))
            assert many.schema.field("words").type == pa.list_(pa.string())
            assert many["m"].to_pylist()[1] is None and many["words"].to_pylist()[1] is None
            assert many["words"].to_pylist()[0] == wanted[(3,)]["words"]
            best = pa.table(groups.top("m", 3))["m"].to_pylist()
            assert best == sorted((row["m"] for row in pa.table(groups.result()).to_pylist()), reverse=True)[:3]
            with pytest.raises(fb.Invalid, match="no order"):
                groups.top("words")
        merged = fb.Aggregator(key=key, aggs=AGGS)
        assert merged.merge(pa.table(groups.states())) == len(wanted)
        merged.update(table)
        assert sum(pa.table(merged.result())["n"].to_pylist()) == 6000
        assert pl.DataFrame(merged.result()).height == len(wanted)


def test_alone_and_over_many_batches(rng: random.Random) -> None:
    """Without built-in functions beside, only first rows are grouped; and one call has rows of many batches."""
    calls = []

    class Counted(Mean):
        def update(self, values: Any, groups: Any) -> Any:
            calls.append(len(groups))
            return super().update(values, groups)

    table = rows(rng, 5000, 50)
    groups = fb.Aggregator(key="k", aggs={"m": Counted("v")})
    assert groups.update(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))) == 5000
    assert calls[-1] == 5000 and max(calls[:-1]) == 64
    wanted = {group: {"m": row["m"]} for group, row in expected(table, ["k"]).items()}
    assert close(found(groups, ["k"]), wanted)
    big = pa.table({"v": pa.array(range(2_100_000))})
    calls.clear()
    whole = fb.Aggregator(aggs={"m": Counted("v")})
    assert whole.update(big) == 2_100_000
    assert [count for count in calls if count > 64] == [1 << 20, 1 << 20, 2_100_000 - (2 << 20)]
    assert whole.get() == {"m": 2_099_999 / 2}


def test_beyond_memory(place: Path) -> None:
    table = pa.table({"k": pa.array(range(300_000)), "v": pa.array([1.0] * 300_000)})
    with fb.Aggregator(key="k", aggs={"m": Mean("v")}, memory="4MB", spill=place) as groups:
        for _ in range(3):
            groups.update(table)
        assert groups.memory_bytes < 24 << 20
        assert groups.get(77) == {"m": 1.0}
        assert pa.table(groups.result())["m"].to_pylist() == [1.0] * 300_000


def test_groups_that_are_kept(place: Path, rng: random.Random) -> None:
    table = rows(rng, 1000, 30)
    with fb.open(place / "db", memory="4MB") as db:
        groups = db.aggregator("g", key="k", aggs=AGGS)
        for start in range(0, 1000, 10):
            groups.commit(table.slice(start, 10), metadata=str(start + 10).encode())
    with fb.open(place / "db", memory="4MB") as db:
        with pytest.raises(fb.Invalid, match=r"aggregator `g` cannot be opened: `mean/1:v` is a function of a program"):
            db.aggregator("g")

        class Other(Mean):
            version = 2

        with pytest.raises(fb.Invalid, match="`mean/1:v` is a function of a program's own, and is not given"):
            db.aggregator("g", key="k", aggs={**AGGS, "m": Other("v")})

        class Wider(Mean):
            state = {"sum": "Float64", "n": "Int64", "more": "Utf8"}

        with pytest.raises(fb.Invalid, match=r"own.mean/1\(state=sum:Float64;n:Int64\)"):
            db.aggregator("g", key="k", aggs={**AGGS, "m": Wider("v")})
        groups = db.aggregator("g", key="k", aggs=AGGS)
        assert groups.metadata == b"1000"
        assert close(found(groups, ["k"]), expected(table, ["k"]))
        # All of a commit or nothing.
        bad = pa.table({"k": pa.array([1], pa.int32()), "v": ["no number"], "w": ["x"]})
        before = found(groups, ["k"])
        with pytest.raises(pl.exceptions.InvalidOperationError):
            groups.commit(bad, metadata=b"never")
        assert found(groups, ["k"]) == before and groups.metadata == b"1000"
        assert db.verify()["problems"] == []


def test_a_function_that_is_not_there_keeps_nobody_from_writing(place: Path, rng: random.Random) -> None:
    """Its records had waited in the log, and once they filled the write buffers no table took writes."""
    table = rows(rng, 1000, 30)
    with fb.open(place / "db", memory="4MB") as db:
        db.aggregator("g", key="k", aggs=AGGS).update(table)
    with fb.open(place / "db", memory="4MB") as db:
        other = db.table("other")
        for at in range(0, 200_000, 10_000):
            keys = [b"%08d" % key for key in range(at, at + 10_000)]
            other.put_many(keys, [key * 10 for key in keys])
        db.flush()
        db.wait_until_idle()
        assert other.count() == 200_000
    assert fb.rescue(place / "db", place / "rescued", memory="4MB")
    for path in (place / "db", place / "rescued"):
        with fb.open(path, memory="4MB") as db:
            groups = db.aggregator("g", key="k", aggs=AGGS)
            assert close(found(groups, ["k"]), expected(table, ["k"]))
            groups.update(table)
            assert close(found(groups, ["k"]), expected(pa.concat_tables([table, table]), ["k"]))


class Faulty(Mean):
    """Does what it is told to."""

    def __init__(self, *columns: str) -> None:
        super().__init__(*columns)
        self.on: str | None = None
        self.act: Callable[[Any], Any] = lambda result: result

    def update(self, values: Any, groups: Any) -> Any:
        result = super().update(values, groups)
        return self.act(result) if self.on == "update" else result

    def merge(self, states: Any, groups: Any) -> Any:
        result = super().merge(states, groups)
        return self.act(result) if self.on == "merge" else result

    def evaluate(self, states: Any) -> Any:
        result = super().evaluate(states)
        return self.act(result) if self.on == "evaluate" else result


def raises(error: BaseException) -> Callable[[Any], Any]:
    def act(_result: Any) -> Any:
        raise error

    return act


WRONG = [
    (lambda result: result.slice(1), fb.Invalid, "returned . rows, where . are expected"),
    (lambda result: None, TypeError, "NoneType has neither"),
    (lambda result: [1, 2], TypeError, "list has neither"),
    (lambda result: result.drop("n"), fb.Invalid, "column `n`: of type Int64 is expected, and there is none"),
    (lambda result: result.cast(pl.Int8), fb.Invalid, "of type Float64 is expected, and Int8"),
    (raises(ZeroDivisionError("division")), ZeroDivisionError, "division"),
    (raises(KeyboardInterrupt("stop")), KeyboardInterrupt, "stop"),
    (raises(SystemExit(3)), SystemExit, "3"),
]


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "stored"])
@pytest.mark.parametrize("call", ["update", "merge", "evaluate"])
def test_what_calls_do_wrong(stored: bool, call: str, db: fb.Database) -> None:
    faulty = Faulty("v")
    aggs: Aggs = {"m": faulty, "n": fb.count()}
    groups: fb.Aggregator | fb.StoredAggregator
    groups = db.aggregator("g", key="k", aggs=aggs) if stored else fb.Aggregator(key="k", aggs=aggs)
    table = pa.table({"k": [1, 2, 1], "v": [3, 5, 4]})
    groups.update(table)
    groups.update(table)
    before = found(groups, ["k"])
    assert before == {(1,): {"m": 3.5, "n": 4}, (2,): {"m": 5.0, "n": 2}}
    wrong: list[tuple[Callable[[Any], Any], type[BaseException], str]] = list(WRONG)
    if call == "evaluate":
        wrong = [wrong[0], (lambda result: [1], fb.Invalid, "returned list"), *wrong[5:]]
        wrong.append((lambda result: result.cast(pl.Int8), fb.Invalid, "of type Float64 is expected, and Int8"))
    for act, error, match in wrong:
        faulty.on, faulty.act = call, act
        with pytest.raises(error, match=match) as told:
            if call == "update":
                groups.update(table)
            else:
                groups.get_many(table.select(["k"]))
        if error is ZeroDivisionError:
            assert told.value.__notes__[-1] == f"in {call} of the function `mean`"
        if call != "update":
            # Who reads a stream is told in its own way.
            with pytest.raises((pa.ArrowException, OSError, ValueError, KeyboardInterrupt)):
                pa.table(groups.result())
        faulty.on = None
        assert found(groups, ["k"]) == before


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "stored"])
def test_a_merge_amid_the_engine_loses_nothing(stored: bool, db: fb.Database) -> None:
    faulty = Faulty("v")
    aggs: Aggs = {"m": faulty}
    groups: fb.Aggregator | fb.StoredAggregator
    groups = db.aggregator("g", key="k", aggs=aggs) if stored else fb.Aggregator(key="k", aggs=aggs)
    table = pa.table({"k": [1] * 10, "v": range(10)})
    groups.update(table)
    faulty.on, faulty.act = "merge", raises(ZeroDivisionError("amid"))
    told = added = 0
    for _ in range(200):
        try:
            groups.update(table)
            added += 1
            if stored:
                db.flush()
            else:
                pa.table(groups.states())
        except ZeroDivisionError:
            told += 1
    assert told > 0 and added + told == 200, "each failure is told before anything is done"
    faulty.on = None
    for _ in range(3):
        try:
            groups.get(1)
        except ZeroDivisionError:
            pass
    if stored:
        groups.finalize()  # type: ignore[union-attr]
    again = fb.Aggregator(key="k", aggs={"m": faulty, "n": fb.count()})
    assert groups.get(1) == {"m": 4.5}
    states = pa.table(groups.states())
    with pytest.raises(fb.Invalid, match="these are groups by"):
        again.merge(states)


def test_laws(rng: random.Random) -> None:
    table = pa.table({"k": [1, 2, 1], "v": [3, 5, 4]})

    class Last(Mean):
        """Hangs on order."""

        def merge(self, states: Any, groups: Any) -> Any:
            return pl.DataFrame(states).group_by(pl.Series(groups).alias("g")).last().sort("g")

    class Twice(Mean):
        """Of one state gives another."""

        def merge(self, states: Any, groups: Any) -> Any:
            merged: pl.DataFrame = super().merge(states, groups)
            return merged.with_columns(pl.col("sum") + 1)

    class Mixed(Mean):
        """Adds up all groups."""

        def merge(self, states: Any, groups: Any) -> Any:
            merged: pl.DataFrame = super().merge(states, groups)
            return merged.with_columns(pl.col("sum").sum(), pl.col("n").sum())

    for wrong, law in (
        (Last, "the merge does not hang on the order"),
        (Twice, "the merge of one state"),
        (Mixed, "the merge of one state"),
    ):
        groups = fb.Aggregator(key="k", aggs={"m": wrong("v")})
        with pytest.raises(fb.Invalid, match=f"function `mean` breaks a law: {law}"):
            groups.update(table)
        groups = fb.Aggregator(key="k", aggs={"m": wrong("v")}, schema=table.schema)
        assert pa.table(groups.result()).num_rows == 0

        class Sampled(wrong):  # type: ignore[misc, valid-type]
            def samples(self) -> Any:
                return table

        with pytest.raises(fb.Invalid, match="breaks a law"):
            fb.Aggregator(key="k", aggs={"m": Sampled("v")})

        class Lenient(wrong):  # type: ignore[misc, valid-type]
            tolerance = None

        fb.Aggregator(key="k", aggs={"m": Lenient("v")}).update(table)


def test_what_is_no_function() -> None:
    def of(**changes: Any) -> fb.UserAggregate:
        made: fb.UserAggregate = type("Changed", (Mean,), changes)("v")
        return made

    for changes, error, match in (
        ({"name": "a b"}, fb.Invalid, "`a b` of a function is not of letters"),
        ({"name": 7}, TypeError, "its name is no text"),
        ({"version": -1}, TypeError, "its version"),
        ({"state": {"a": "Float46"}}, fb.Invalid, "`Float46` is no type"),
        ({"state": {}}, fb.Invalid, "one column at least"),
        ({"state": {"a": pa.map_(pa.int8(), pa.int8())}}, fb.Invalid, "column `a` of the state"),
        ({"answer": pa.struct([("a", pa.int8())])}, fb.Invalid, "which is not kept"),
        ({"merge": 7}, TypeError, "its merge cannot be called"),
        ({"samples": lambda self: 1}, TypeError, "int has neither"),
    ):
        with pytest.raises(error, match=match):
            fb.Aggregator(aggs={"m": of(**changes)})
    with pytest.raises(TypeError, match="aggs is a dictionary"):
        fb.Aggregator(aggs={"m": object()})  # type: ignore[dict-item]
    with pytest.raises(fb.Invalid, match="two functions are called `own:mean/1:v`"):
        fb.Aggregator(aggs={"m": Mean("v"), "o": Mean("v")})
    one = Mean("v")
    same = fb.Aggregator(aggs={"m": one, "o": one, "p": Mean("w")})
    same.update(pa.table({"v": [1, 2], "w": [5, 7]}))
    assert same.get() == {"m": 1.5, "o": 1.5, "p": 6.0}
    with pytest.raises(fb.Invalid, match="no column `x`; there are: v"):
        fb.Aggregator(aggs={"m": Mean("x")}).update(pa.table({"v": [1]}))
    with pytest.raises(fb.Invalid, match="`mean/1:v` is a function of a program's own"):
        fb.Aggregator(aggs={"m": "own:mean/1:v"})
    assert "own:mean/1:v" in repr(same)


def test_no_call_from_within(db: fb.Database) -> None:
    inner = fb.Aggregator(aggs={"n": fb.count()})
    table = db.table("t")
    attempts: list[Callable[[], Any]] = [
        lambda: inner.update(pa.table({"v": [1]})),
        lambda: groups.get(),
        lambda: table.put(b"k", b"v"),
        lambda: db.aggregator("other", aggs={"n": fb.count()}),
        lambda: db.close(),
    ]
    tried = []

    class Reentrant(Mean):
        def evaluate(self, states: Any) -> Any:
            for attempt in attempts:
                with pytest.raises(fb.Invalid, match="called from within"):
                    attempt()
                tried.append(attempt)
            return super().evaluate(states)

    groups = fb.Aggregator(aggs={"m": Reentrant("v")})
    groups.update(pa.table({"v": [1, 2]}))
    assert groups.get() == {"m": 1.5} and len(tried) >= 5
    assert inner.update(pa.table({"v": [1]})) == 1, "and afterwards it goes on"


def test_many_threads(rng: random.Random, db: fb.Database) -> None:
    table = rows(rng, 4000, 20)
    memory, stored = fb.Aggregator(key="k", aggs=AGGS), db.aggregator("g", key="k", aggs=AGGS)
    failed: list[BaseException] = []

    def work(part: int) -> None:
        try:
            for groups in (memory, stored):
                for start in range(part * 1000, part * 1000 + 1000, 50):
                    groups.update(table.slice(start, 50))
                    groups.get(start % 20)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    wanted = expected(table, ["k"])
    assert close(found(memory, ["k"]), wanted) and close(found(stored, ["k"]), wanted)


def test_ctrl_c_amid_a_call() -> None:
    class Interrupted(Mean):
        at = 0

        def update(self, values: Any, groups: Any) -> Any:
            Interrupted.at += 1
            if Interrupted.at > 8:
                _thread.interrupt_main()
                for _ in range(10_000_000):
                    pass
            return super().update(values, groups)

    groups = fb.Aggregator(aggs={"m": Interrupted("v"), "n": fb.count()}, threads=1)
    groups.update(pa.table({"v": [1, 3]}))
    Interrupted.at = 8
    with pytest.raises(KeyboardInterrupt):
        groups.update(pa.table({"v": [5]}))
    assert groups.get() == {"m": 2.0, "n": 2}


def test_the_function_goes_with_its_groups() -> None:
    one = Mean("v")
    gone = weakref.ref(one)
    groups = fb.Aggregator(aggs={"m": one})
    groups.update(pa.table({"v": [1, 3]}))
    result = groups.result()
    stream = pa.RecordBatchReader.from_stream(result)
    del one, groups, result
    gc.collect()
    assert stream.read_all()["m"].to_pylist() == [2.0], "a stream has what it needs"
    del stream
    gc.collect()
    assert gone() is None


AT_EXIT = """
import sys
import polars as pl
import forebay as fb
sys.path.insert(0, sys.argv[2])
from test_groups_own import Mean
db = fb.open(sys.argv[1], memory="4MB")
groups = db.aggregator("g", key="k", aggs={"m": Mean("v")})
memory = fb.Aggregator(key="k", aggs={"m": Mean("v")}, memory="4MB", spill=sys.argv[1])
for _ in range(60):
    for each in (groups, memory):
        each.update(pl.DataFrame({"k": range(500), "v": range(500)}))
stream = groups.result().__arrow_c_stream__()
reader = memory.result().__arrow_c_stream__()
print("done")
"""


def test_the_interpreter_may_end_amid_all(place: Path) -> None:
    """Threads of the engine merge until the end, and nobody waits for one that waits for the interpreter."""
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", AT_EXIT, place / "db", Path(__file__).parent],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
    with fb.open(place / "db") as db:
        groups = db.aggregator("g", key="k", aggs={"m": Mean("v")})
        assert groups.get(7) == {"m": 7.0}


def test_answers_are_read_amid_a_call(db: fb.Database) -> None:
    """pyarrow lets go of the interpreter's lock amid a call that holds it, and reads a stream that needs it."""
    groups = db.aggregator("g", key="k", aggs={"m": Mean("v")})
    groups.update(pa.table({"k": [1, 1, 2], "v": [1, 2, 5]}))
    read = db.transaction(lambda _: pa.table(groups.result()))
    assert read.sort_by("k").to_pydict() == {"k": [1, 2], "m": [1.5, 5.0]}

    def rows() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            assert pa.table(groups.result()).num_rows == 2
            yield pa.record_batch({"k": [1]})

    counts = fb.Aggregator(key="k", aggs={"n": fb.count()})
    assert counts.update(pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), rows())) == 3


HELD = """
import ctypes, faulthandler, sys, threading, time
import polars as pl
import forebay as fb
sys.path.insert(0, sys.argv[1])
from test_groups_own import Mean
faulthandler.dump_traceback_later(60, exit=True)

class Slow(Mean):
    def merge(self, states, groups):
        time.sleep(0.005)
        return super().merge(states, groups)

call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

class Stream(ctypes.Structure):
    _fields_ = [("get_schema", call), ("get_next", call), ("get_last_error", ctypes.c_void_p)]
    _fields_ += [("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]

class Array(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")]
    _fields_ += [(name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private_data")]

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

def drained(rows):
    capsule = rows.__arrow_c_stream__()
    at = pointer(capsule, b"arrow_array_stream")
    count = 0
    while True:
        array = Array()
        assert Stream.from_address(at).get_next(at, ctypes.addressof(array)) == 0
        if not array.release:
            return count
        count += array.length
        release(array.release)(ctypes.addressof(array))

groups = fb.Aggregator(key="k", aggs={"m": Slow("v")}, threads=2)
rows = pl.DataFrame({"k": range(300), "v": [1] * 300})
groups.update(rows)
over = threading.Event()

def add():
    while not over.is_set():
        groups.update(rows)

adding = threading.Thread(target=add)
adding.start()
until = time.monotonic() + 5
while time.monotonic() < until:
    assert drained(groups.states()) == 300
assert drained(groups.result()) == 300
over.set()
adding.join()
print("done")
"""


def programmed(program: str, *args: object) -> tuple[int, str, str]:
    """What an interpreter of its own ends with, and says."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)], capture_output=True, text=True, timeout=200, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_a_reader_may_hold_the_interpreters_lock() -> None:
    """One that is called through ctypes.PYFUNCTYPE does, while another thread's merge waits for it."""
    assert programmed(HELD, Path(__file__).parent) == (0, "done\n", "")


DROPPED = """
import sys, threading, time
import polars as pl
import forebay as fb
sys.path.insert(0, sys.argv[2])
from test_groups_own import Mean
main, amid, go, gone = threading.get_ident(), threading.Event(), threading.Event(), threading.Event()

class Dropping(Mean):
    def merge(self, states, groups):
        if threading.get_ident() != main and not amid.is_set():
            amid.set()
            go.wait(60)
            held.clear()
            gone.set()
        return super().merge(states, groups)

held = [fb.open(sys.argv[1], memory="16MB")]
held.append(held[0].aggregator("g", key="k", aggs={"m": Dropping("v")}))
rows = pl.DataFrame({"k": range(20_000), "v": [1] * 20_000})
for _ in range(400):
    held[1].update(rows)
    if amid.is_set():
        break
assert amid.is_set()
go.set()
assert gone.wait(60)
for _ in range(600):
    try:
        db = fb.open(sys.argv[1], memory="16MB")
        break
    except fb.Busy:
        time.sleep(0.1)
assert db.aggregator("g", key="k", aggs={"m": Mean("v")}).get(7) == {"m": 1.0}
print("done")
"""


def test_a_database_may_be_dropped_amid_a_merge(place: Path) -> None:
    """As a collection of garbage does, by a thread of the engine that closing it waits for."""
    assert programmed(DROPPED, place / "db", Path(__file__).parent) == (0, "done\n", "")


CLOSED = """
import faulthandler, sys, threading, time
import polars as pl
import pyarrow as pa
import forebay as fb
sys.path.insert(0, sys.argv[1])
from test_groups_own import Mean
faulthandler.dump_traceback_later(60, exit=True)
main, amid, closed = threading.get_ident(), threading.Event(), threading.Event()

class Slow(Mean):
    def merge(self, states, groups):
        if threading.get_ident() != main and not amid.is_set():
            amid.set()
            closed.wait(60)
            for _ in range(50):
                time.sleep(0.01)
        return super().merge(states, groups)

one = fb.Aggregator(key="k", aggs={"m": Mean("v")})
one.update(pl.DataFrame({"k": range(1000), "v": [1] * 1000}))
states = pa.table(one.states())
groups = fb.Aggregator(key="k", aggs={"m": Slow("v")}, threads=2)

def closing():
    for _ in range(20_000):
        if amid.is_set():
            break
        yield from states.to_batches()
    groups.close()
    closed.set()

assert groups.merge(pa.RecordBatchReader.from_batches(states.schema, closing())) > 0
assert amid.is_set()
print("done")
"""


def test_groups_may_be_closed_amid_a_call_of_another_thread() -> None:
    """The call is the last that lets go of them then: it waited, with the interpreter's lock, for a merge that needs it."""
    assert programmed(CLOSED, Path(__file__).parent) == (0, "done\n", "")


INTERRUPTED = """
import _thread, faulthandler, os, signal, sys, threading, time
import polars as pl
import pyarrow as pa
import forebay as fb
faulthandler.dump_traceback_later(100, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)
main, merges = threading.get_ident(), 0

class Padded(fb.UserAggregate):
    name, state, answer = "padded", {"pad": "Binary"}, "Int64"

    def update(self, values, groups):
        count = max(pa.array(groups).to_pylist()) + 1
        return pa.record_batch({"pad": pa.array([os.urandom(200) for _ in range(count)], pa.binary())})

    def merge(self, states, groups):
        global merges
        if threading.get_ident() != main and merges < 1000:
            merges += 1
            if merges == 1:
                _thread.interrupt_main()
            time.sleep(0.002)
        return self.update(states, groups)

    def evaluate(self, states):
        return pa.array([0] * len(states), pa.int64())

groups = fb.Aggregator(key=["a", "b"], aggs={"p": Padded("v")})
for at in range(300):
    groups.update(pl.DataFrame({"a": range(1000), "b": [at] * 1000, "v": [0] * 1000}))
try:
    groups.by("a", memory="4MB", spill=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
assert merges > 0, "files were merged meanwhile"
"""


def test_ctrl_c_ends_a_roll_up_to_files(place: Path) -> None:
    """What was made by then is let go of, and files of it are being merged by a function that needs the interpreter's lock."""
    assert programmed(INTERRUPTED, place) == (0, "interrupted\n", "")
    assert list(place.iterdir()) == []


def test_the_object_that_came_last_merges(db: fb.Database) -> None:
    """In a notebook a function is mended and given again while the database stays open."""

    class Lossy(Mean):
        tolerance = None  # type: ignore[assignment]

        def merge(self, states: Any, groups: Any) -> Any:
            merged: pl.DataFrame = super().merge(states, groups)
            return merged.with_columns(pl.col("sum") * 0)

    faulty = Faulty("v")
    one = pa.table({"k": [1], "v": [1]})
    for name, wrong in (("lossy", Lossy("v")), ("faulty", faulty)):
        faulty.on = None
        groups = db.aggregator(name, key="k", aggs={"m": wrong})
        for _ in range(5):
            groups.update(one)
        faulty.on, faulty.act = "merge", raises(ZeroDivisionError("of before"))
        groups = db.aggregator(name, key="k", aggs={"m": Mean("v")})
        for _ in range(200):
            groups.update(one)
        db.flush()
        groups.finalize()
        assert groups.get(1) == {"m": 1.0}
        assert len(pa.table(groups.states()).column(1)[0].as_py()) < 1000, "of 205 states few are left"


def test_what_one_handle_failed_at_is_told_by_another(db: fb.Database) -> None:
    faulty = Faulty("v")
    one = pa.table({"k": [1], "v": [1]})
    groups = db.aggregator("g", key="k", aggs={"m": faulty})
    groups.update(one)
    groups = db.aggregator("g", key="k", aggs={"m": faulty})
    groups.update(one)
    faulty.on, faulty.act = "merge", raises(ZeroDivisionError("of before"))
    told = 0
    for _ in range(200):
        try:
            groups.update(one)
            db.flush()
        except ZeroDivisionError:
            told += 1
    faulty.on = None
    assert told > 0
