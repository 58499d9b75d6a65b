"""Group-by, in memory, in files and in a database, held against DuckDB, Polars and plain Python over random tables."""

from __future__ import annotations

import datetime
import decimal
import math
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import forebay as fb

EXACT = {
    "n": (fb.count(), "count(*)"),
    "ni": (fb.count("i"), "count(i)"),
    "nt": (fb.count_if("b"), "case when count(b) > 0 then count(*) filter (where b) end"),
    "si": (fb.sum("i"), "sum(i)"),
    "ii": (fb.isum("i"), "sum(i)"),
    "sd": (fb.sum("d"), "sum(d)"),
    "sf": (fb.fsum("f"), "sum(f)"),
    "lo": (fb.min("i"), "min(i)"),
    "hi": (fb.max("f"), "max(f)"),
    "first": (fb.min_text("s"), "min(s)"),
    "last": (fb.max_text("s"), "max(s)"),
    "all": (fb.bool_and("b"), "bool_and(b)"),
    "some": (fb.bool_or("b"), "bool_or(b)"),
    "bits": (fb.bit_or("i"), "bit_or(i)"),
    "u": (fb.distinct("s"), "count(distinct s)"),
}
CLOSE = {
    "m": (fb.mean("f"), "avg(f)"),
    "v": (fb.var("f"), "var_samp(f)"),
    "dev": (fb.stddev("f", ddof=0), "stddev_pop(f)"),
    "c": (fb.corr("f", "i"), "corr(f, i)"),
}
WORDS = ["", "ulm", "Ulm", "a,b", "é", "zero\0in it", "a text that is rather long, longer than views keep"]


def rows(rng: random.Random, count: int) -> pa.Table:
    """Columns of several types with nulls, in chunks of which some are empty, and slices of others."""

    def of(make: Callable[[], Any], kind: pa.DataType) -> pa.ChunkedArray:
        values = pa.array([None if rng.random() < 0.1 else make() for _ in range(count + 7)], kind)
        start = rng.randrange(8)
        values = values.slice(start, count)
        cuts = sorted(rng.randrange(count + 1) for _ in range(3))
        bounds = [0, *cuts, cuts[-1], count]
        return pa.chunked_array([values.slice(a, b - a) for a, b in zip(bounds, bounds[1:], strict=False)], kind)

    day = datetime.date(2024, 2, 27)
    return pa.table(
        {
            "i": of(lambda: rng.randrange(-50, 50), pa.int64()),
            "small": of(lambda: rng.randrange(-3, 3), pa.int16()),
            "f": of(lambda: rng.randrange(-40, 40) / 4, pa.float64()),
            "odd": of(lambda: rng.choice([math.nan, 0.0, -0.0, 1.5, math.inf]), pa.float64()),
            "s": of(lambda: rng.choice(WORDS), pa.string()),
            "large": of(lambda: rng.choice(WORDS), pa.large_string()),
            "view": of(lambda: rng.choice(WORDS), pa.string_view()),
            "coded": of(lambda: rng.choice(WORDS), pa.dictionary(pa.int8(), pa.string())),
            "raw": of(lambda: rng.choice([b"", b"\xff", b"\0"]), pa.binary()),
            "b": of(lambda: rng.random() < 0.5, pa.bool_()),
            "day": of(lambda: day + datetime.timedelta(rng.randrange(4)), pa.date32()),
            "moment": of(lambda: datetime.datetime(2024, 2, 28, rng.randrange(3)), pa.timestamp("us")),
            "d": of(lambda: decimal.Decimal(rng.randrange(-500, 500)) / 100, pa.decimal128(10, 2)),
        }
    )


KEYS = [
    [],
    ["s"],
    ["i"],
    ["small", "b"],
    ["odd"],
    ["large", "day"],
    ["view", "coded"],
    ["raw", "moment"],
    ["d", "s", "b"],
]


def plain(value: Any) -> Any:
    """Values that are one group, or one answer, as one value."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def by_key(table: pa.Table, keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Rows by the values of their first columns."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        key, rest = tuple(map(plain, row[:keys])), tuple(map(plain, row[keys:]))
        assert key not in found, "each group once"
        found[key] = rest
    return found


def asked_of_duckdb(table: pa.Table, key: list[str], functions: dict[str, tuple[str, str]]) -> pa.Table:
    """The answers that are expected."""
    columns = [*key, *(f"{text} as {name}" for name, (_, text) in functions.items())]
    group = f"group by {', '.join(key)}" if key else ""
    query = f"select {', '.join(columns)} from tab {group}"
    relation = duckdb.connect().from_arrow(table).query("tab", query)
    assert relation is not None
    return relation.to_arrow_table()


@pytest.mark.parametrize("key", KEYS, ids=",".join)
@pytest.mark.parametrize("where", ["memory", "files", "stored"])
def test_groups_are_those_of_duckdb(key: list[str], where: str, rng: random.Random, place: Path) -> None:
    functions = {**EXACT, **CLOSE}
    aggs = {name: text for name, (text, _) in functions.items()}
    table = rows(rng, 3000)
    expected = by_key(asked_of_duckdb(table, key, functions), len(key))
    with fb.open(place / "db", memory="4MB") as db:
        groups: fb.Aggregator | fb.StoredAggregator
        if where == "stored":
            groups = db.aggregator("g", key=key, aggs=aggs)
        else:
            groups = fb.Aggregator(key=key, aggs=aggs, memory="64MB", spill=place if where == "files" else None)
        assert groups.update(table.slice(0, 1000)) == 1000
        for batch in table.slice(1000, 500).to_batches():
            groups.update(batch)
        groups.update(table.slice(0, 0))
        groups.update(pa.RecordBatchReader.from_batches(table.schema, table.slice(1500).to_batches()))
        result = groups.result()
        assert result.columns == [*key, *aggs]
        found = by_key(pa.table(result), len(key))
        exact = len(EXACT)

        def check(found: dict[tuple[Any, ...], tuple[Any, ...]], expected: dict[tuple[Any, ...], tuple[Any, ...]]) -> None:
            assert found.keys() == expected.keys()
            for group, answers in found.items():
                assert answers[:exact] == expected[group][:exact], group
                for one, other in zip(answers[exact:], expected[group][exact:], strict=True):
                    # Of too few values, or of equal ones, one has null and the other what is not a number.
                    same = one == other or {one, other} <= {None, "nan"}
                    assert same or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9), group

        check(found, expected)
        # Each consumer gets a stream of its own. What was merged meanwhile is added up in another order.
        check(by_key(pa.table(result), len(key)), found)
        assert pl.DataFrame(result).height == len(found)
        if isinstance(groups, fb.Aggregator):
            groups.close()
    assert [path.name for path in place.iterdir()] == ["db"], "nothing is left"


def test_sketches_are_close(rng: random.Random) -> None:
    values = [rng.gauss(0, 1) for _ in range(20_000)]
    ids = [rng.randrange(5000) for _ in range(20_000)]
    table = pa.table({"v": values, "id": ids, "w": ["a" if at % 3 else "b" for at in range(20_000)]})
    aggs = {
        "p50": fb.median("v"),
        "p99": fb.quantile("v", 0.99),
        "u": fb.hll("id"),
        "theta": fb.theta("id", 14),
        "top": fb.top("id", 2),
        "some": fb.sample("id", 3),
        "often": fb.frequent("w"),
        "bins": fb.histogram("v", [-1, 0, 1]),
        "words": fb.set("w"),
    }
    groups = fb.Aggregator(aggs=aggs)
    groups.update(table)
    found = groups.get()
    assert found is not None
    ordered, distinct = sorted(values), len(set(ids))
    assert abs(found["p50"] - ordered[10_000]) < 0.05 and abs(found["p99"] - ordered[19_800]) < 0.2
    assert abs(found["u"] - distinct) < 0.06 * distinct and abs(found["theta"] - distinct) < 0.04 * distinct
    assert str(max(ids)) in found["top"] and "a" in found["often"] and "b" in found["words"]
    assert len(found["bins"]) > 4 and found["some"]


def test_single_groups_many_and_the_greatest(rng: random.Random, db: fb.Database) -> None:
    key = ["s", "day", "odd", "d", "moment"]
    table = rows(rng, 2000)
    memory = fb.Aggregator(key=key, aggs={"n": fb.count(), "total": fb.sum("i")}, schema=table.schema)
    stored = db.aggregator("g", key=key, aggs={"n": fb.count(), "total": fb.sum("i")}, schema=table.schema)
    for groups in (memory, stored):
        assert pa.table(groups.result()).num_rows == 0
        assert groups.get(*([None] * 5)) is None
        groups.update(table)
        found = pa.table(groups.result())
        for row in rng.sample(found.to_pylist(), 40):
            answers = {name: row.pop(name) for name in ("n", "total")}
            answers["total"] = None if answers["total"] is None else int(answers["total"])
            assert groups.get(*row.values()) == answers == groups.get(**row)
        assert groups.get("nobody", None, 0.0, None, None) is None
        asked = pa.concat_tables([found.select(key).slice(5, 20), found.select(key).slice(5, 1)])
        asked = asked.append_column("other", pa.array(range(21)))
        many = pa.table(groups.get_many(asked))
        assert many.column_names == [*key, "n", "total"]
        again = found.slice(5, 20).select(["n", "total"]).to_pylist()
        assert many.select(["n", "total"]).to_pylist() == [*again, again[0]]
        nobody = asked.slice(0, 2).set_column(0, "s", pa.array(["nobody", "ulm"]))
        assert pa.table(groups.get_many(nobody))["n"].to_pylist()[0] is None
        best = pa.table(groups.top("n", 7))["n"].to_pylist()
        assert best == sorted(found["n"].to_pylist(), reverse=True)[:7]
        totals = [total for total in found["total"].to_pylist() if total is not None]
        assert pa.table(groups.top("total", 5))["total"].to_pylist() == sorted(totals, reverse=True)[:5]
        assert pa.table(groups.top("n", 0)).num_rows == 0
        with pytest.raises(TypeError, match="a value for each column of the key: s, day"):
            groups.get("ulm")
        with pytest.raises(TypeError, match="column day has values of Date32, and a value of type str"):
            groups.get("ulm", "monday", 0.0, None, None)
        with pytest.raises(fb.Invalid, match="no `m` in aggs; there are: n, total"):
            groups.top("m")


def test_exact_numbers_of_texts_have_the_order_of_numbers(db: fb.Database) -> None:
    """They are answers of type text, and 9 came before 10."""
    texts = ["9", "10", "200", "-5", "-10", "1e3", "99999999999999999999999.5"]
    table = pa.table({"k": range(7), "v": texts})
    aggs = {"total": fb.sum("v"), "most": fb.max("v"), "text": fb.max_text("v")}
    for groups in (fb.Aggregator(key="k", aggs=aggs), db.aggregator("g", key="k", aggs=aggs)):
        groups.update(table)
        for name in ("total", "most"):
            assert pa.table(groups.top(name, 7))["k"].to_pylist() == [6, 5, 2, 1, 0, 3, 4]
        assert pa.table(groups.top("text", 3))["k"].to_pylist() == [6, 0, 2], "texts stay texts"


class FineTime(datetime.datetime):
    """As pandas has them."""

    nanosecond = 7


class FineSpan(datetime.timedelta):
    nanoseconds = 7


def test_times_that_a_column_does_not_have_are_of_no_group(db: fb.Database) -> None:
    """They were taken for the time before, and the group of that was found, and deleted."""
    at = datetime.datetime(2024, 2, 29, 12)
    half, little = datetime.timedelta(milliseconds=500), datetime.timedelta(microseconds=400)
    kinds: list[tuple[pa.DataType, Any, Any]] = [
        (pa.timestamp("s"), at, at + half),
        (pa.timestamp("ms"), at + half, at + little),
        (pa.timestamp("us"), at + little, FineTime(2024, 2, 29, 12)),
        (pa.duration("ms"), half, little),
        (pa.duration("us"), little, FineSpan(1)),
        (pa.time32("ms"), (at + half).time(), (at + little).time()),
        (pa.date32(), at.date(), at),
    ]
    for number, (kind, right, wrong) in enumerate(kinds):
        groups = db.aggregator(f"g{number}", key="at", aggs={"n": fb.count()}, deletes=True)
        groups.update(pa.table({"at": pa.array([right], kind)}))
        for call in (groups.get, groups.delete):
            with pytest.raises(fb.Invalid, match="is no value of"):
                call(wrong)
        assert groups.get(right) == {"n": 1}
    assert groups.get(datetime.datetime(2024, 2, 29)) == {"n": 1}, "a day begins with this"


def test_nanoseconds_of_pandas_count() -> None:
    since = (datetime.datetime(2024, 2, 29, 12) - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    for kind, begin, plain, fine in (
        (pa.timestamp("ns"), since * 1000, datetime.datetime(2024, 2, 29, 12), FineTime(2024, 2, 29, 12)),
        (pa.duration("ns"), 86_400_000_000_000, datetime.timedelta(1), FineSpan(1)),
    ):
        groups = fb.Aggregator(key="at", aggs={"n": fb.count()})
        groups.update(pa.table({"at": pa.array([begin, begin, begin + 7], pa.int64()).cast(kind)}))
        assert (groups.get(plain), groups.get(fine)) == ({"n": 2}, {"n": 1})


def test_numbers_are_keys_of_decimals_with_all_their_digits() -> None:
    """An int went by way of a float, and of a float six digits behind the point were left: to another group, or to none."""
    of, whole = decimal.Decimal, 2**53 + 1
    wide = fb.Aggregator(key="d", aggs={"n": fb.count()})
    values = [of(whole), of("0.1234567"), of("1.5"), of(5)]
    wide.update(pa.table({"d": pa.array(values, pa.decimal128(38, 18))}))
    right: list[Any] = [whole, 0.1234567, 1.5, of("1.50"), 5, 5.0, of(5)]
    for value in right:
        assert wide.get(value) == {"n": 1}
    others: list[Any] = [whole - 1, 0.123457]
    for value in others:
        assert wide.get(value) is None
    narrow = fb.Aggregator(key="d", aggs={"n": fb.count()})
    narrow.update(pa.table({"d": pa.array(values[2:], pa.decimal128(10, 1))}))
    for value in right[2:]:
        assert narrow.get(value) == {"n": 1}
    with pytest.raises(fb.Invalid, match="`1.55` is no value of Decimal128"):
        narrow.get(of("1.55"))
    with pytest.raises(TypeError, match="a value of type bool"):
        narrow.get(True)
    units = b"".join(unit.to_bytes(16, "little") for unit in (123, 123, 123_000))
    thousands = pa.Array.from_buffers(pa.decimal128(10, -3), 3, [None, pa.py_buffer(units)])
    large = fb.Aggregator(key="d", aggs={"n": fb.count()})
    large.update(pa.table({"d": thousands}))
    assert (large.get(123_000), large.get(of("1.23E+8"))) == ({"n": 2}, {"n": 1})
    with pytest.raises(fb.Invalid, match="`123` is no value of Decimal128"):
        large.get(123)


def test_groups_of_many_keys_come_in_batches_of_a_bounded_length() -> None:
    """All rows of a record batch of keys were one, and panicked where answers came to 2 GiB."""
    keys = pa.table({"k": range(70_000)})
    counts = fb.Aggregator(key="k", aggs={"n": fb.count()})
    counts.update(keys)
    many = counts.get_many(keys)
    assert [len(batch) for batch in many.batches()] == [65_536, 70_000 - 65_536]
    assert pa.table(many)["k"].to_pylist() == list(range(70_000))
    texts = [f"{at:05}" * 2200 for at in range(2000)]
    words = fb.Aggregator(key="k", aggs={"w": fb.max_text("w")})
    words.update(pa.table({"k": range(2000), "w": texts}))
    asked = [2000, *range(2000), 2001, 7]
    many = words.get_many(pa.table({"k": asked}))
    assert sum(1 for _ in many.batches()) > 1
    found = pa.table(many)
    assert found["k"].to_pylist() == asked
    assert found["w"].to_pylist() == [None, *texts, None, texts[7]]


def test_any_consumer_and_any_producer(rng: random.Random) -> None:
    table = rows(rng, 500).select(["s", "i", "view"])
    groups = fb.Aggregator(key="s", aggs={"n": fb.count(), "again": fb.count(), "i": fb.sum("i")})
    frame = pl.from_arrow(table)
    relation = duckdb.connect().from_arrow(table)
    for data in (table, frame, relation, table.to_batches()[0]):
        groups.update(data)
    rows_of_all = 3 * 500 + table.to_batches()[0].num_rows
    result = groups.result()
    assert sum(pa.table(result)["n"].to_pylist()) == rows_of_all
    assert pl.DataFrame(result)["again"].sum() == rows_of_all
    joined = duckdb.sql("select sum(a.n) from result a join result b on a.s is not distinct from b.s")
    assert joined is not None and joined.fetchall() == [(rows_of_all,)], "it is read twice"
    assert "n: Int64" in repr(result)
    for wrong in ([1], {"a": [1]}, "text", pa.array([1])):
        with pytest.raises(TypeError):
            groups.update(wrong)  # type: ignore[arg-type]


def test_what_cannot_be_grouped_is_told() -> None:
    with pytest.raises(fb.Invalid, match="no function"):
        fb.Aggregator(key=["a"], aggs={})
    with pytest.raises(fb.Invalid, match="two columns would be called `a`"):
        fb.Aggregator(key=["a"], aggs={"a": fb.count()})
    with pytest.raises(TypeError, match="aggs is a dictionary"):
        fb.Aggregator(key=["a"], aggs={"n": 7})  # type: ignore[dict-item]
    with pytest.raises(fb.Invalid, match="more than one function"):
        fb.Aggregator(aggs={"n": "count,count:a"})
    for wrong in ("summ:b", fb.quantile("b", 99)):
        with pytest.raises(fb.Invalid, match="did you mean `sum`|quantile"):
            fb.Aggregator(key=["a"], aggs={"n": wrong})
    table = pa.table({"a": ["x", "y"], "b": ["1", "two"]})
    groups = fb.Aggregator(key=["a"], aggs={"n": fb.sum("b")})
    with pytest.raises(fb.Invalid, match="give schema="):
        groups.result()
    with pytest.raises(fb.Invalid, match="row 2.*`two` is not a number"):
        groups.update(table)
    assert pa.table(groups.result()).to_pydict() == {"a": ["x"], "n": ["1"]}
    many = pa.table({"b": pa.array(["1"] * 150_000 + ["much"] + ["1"] * 9)})
    with pytest.raises(fb.Invalid, match="row 150001"):
        fb.Aggregator(aggs={"n": fb.sum("b")}).update(many)
    with pytest.raises(fb.Invalid, match="no column `a`"):
        groups.update(pa.table({"b": ["1"]}))
    with pytest.raises(fb.Invalid, match="column `a`.*Int64.*Utf8"):
        groups.update(pa.table({"a": [1], "b": ["1"]}))
    with pytest.raises(fb.Invalid, match="cast it"):
        fb.Aggregator(key=["a"], aggs={"n": fb.count()}).update(pa.table({"a": [[1]]}))
    groups.close()
    with pytest.raises(fb.Closed):
        groups.update(table)
    assert fb.sum("net, total") == 'sum:"net, total"' and fb.string_agg("a", ", ") == 'string_agg:a:", ":1000'


def test_more_groups_than_memory(place: Path) -> None:
    table = pa.table({"k": pa.array(range(400_000)), "v": pa.array([1] * 400_000)})
    with fb.Aggregator(key="k", aggs={"n": fb.count(), "s": fb.sum("v")}, memory="4MB", spill=place) as groups:
        for _ in range(2):
            groups.update(table)
        assert groups.memory_bytes < 16 << 20
        assert groups.get(77) == {"n": 2, "s": 2}
        result = groups.result()
        stream = pa.RecordBatchReader.from_stream(result)
        sizes = [batch.num_rows for batch in stream]
        assert sum(sizes) == 400_000 and max(sizes) == 65_536
        half = pa.RecordBatchReader.from_stream(result)
        half.read_next_batch()
    assert sum(batch.num_rows for batch in half) == 400_000 - 65_536, "a stream lives without the aggregator"
    del half
    with pytest.raises(fb.Error, match="memory"):
        fb.Aggregator(key="k", aggs={"n": fb.count()}, memory="1MB").update(table)


def test_two_stages(rng: random.Random, db: fb.Database) -> None:
    table = rows(rng, 3000)
    aggs = {"n": fb.count(), "s": fb.sum("i"), "u": fb.hll("s"), "words": fb.set("s")}
    whole = fb.Aggregator(key=["coded", "day"], aggs=aggs)
    whole.update(table)
    parts = [fb.Aggregator(key=["coded", "day"], aggs=aggs) for _ in range(3)]
    for at, part in enumerate(parts):
        part.update(table.slice(1000 * at, 1000))
    merged = fb.Aggregator(key=["coded", "day"], aggs=aggs)
    stored = db.aggregator("g", key=["coded", "day"], aggs=aggs)
    for part in parts:
        # As another process would get them.
        sink = pa.BufferOutputStream()
        states = pa.table(part.states())
        with pa.ipc.new_stream(sink, states.schema) as writer:
            writer.write_table(states)
        received = pa.ipc.open_stream(sink.getvalue()).read_all()
        assert merged.merge(received) == states.num_rows == stored.merge(received)
    expected = by_key(pa.table(whole.result()), 2)
    assert by_key(pa.table(merged.result()), 2) == expected == by_key(pa.table(stored.result()), 2)
    # And rows on top of merged states.
    merged.update(table)
    assert sum(pa.table(merged.result())["n"].to_pylist()) == 6000
    other = fb.Aggregator(key=["coded"], aggs=aggs)
    with pytest.raises(fb.Invalid, match="these are groups by"):
        other.merge(parts[0].states())
    with pytest.raises(fb.Invalid, match="no partial states"):
        other.merge(table)


def test_groups_that_are_kept(place: Path, rng: random.Random) -> None:
    table = rows(rng, 1000)
    aggs = {"n": fb.count(), "f": fb.fsum("f"), "u": fb.hll("s")}
    memory = fb.Aggregator(key=["s", "b"], aggs=aggs)
    for _ in range(3):
        memory.update(table)
    with fb.open(place / "db", memory="4MB") as db:
        with pytest.raises(fb.NotFound, match="say key and aggs"):
            db.aggregator("g")
        groups = db.aggregator("g", key=["s", "b"], aggs=aggs, layout="wb-tree:ordered")
        assert groups.metadata is None and groups.name == "g"
        with pytest.raises(fb.Invalid, match="give schema="):
            groups.commit(metadata=b"0")
        other = db.table("other")
        groups.update(table)
        batch = db.batch()
        batch.put(other, b"k", b"v")
        groups.commit(table, metadata=b"offset 2000", batch=batch, durability="disk")
        assert groups.metadata == b"offset 2000" and other[b"k"] == b"v"
        assert db.tables()["g"] == "wb-tree:ordered"
    with fb.open(place / "db", memory="4MB") as db:
        groups = db.aggregator("g")
        assert groups.metadata == b"offset 2000"
        assert "StoredAggregator g" in repr(groups)
        again = db.aggregator("g", key=["s", "b"], aggs=aggs)
        # Another library's layout of texts is the same column.
        again.commit(pl.from_arrow(table), metadata=b"offset 3000")
        assert by_key(pa.table(groups.result()), 2) == by_key(pa.table(memory.result()), 2)
        with pytest.raises(fb.Invalid, match="was made with aggs"):
            db.aggregator("g", key=["s", "b"], aggs={"m": fb.count(), "f": fb.fsum("f"), "u": fb.hll("s")})
        with pytest.raises(fb.Invalid, match="these are groups by"):
            db.aggregator("g", key=["s"], aggs=aggs)
        with pytest.raises(fb.Invalid, match="column `s`.*Int64"):
            groups.update(table.set_column(table.column_names.index("s"), "s", pa.array(range(1000))))
        before = pa.table(groups.result()).num_rows
        bad = pa.table({"s": ["x", "y"], "b": [True, True], "f": ["1", "much"]})
        with pytest.raises(fb.Invalid, match="row 2"):
            groups.commit(bad, metadata=b"never")
        assert pa.table(groups.result()).num_rows == before and groups.metadata == b"offset 3000"
        groups.finalize()
        assert db.verify()["problems"] == []
        with fb.open(place / "db", read_only=True) as reader:
            db.sync()
            reader.refresh()
            assert pa.table(reader.aggregator("g").result()).num_rows == before
    with fb.open(place / "db") as db:
        removable = db.aggregator("r", key="k", aggs={"n": fb.count()}, deletes=True)
        removable.update(pa.table({"k": [1, 2]}))
        removable.delete(1)
        assert removable.get(1) is None and removable.get(k=2) == {"n": 1}


def test_values_of_another_type_are_refused_before_they_are_kept(db: fb.Database) -> None:
    whole, broken = pa.table({"k": [1, 2], "v": [5, 6]}), pa.table({"k": [1, 3], "v": [7.25, None]})
    groups = db.aggregator("g", key="k", aggs={"most": fb.max("v"), "n": fb.count()})
    groups.update(whole)
    for add in (groups.update, lambda data: groups.commit(data, metadata=b"2")):
        with pytest.raises(fb.Invalid, match="column `max:v`: its answers would be .*Float64.*cast them"):
            add(broken)
    other = fb.Aggregator(key="k", aggs={"most": fb.max("v"), "n": fb.count()})
    other.update(broken)
    memory = fb.Aggregator(key="k", aggs={"most": fb.max("v"), "n": fb.count()})
    memory.update(whole)
    for merge in (groups.merge, memory.merge):
        with pytest.raises(fb.Invalid, match="its answers would be"):
            merge(other.states())
    assert groups.get(1) == memory.get(1) == {"most": 5, "n": 1}
    assert pa.table(groups.result()).sort_by("k").to_pydict() == {"k": [1, 2], "most": [5, 6], "n": [1, 1]}


def test_handles_that_make_one_aggregator_at_once_agree(db: fb.Database) -> None:
    numbers, texts = pa.table({"k": [1]}), pa.table({"k": ["x"]})
    for turn in range(30):
        begin = threading.Barrier(2)
        refused: list[str] = []

        def add(data: pa.Table, turn: int = turn, begin: threading.Barrier = begin, refused: list[str] = refused) -> None:
            groups = db.aggregator(f"g{turn}", key="k", aggs={"n": fb.count()})
            begin.wait()
            try:
                groups.update(data)
            except fb.Invalid as error:
                refused.append(str(error))

        threads = [threading.Thread(target=add, args=(data,)) for data in (numbers, texts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 1 and "column `k`" in refused[0]
        assert pa.table(db.aggregator(f"g{turn}").result()).to_pydict() in ({"k": [1], "n": [1]}, {"k": ["x"], "n": [1]})


def test_an_aggregator_that_could_not_be_made_leaves_nothing(db: fb.Database) -> None:
    rows = pa.table({"k": [1]})
    with pytest.raises(fb.NotFound):
        db.aggregator("none", key="k", aggs={"n": fb.count()}, existing=True).update(rows)
    db.table("plain")[b"a"] = b"1"
    with pytest.raises(fb.Invalid):
        db.aggregator("plain", key="k", aggs={"n": fb.count()}).update(rows)
    assert list(db.tables()) == ["plain"]


def test_rows_that_are_null_as_a_whole_are_refused(db: fb.Database) -> None:
    rows = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3]), pa.array([b"a", b"b", b"c"])], ["k", "v"], mask=pa.array([False, True, False])
    )
    groups = fb.Aggregator(key="k", aggs={"n": fb.count()}, schema=pa.schema({"k": pa.int64(), "v": pa.binary()}))
    with pytest.raises(ValueError, match="row 2 of a batch is null as a whole"):
        groups.update(pa.chunked_array([rows]))
    with pytest.raises(ValueError, match="row 2 of a batch is null as a whole"):
        groups.update(rows)
    groups.update(pa.chunked_array([rows.slice(0, 1), rows.slice(2)]))
    assert [groups.get(key) for key in (1, 2, 3)] == [{"n": 1}, None, {"n": 1}]


def test_rows_are_made_by_the_thread_that_adds_them() -> None:
    schema = pa.schema({"k": pa.int64()})
    threads: set[int] = set()

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(50):
            threads.add(threading.get_ident())
            yield pa.record_batch({"k": pa.array(range(number, number + 1000))})

    groups = fb.Aggregator(key="k", aggs={"n": fb.count()}, threads=4)
    assert groups.update(pa.RecordBatchReader.from_batches(schema, batches())) == 50_000
    assert threads == {threading.get_ident()}
    assert sum(pa.table(groups.result())["n"].to_pylist()) == 50_000

    def failing() -> Iterator[pa.RecordBatch]:
        yield from list(batches())[:3]
        raise RuntimeError("no more")

    with pytest.raises(ValueError, match="no more"):
        groups.update(pa.RecordBatchReader.from_batches(schema, failing()))


def test_an_error_with_a_zero_byte_comes_through_a_stream(db: fb.Database) -> None:
    groups = db.aggregator("g", key="k", aggs={"n": fb.count()})
    groups.update(pa.table({"k": [1]}))
    numbers = groups.result()
    db.drop_table("g")
    db.drop_table("g.schema")
    again = db.aggregator("g", key="k", aggs={"n": fb.count()})
    again.update(pa.table({"k": ["a\0b"]}))
    with pytest.raises(Exception, match="a.*b"):
        pa.table(numbers)


@pytest.mark.parametrize("where", ["memory", "stored", "snapshot"])
def test_groups_by_fewer_columns(where: str, rng: random.Random, db: fb.Database, place: Path) -> None:
    table = rows(rng, 2000)
    key, aggs = ["s", "day", "b"], {"n": fb.count(), "t": fb.sum("i"), "u": fb.distinct("large"), "hi": fb.max("f")}
    query = {"n": "count(*)", "t": "sum(i)", "u": "count(distinct large)", "hi": "max(f)"}
    groups: fb.Aggregator | fb.StoredAggregator | fb.AggregatorSnapshot
    if where == "memory":
        groups = fb.Aggregator(key=key, aggs=aggs)
        groups.update(table)
    else:
        stored = db.aggregator("g", key=key, aggs=aggs)
        stored.update(table)
        groups = stored
    if where == "snapshot":
        groups = stored.at(db.snapshot())
        stored.update(table)
    functions = {name: (text, query[name]) for name, text in aggs.items()}
    for columns in ([], ["day"], ["b", "s"], key):
        coarse = groups.by(*columns, memory="64MB", spill=place)
        expected = by_key(asked_of_duckdb(table, columns, functions), len(columns))
        assert by_key(pa.table(coarse.result()), len(columns)) == expected
        if not columns:
            whole = coarse.get()
            assert whole is not None and whole["n"] == 2000
            assert pa.table(coarse.by().result()).num_rows == 1
        # It is an aggregator of its own.
        coarse.update(table)
        assert sum(pa.table(coarse.result())["n"].to_pylist()) == 4000
    assert sum(pa.table(groups.result())["n"].to_pylist()) == 2000
    for wrong in (["i"], ["s", "s"]):
        with pytest.raises(fb.Invalid, match="groups are by .*each once"):
            groups.by(*wrong)


def test_groups_of_a_moment(db: fb.Database) -> None:
    groups = db.aggregator("g", key="k", aggs={"n": fb.count()})
    early = db.snapshot()
    with pytest.raises(fb.Invalid, match="nothing was added"):
        groups.at(early)
    groups.commit(pa.table({"k": [1, 2, 1]}), metadata=b"3")
    with pytest.raises(fb.NotFound):
        groups.at(early)
    db.savepoint("monday")
    with db.snapshot() as snapshot:
        before = groups.at(snapshot)
    result = before.result()
    groups.commit(pa.table({"k": [1, 3]}), metadata=b"5")
    db.flush()
    for moment in (before, groups.at(db.open_savepoint("monday"))):
        assert moment.get(1) == {"n": 2} == moment.get(k=1) and moment.get(3) is None
        assert moment.metadata == b"3"
        assert pa.table(moment.get_many(pa.table({"k": [3, 2]})))["n"].to_pylist() == [None, 1]
        assert pa.table(moment.top("n", 1)).to_pydict() == {"k": [1], "n": [2]}
        assert pa.table(moment.states()).num_rows == 2 == pa.table(moment.result()).num_rows
    assert groups.get(1) == {"n": 3} and groups.metadata == b"5"
    del before
    assert pa.table(result).num_rows == 2, "rows hold what they need"


def test_a_moment_of_other_groups_is_refused(db: fb.Database, place: Path) -> None:
    """The aggregator of this name may have been another one by then, or be another database's."""

    def remade(key: str, aggs: dict[str, str], rows: dict[str, Any]) -> fb.StoredAggregator:
        for name in set(db.tables()) & {"g", "g.schema"}:
            db.drop_table(name)
        groups = db.aggregator("g", key=key, aggs=aggs)
        groups.update(pa.table(rows))
        return groups

    groups = remade("city", {"n": fb.sum("sold")}, {"city": ["Oslo", "Bern"], "sold": [3, 5]})
    db.savepoint("monday")
    moments = [db.snapshot(), db.open_savepoint("monday")]
    others: list[tuple[str, dict[str, str], dict[str, Any], str]] = [
        ("country", {"total": fb.sum("lost")}, {"country": ["no"], "lost": [1]}, "these are groups by"),
        ("city", {"total": fb.sum("sold")}, {"city": ["Oslo"], "sold": [1]}, "had aggs"),
        ("city", {"n": fb.sum("sold")}, {"city": [1], "sold": [1]}, "column `city`"),
        ("city", {"n": fb.sum("sold")}, {"city": ["Oslo"], "sold": [1.5]}, "column `sum:sold`"),
    ]
    for key, aggs, rows, match in others:
        groups = remade(key, aggs, rows)
        for moment in moments:
            with pytest.raises(fb.Invalid, match=match):
                groups.at(moment)
    groups = remade("city", {"n": fb.sum("sold")}, {"city": ["Oslo"], "sold": [1]})
    for moment in moments:
        assert groups.at(moment).get("Oslo") == {"n": 3}, "the groups of then, as they were"
    with fb.open(place / "other", memory="8MB") as other:
        foreign = other.aggregator("g", key="user", aggs={"n": fb.sum("x")})
        foreign.update(pa.table({"user": ["u"], "x": [9]}))
        with pytest.raises(fb.Invalid, match="the snapshot is of another database"):
            foreign.at(moments[0])


def test_a_batch_that_was_not_committed_is_kept(db: fb.Database) -> None:
    other, batch = db.table("other"), db.batch()
    batch.put(other, b"a", b"1")
    groups = db.aggregator("g", key="k", aggs={"n": fb.count()})
    with pytest.raises(fb.Invalid, match="give schema="):
        groups.commit(metadata=b"1", batch=batch)
    assert len(batch) == 1
    groups.commit(pa.table({"k": [1]}), metadata=b"1", batch=batch)
    assert len(batch) == 0 and other[b"a"] == b"1" and groups.metadata == b"1"


def test_what_a_killed_process_left_stops_nobody(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"k": range(500_000)})
    monkeypatch.chdir(place)
    (place / "spill").mkdir()
    for _ in range(2):
        groups = fb.Aggregator(key="k", aggs={"n": fb.count()}, memory="4MB", spill="spill")
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir("/")
            groups.update(rows)
        (left,) = [name for name in (place / "spill").iterdir() if not name.name.endswith("-left")]
        assert any(left.iterdir())
        left.with_name(left.name + "-left").mkdir()
        assert groups.get(7) == {"n": 1}
        groups.close()
    assert all(name.name.endswith("-left") for name in (place / "spill").iterdir())
