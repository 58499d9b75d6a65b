"""Roll-ups and cubes, held against DuckDB's, with its GROUPING_ID."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import forebay as fb

AGGS = {"n": fb.count(), "sum": fb.sum("v"), "u": fb.distinct("v"), "hi": fb.max("v")}
ANSWERS = "count(*) as n, sum(v)::bigint as sum, count(distinct v) as u, max(v) as hi"


def table(rng: random.Random, count: int) -> pa.Table:
    return pa.table(
        {
            "a": rng.choices(["x", "y", None, ""], k=count),
            "b": pa.array(rng.choices([1, 2, 3, None], k=count), pa.int32()),
            "c": rng.choices([True, False, None], k=count),
            "v": rng.choices(range(30), k=count),
        }
    )


def wanted(data: pa.Table, how: str, columns: list[str]) -> list[dict[str, Any]]:
    names = ", ".join(columns)
    query = f"select {names}, {ANSWERS}, grouping_id({names}) as grouping from tab group by {how}({names})"
    relation = duckdb.connect().from_arrow(data).query("tab", query)
    assert relation is not None
    return sorted(relation.to_arrow_table().to_pylist(), key=repr)


def found(result: fb.Rows) -> list[dict[str, Any]]:
    return sorted(pa.table(result).to_pylist(), key=repr)


@pytest.mark.parametrize("columns", [["a", "b", "c"], ["c", "a"], ["b"], []])
@pytest.mark.parametrize("how", ["rollup", "cube"])
def test_groupings_are_those_of_duckdb(db: fb.Database, rng: random.Random, how: str, columns: list[str]) -> None:
    data, key = table(rng, 1500), ["a", "b", "c"]
    memory = fb.Aggregator(key=key, aggs=AGGS)
    stored = db.aggregator("g", key=key, aggs=AGGS)
    memory.update(data)
    stored.update(data)
    those = wanted(data, how, columns or key)
    for groups in (memory, stored, stored.at(db.snapshot())):
        rows: fb.Rows = getattr(groups, how)(*columns)
        assert rows.columns == [*(columns or key), *AGGS, "grouping"]
        assert found(rows) == those
        assert found(rows) == those, "each consumer gets a stream from the beginning"
        order = pl.DataFrame(rows)["grouping"].to_list()
        assert order == sorted(order), "that of all columns comes first"


def test_all_groupings_are_of_one_moment(db: fb.Database, rng: random.Random) -> None:
    data = table(rng, 300)
    groups = db.aggregator("g", key=["a", "b"], aggs=AGGS)
    groups.update(data)
    with db.snapshot() as moment:
        before = groups.rollup(), groups.at(moment).cube()
    stream = iter(groups.rollup().batches())
    first = pa.record_batch(next(stream))
    groups.update(data)
    assert found(before[0]) == wanted(data, "rollup", ["a", "b"])
    assert found(before[1]) == wanted(data, "cube", ["a", "b"])
    batches = [first, *map(pa.record_batch, stream)]
    assert sorted(pa.Table.from_batches(batches).to_pylist(), key=repr) == wanted(data, "rollup", ["a", "b"])
    twice = pa.concat_tables([data, data])
    assert found(groups.rollup()) == wanted(twice, "rollup", ["a", "b"])


def test_groupings_beyond_memory(place: Path) -> None:
    count = 300_000
    data = pa.table({"a": range(count), "b": [at % 3 for at in range(count)]})
    groups = fb.Aggregator(key=["b", "a"], aggs={"n": fb.count()}, memory="64MB")
    groups.update(data)
    with pytest.raises(pa.ArrowInvalid, match="more than the memory limit"):
        pa.table(groups.cube(memory="1MB"))
    rows = pl.DataFrame(groups.cube(memory="2MB", spill=place / "spill"))
    assert rows["grouping"].value_counts(sort=True)["count"].to_list() == [count, count, 3, 1]
    assert (rows["n"].sum(), list((place / "spill").iterdir())) == (4 * count, [])


class Longest(fb.UserAggregate):
    """The greatest value, as any function of a user's."""

    name, version = "longest", 1
    state, answer = {"v": "Int64"}, "Int64"

    def update(self, values: fb.Column, groups: fb.Column) -> pl.DataFrame:
        return self.merge(pl.DataFrame(values), groups)

    def merge(self, states: Any, groups: fb.Column) -> pl.DataFrame:
        table = pl.DataFrame(states).with_columns(g=pl.Series(groups))
        return table.group_by("g").agg(pl.col("v").max()).sort("g")

    def evaluate(self, states: fb.Column) -> pl.Series:
        return pl.DataFrame(states)["v"]


def test_groupings_of_functions_of_ones_own(db: fb.Database, rng: random.Random) -> None:
    data = table(rng, 500)
    groups = db.aggregator("g", key=["a", "b"], aggs={"long": Longest("v"), "hi": fb.max("v"), "n": fb.count()})
    groups.update(data)
    rows = found(groups.cube())
    assert all(row["long"] == row["hi"] for row in rows)
    by_key = {(row["grouping"], row["a"], row["b"]): row["n"] for row in rows}
    assert by_key == {(row["grouping"], row["a"], row["b"]): row["n"] for row in wanted(data, "cube", ["a", "b"])}


def test_what_is_refused() -> None:
    groups = fb.Aggregator(key=["a", "b"], aggs={"grouping": fb.count()})
    with pytest.raises(fb.Invalid, match="nothing was added yet"):
        groups.rollup()
    groups.update(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(fb.Invalid, match="a column is called `grouping`"):
        groups.rollup()
    with pytest.raises(fb.Invalid, match="`v`"):
        groups.cube("a", "v")
    with pytest.raises(fb.Invalid, match="`a`"):
        groups.cube("a", "a")
    names = [f"c{at}" for at in range(13)]
    wide = fb.Aggregator(key=names, aggs={"n": fb.count()})
    wide.update(pa.table({name: [1] for name in names}))
    with pytest.raises(fb.Invalid, match="at most 12 columns"):
        wide.cube()
    assert len(pl.DataFrame(wide.rollup(*names[:12]))) == 13
