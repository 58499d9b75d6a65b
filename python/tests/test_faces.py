"""Shelves, lazy frames of Polars, DuckDB by name, and group-by in two stages."""

from __future__ import annotations

import random
import shelve
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, cast

import duckdb
import forebay.polars
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay._shelf import decode, encode

keys = st.one_of(st.text(max_size=6), st.binary(max_size=6), st.integers(), st.integers(-300, 300))


def rank(key: str | int | bytes) -> tuple[int, Any]:
    return (0 if isinstance(key, bytes) else 1 if isinstance(key, int) else 2, key.encode() if isinstance(key, str) else key)


@given(st.lists(keys, max_size=30))
def test_keys_of_shelves_keep_their_order(some: list[Any]) -> None:
    assert [decode(encode(key)) for key in some] == some
    assert sorted(some, key=encode) == sorted(some, key=rank)


def test_keys_that_are_none() -> None:
    for wrong in (1.5, None, (1,), bytearray(b"a")):
        with pytest.raises(TypeError, match="give str, int or bytes"):
            encode(wrong)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        encode(1 << 1000)
    for stored in (b"", b"x", b"\x20"):
        with pytest.raises(fb.Invalid, match="another kind"):
            decode(stored)


@pytest.mark.parametrize("values", ["pickle", "json"])
def test_a_shelf_is_a_dictionary(place: Path, values: Any, rng: random.Random) -> None:
    model: dict[Any, Any] = {}
    some: list[Any] = [b"a", b"", "a", "", "\u00e9", 0, 1, -1, 256, -70_000]
    objects: list[Any] = [None, 1, "text", [1, {"a": [2.5]}], {}]
    with fb.Shelf(place / "shelf", values=values, memory="8MB") as shelf:
        assert isinstance(shelf, MutableMapping) and not shelf and len(shelf) == 0
        for _ in range(400):
            key = rng.choice(some)
            value: Any = rng.choice(objects)
            act = rng.randrange(9)
            if act < 3:
                shelf[key] = model[key] = value
            elif act == 3:
                assert shelf.pop(key, "none") == model.pop(key, "none")
            elif act == 4:
                assert shelf.setdefault(key, value) == model.setdefault(key, value)
            elif act == 5:
                assert shelf.get(key, 7) == model.get(key, 7) and (key in shelf) == (key in model)
            elif act == 6 and model:
                last = max(model, key=rank)
                assert shelf.popitem() == (last, model.pop(last))
            elif act == 7:
                pairs = {rng.choice(some): value for _ in range(3)}
                shelf.update(pairs)
                model.update(pairs)
            else:
                assert list(shelf) == sorted(model, key=rank) == list(reversed(list(reversed(shelf))))
                assert list(shelf.items()) == [(key, model[key]) for key in shelf]
                assert list(shelf.values()) == [model[key] for key in shelf] and len(shelf) == len(model)
            assert bool(shelf) == bool(model)
        shelf.update([("p", 1)], q=2)
        assert shelf["p"] == 1 and shelf["q"] == 2 and dict(shelf) == dict(shelf.items())
        assert [key for key, _ in shelf.range(0, 2)] == [key for key in shelf if isinstance(key, int) and 0 <= key < 2]
        assert [key for key, _ in shelf.range("p", reverse=True)] == [key for key in reversed(shelf) if key in ("p", "q", "\u00e9")]
        for missing in (lambda: shelf["nothing"], lambda: shelf.__delitem__("nothing")):
            with pytest.raises(KeyError, match="nothing"):
                missing()
        assert 1.5 not in shelf and "Shelf of" in repr(shelf)
        shelf.sync()
    with fb.Shelf(place / "shelf") as shelf:
        assert shelf["p"] == 1
        shelf.clear()
        assert not shelf
        with pytest.raises(KeyError):
            shelf.popitem()
    with pytest.raises(fb.Invalid, match=f"values of {values}"):
        fb.Shelf(place / "shelf", values="bytes")
    with pytest.raises(fb.Invalid, match="give"):
        fb.Shelf(place / "other", values="yaml")  # type: ignore[arg-type]
    with pytest.raises(fb.Error, match="closed"):
        shelf["a"] = 1


def test_the_standard_shelf_takes_a_table(db: fb.Database) -> None:
    table = db.table("t")
    with cast(Any, shelve.Shelf)(table) as shelf:
        shelf["a"] = {"b": [1]}
        assert shelf["a"] == {"b": [1]} and "a" in shelf and list(shelf) == ["a"]
        del shelf["a"]
        assert shelf.get("a") is None
    with fb.Shelf(db.path.parent / "bytes", values="bytes") as plain:
        plain["k"] = memoryview(b"v")
        assert plain["k"] == b"v"


KEY = pl.col("key")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (KEY >= b"b", (b"b", None)),
        (KEY > b"b", (b"b\0", None)),
        (KEY < b"b", (b"", b"b")),
        (KEY <= b"b", (b"", b"b\0")),
        (KEY == b"b", (b"b", b"b\0")),
        (pl.lit(b"b") < KEY, (b"b\0", None)),
        ((KEY >= b"b") & (KEY < b"d") & (pl.col("value") == b"x"), (b"b", b"d")),
        ((KEY >= b"b") & (KEY >= b"c") & (KEY <= b"z") & (KEY < b"d"), (b"c", b"d")),
        ((KEY > b"d") & (KEY < b"b"), (b"d\0", b"d\0")),
        ((KEY >= b"b") | (KEY < b"a"), (b"", None)),
        (~(KEY >= b"b"), (b"", None)),
        (KEY != b"b", (b"", None)),
        (pl.col("value") >= b"b", (b"", None)),
        (KEY.bin.size() > 1, (b"", None)),
    ],
)
def test_filters_that_are_ranges(predicate: pl.Expr, expected: tuple[bytes | None, bytes | None]) -> None:
    assert forebay.polars.key_range(predicate) == expected


@pytest.mark.parametrize("layout", ["wb-tree", "wb-tree:ordered"])
def test_lazy_frames_of_tables(db: fb.Database, rng: random.Random, layout: str) -> None:
    table = db.table("t", layout=layout)
    entries = {rng.randbytes(3): rng.randbytes(2) for _ in range(3000)}
    table.update(entries)
    frame = pl.DataFrame({"key": list(entries), "value": list(entries.values())}, schema={"key": pl.Binary, "value": pl.Binary})
    scan = forebay.polars.scan(table)
    assert scan.collect_schema() == frame.schema
    for _ in range(30):
        low, high, byte = rng.randbytes(2), rng.randbytes(2), rng.randbytes(1)
        filters = [KEY >= low, KEY < high, KEY == rng.choice(list(entries)), pl.col("value") > byte, KEY > byte, pl.lit(low) >= KEY]
        predicate = rng.choice(filters)
        for other in rng.sample(filters, rng.randrange(3)):
            predicate = predicate & other if rng.random() < 0.8 else predicate | other
        expected = frame.filter(predicate).sort("key")
        assert scan.filter(predicate).collect().sort("key").equals(expected), str(predicate)
        assert scan.filter(predicate).select("value").collect().sort("value").equals(expected.select("value").sort("value"))
        assert scan.filter(predicate).select(pl.len()).collect().item() == len(expected)
        few = rng.randrange(10)
        assert scan.filter(predicate).head(few).collect().height == min(few, len(expected))
        first = pl.DataFrame(list(table.items())[: 100 * few], schema=frame.schema, orient="row").filter(predicate)
        assert scan.head(100 * few).filter(predicate).collect().equals(first), str(predicate)
    assert scan.select(KEY.n_unique()).collect(engine="streaming").item() == len(entries)
    table[b"later"] = b"x"
    assert scan.select(pl.len()).collect().item() == len(entries) + 1, "each collect reads anew"
    held = forebay.polars.scan(table.items())
    table[b"later still"] = b"x"
    assert held.select(pl.len()).collect().item() == len(entries) + 1
    with pytest.raises(TypeError, match="no table"):
        forebay.polars.scan(entries)  # type: ignore[arg-type]


def test_a_filter_reads_no_more_than_its_range(place: Path) -> None:
    with fb.open(place / "db", memory="1MB", write_buffer="64K") as db:
        table = db.ordered_table("t")
        table.put_many((b"%07d" % at for at in range(150_000)), (bytes(10) for _ in range(150_000)))
        db.flush()
        before = db.stats()["device_reads"]
        found = forebay.polars.scan(table).filter((KEY >= b"0010000") & (KEY < b"0010010")).collect()
        assert found.height == 10 and db.stats()["device_reads"] - before < 20
        before = db.stats()["device_reads"]
        assert forebay.polars.scan(table).select("key").collect().height == 150_000
        whole = db.stats()["device_reads"] - before
        assert forebay.polars.scan(table).head(70_000).collect().height == 70_000
        assert db.stats()["device_reads"] - before - whole < 0.95 * whole, "the third batch is not read"


def test_lazy_frames_of_groups(db: fb.Database) -> None:
    rows = pl.DataFrame({"k": [at % 50 for at in range(1000)], "v": range(1000)})
    expected = rows.group_by("k").agg(n=pl.len().cast(pl.Int64), m=pl.col("v").max()).filter(pl.col("m") > 970).sort("k")
    memory = fb.Aggregator(key="k", aggs={"n": fb.count(), "m": fb.max("v")})
    stored = db.aggregator("g", key="k", aggs={"n": fb.count(), "m": fb.max("v")})
    for groups in (memory, stored):
        groups.update(rows)
        for source in (groups, groups.result()):
            scan = forebay.polars.scan(source)
            assert scan.filter(pl.col("m") > 970).sort("k").collect().equals(expected)
            assert scan.select("n").head(3).collect().to_dict(as_series=False) == {"n": [20, 20, 20]}


def test_duckdb_finds_them_by_name(db: fb.Database) -> None:
    table = db.ordered_table("t")
    table.update((b"%04d" % at, b"%d" % (at % 7)) for at in range(5000))
    groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
    groups.update(pa.table({"k": [at % 10 for at in range(1000)]}))
    scan, result, part = table.items(), groups.result(), table.range(b"1000", b"2000")
    asked: Any = duckdb.sql
    for _ in range(3):
        assert asked("select count(*) from scan").fetchall() == [(5000,)]
        assert asked("select count(*), min(key) from part").fetchall() == [(1000, b"1000")]
        assert asked("select sum(n) from result").fetchall() == [(1000,)]
    # Each place in a query has a stream of its own.
    assert asked("select count(*) from scan a join scan b using (key)").fetchall() == [(5000,)]
    relation = asked("select value, count(*) as n from scan group by value")
    assert sum(n for _, n in relation.fetchall()) == 5000
    relation = asked("from result")
    assert len(relation.fetchall()) == len(relation.fetchall()) == 10
    first = asked("from scan where key >= '4990'::blob").to_arrow_table()
    assert pa.table(first).num_rows == 10
    table[b"9999"] = b"new"
    assert asked("select count(*) from scan").fetchall() == [(5000,)], "a scan is of when it was asked for"


# What docs/guide/python.md has for Spark, Ray and Dask.
KEY_COLUMN, AGGS = "word", {"n": fb.count(), "most": fb.max("size"), "users": fb.hll("user")}


def partial(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first stage, in each task: some rows to states of their groups."""
    groups = fb.Aggregator(key=KEY_COLUMN, aggs=AGGS, memory="64MB", spill="/tmp")
    for batch in batches:
        groups.update(batch)
    yield from pa.RecordBatchReader.from_stream(groups.states())


def final(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The second one, in each task: all states of some keys to answers."""
    groups = fb.Aggregator(key=KEY_COLUMN, aggs=AGGS, memory="64MB", spill="/tmp")
    for batch in batches:
        groups.merge(pa.RecordBatch.from_arrays(batch.columns, schema=of_states()))
    yield from pa.RecordBatchReader.from_stream(groups.result())


def of_states() -> pa.Schema:
    few = fb.Aggregator(key=KEY_COLUMN, aggs=AGGS)
    few.update(pa.table({"word": ["a"], "size": [1], "user": [1]}))
    return pa.table(few.states()).schema


def sent(batch: pa.RecordBatch) -> pa.RecordBatch:
    """As another process gets it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


def test_two_stages_over_partitions(rng: random.Random) -> None:
    rows = pa.table(
        {
            "word": [f"w{int(rng.paretovariate(0.5)) % 300}" for _ in range(20_000)],
            "size": [rng.randrange(1000) for _ in range(20_000)],
            "user": [rng.randrange(50) for _ in range(20_000)],
        }
    )
    whole = fb.Aggregator(key=KEY_COLUMN, aggs=AGGS)
    whole.update(rows)
    expected = pa.table(whole.result()).sort_by("word")
    partitions = [rows.slice(at, 3000).to_batches(1000) for at in range(0, rows.num_rows, 3000)]
    states = [sent(batch) for partition in partitions for batch in partial(iter(partition))]
    assert states[0].column_names[0] == KEY_COLUMN
    # A shuffle by key: as hash partitioning does it, whatever the hash.
    buckets: list[list[pa.RecordBatch]] = [[], [], []]
    for batch in states:
        places = [hash(word) % 3 for word in batch[KEY_COLUMN].to_pylist()]
        for bucket in range(3):
            taken = [row for row, place in enumerate(places) if place == bucket]
            bare = batch.take(pa.array(taken, pa.int64())).replace_schema_metadata(None)
            fields = [pa.field(field.name, field.type) for field in bare.schema]
            buckets[bucket].append(sent(pa.RecordBatch.from_arrays(bare.columns, schema=pa.schema(fields))))
    answers = [batch for bucket in buckets for batch in final(iter(bucket))]
    assert pa.Table.from_batches(answers).sort_by("word").equals(expected)
    # A tree of merges, as Dask's reductions are: states of states.
    tree = fb.Aggregator(key=KEY_COLUMN, aggs=AGGS)
    for half in (states[: len(states) // 2], states[len(states) // 2 :]):
        inner = fb.Aggregator(key=KEY_COLUMN, aggs=AGGS)
        for batch in half:
            inner.merge(batch)
        tree.merge(sent(pa.table(inner.states()).combine_chunks().to_batches()[0]))
    assert pa.table(tree.result()).sort_by("word").equals(expected)
