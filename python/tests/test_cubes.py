"""Cubes that a database keeps, held against DuckDB's CUBE, ROLLUP and GROUPING SETS."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from test_groupings import AGGS, ANSWERS, Longest, found, table, wanted

import forebay as fb

KEY = ["a", "b", "c"]


def wanted_sets(data: pa.Table, sets: list[list[str]]) -> list[dict[str, Any]]:
    """Rows of GROUPING SETS: those that are asked for, and by all columns."""
    names = ", ".join(KEY)
    listed = ", ".join(f"({', '.join(columns)})" for columns in sets)
    query = f"select {names}, {ANSWERS}, grouping_id({names}) as grouping from tab group by grouping sets ({listed})"
    relation = duckdb.connect().from_arrow(data).query("tab", query)
    assert relation is not None
    return sorted(relation.to_arrow_table().to_pylist(), key=repr)


@pytest.mark.parametrize("how", ["cube", "rollup", [["b"], ["c", "a"], []]])
def test_cubes_are_those_of_duckdb(
    db: fb.Database, rng: random.Random, how: Literal["cube", "rollup"] | list[list[str]]
) -> None:
    data = table(rng, 1500)
    groups = db.cube("g", key=KEY, aggs=AGGS, groupings=how)
    assert groups.update(data.slice(0, 600)) == 600
    groups.commit(data.slice(600, 500), metadata=b"1100")
    db.flush()
    states = fb.Aggregator(key=KEY, aggs=AGGS)
    states.update(data.slice(1100))
    groups.merge(states.states())
    those = wanted(data, how, KEY) if isinstance(how, str) else wanted_sets(data, [KEY, *how])
    rows = groups.result()
    assert rows.columns == [*KEY, *AGGS, "grouping"]
    assert found(rows) == those
    assert found(rows) == those, "each consumer gets a stream from the beginning"
    order = pl.DataFrame(rows)["grouping"].to_list()
    assert order == sorted(order), "that of all columns comes first"
    assert groups.metadata == b"1100"
    for columns in groups.groupings:
        bits = sum(1 << at for at, name in enumerate(reversed(KEY)) if name not in columns)
        these = [row for row in those if row["grouping"] == bits]
        for row in these:
            answers = {name: row[name] for name in AGGS}
            assert groups.get(**{name: row[name] for name in columns}) == answers
        turned = columns[::-1]
        level = groups.by(*turned)
        assert level.metadata == b"1100"
        plain = sorted(({name: row[name] for name in [*turned, *AGGS]} for row in these), key=repr)
        assert found(level.result()) == plain
        if these and turned:
            schema = pa.schema([data.schema.field(name) for name in turned])
            keys = pa.Table.from_pylist([plain[-1], plain[0]], schema=schema)
            assert pa.table(level.get_many(keys))["n"].to_pylist() == [plain[-1]["n"], plain[0]["n"]]
            assert level.get(*(plain[0][name] for name in turned)) == {name: plain[0][name] for name in AGGS}
        most = pa.table(level.top("n", 1))["n"].to_pylist()
        assert most == [max(row["n"] for row in these)]


def test_a_cube_is_opened_by_what_is_kept(place: Path, rng: random.Random) -> None:
    data = table(rng, 300)
    with fb.open(place / "db", memory="8MB") as db:
        groups = db.cube("g", key=KEY, aggs=AGGS, groupings="rollup", schema=data.schema)
        assert found(groups.result()) == []
        assert groups.get() is None
        groups.commit(data, metadata=b"300")
    with fb.open(place / "db", memory="8MB") as db:
        groups = db.cube("g")
        assert groups.groupings == [["a", "b", "c"], ["a", "b"], ["a"], []]
        assert (groups.name, groups.metadata) == ("g", b"300")
        assert found(groups.result()) == wanted(data, "rollup", KEY)
        assert db.cube("g", key=KEY, aggs=AGGS, groupings="rollup").groupings == groups.groupings
        assert repr(groups).startswith('<forebay.Cube g by [["a", "b", "c"], ["a", "b"]')
        stats = groups.stats()
        assert [one["by"] for one in stats] == groups.groupings
        assert [one["table"] for one in stats] == ["g", "g@1", "g@2", "g@3"]
        assert all(one["records"] > 0 and one["bytes"] > 0 for one in stats)
        for call in (
            lambda: db.cube("g", groupings="cube"),
            lambda: db.cube("g", key=KEY, aggs=AGGS, groupings=[["a"]]),
            lambda: db.cube("g", key=KEY, aggs={"n": fb.count()}),
            lambda: db.aggregator("g"),
            lambda: db.windows("g", time="t", every="1d", key=KEY, aggs=AGGS),
        ):
            with pytest.raises(fb.Invalid, match="`g`|are asked for"):
                call()
        db.drop_cube("g")
        assert [name for name in db.tables() if name.startswith("g")] == []
        with pytest.raises(fb.NotFound, match="no cube `g`"):
            db.cube("g")
        again = db.cube("g", key="a", aggs={"n": fb.count()})
        again.update(data)
        assert again.get() == {"n": 300}


def test_a_cube_of_a_moment(db: fb.Database, rng: random.Random) -> None:
    data = table(rng, 300)
    groups = db.cube("g", key=KEY, aggs=AGGS)
    with pytest.raises(fb.Invalid, match="nothing was added yet"):
        groups.result()
    before = db.snapshot()
    groups.commit(data, metadata=b"once")
    db.savepoint("once")
    moment, by_a, stream = db.snapshot(), groups.by("a"), iter(groups.result().batches())
    first = pa.record_batch(next(stream))
    groups.commit(data, metadata=b"twice")
    once = wanted(data, "cube", KEY)
    assert sorted(pa.Table.from_batches([first, *map(pa.record_batch, stream)]).to_pylist(), key=repr) == once
    for seen in (groups.at(moment), groups.at(db.open_savepoint("once"))):
        assert seen.metadata == b"once"
        assert found(seen.result()) == once
        assert seen.get() == {name: once_row[name] for once_row in once if once_row["grouping"] == 7 for name in AGGS}
        assert found(seen.by("a").result()) == found(by_a.result())
        assert sum(pa.table(seen.by("b", "c").result())["n"].to_pylist()) == 300
    assert found(groups.result()) == wanted(pa.concat_tables([data, data]), "cube", KEY)
    with pytest.raises(fb.NotFound, match="no cube `g` at that moment"):
        groups.at(before)
    other = fb.Aggregator(key=KEY, aggs=AGGS)
    other.merge(groups.states())
    assert found(other.cube()) == found(groups.result())
    # A cube of other groupings by then is not read as this one.
    db.drop_cube("g")
    rolled = db.cube("g", key=KEY, aggs=AGGS, groupings="rollup")
    rolled.update(data)
    with pytest.raises(fb.Invalid, match="another cube"):
        rolled.at(moment)


def test_a_commit_has_all_groupings_and_tables_or_nothing(db: fb.Database) -> None:
    groups, notes = db.cube("g", key=["k", "v"], aggs={"n": fb.count(), "s": fb.sum("v")}), db.table("notes")
    with db.batch() as batch:
        batch.put(notes, b"k", b"1")
        groups.commit(pa.table({"k": ["x", "y"], "v": ["1", "2"]}), metadata=b"2", batch=batch)
    assert (notes[b"k"], groups.metadata) == (b"1", b"2")
    refused = pa.table({"k": ["x", "y"], "v": ["3", "no number"]})
    with pytest.raises(fb.Invalid, match="row 2"):
        groups.commit(refused, metadata=b"4")
    assert groups.metadata == b"2"
    assert groups.get() == {"n": 2, "s": "3"}
    assert groups.get("x") == {"n": 1, "s": "1"}
    assert groups.get("x", v="1") == {"n": 1, "s": "1"}
    groups.commit(metadata=b"3")
    assert groups.metadata == b"3"


def test_a_cube_with_functions_of_ones_own(place: Path, rng: random.Random) -> None:
    data = table(rng, 400)
    aggs: dict[str, Any] = {"long": Longest("v"), "hi": fb.max("v"), "n": fb.count()}
    with fb.open(place / "db", memory="8MB") as db:
        groups = db.cube("g", key=["a", "b"], aggs=aggs)
        groups.commit(data.slice(0, 250))
        groups.commit(data.slice(250))
        rows = found(groups.result())
        assert all(row["long"] == row["hi"] for row in rows)
        by_key = {(row["grouping"], row["a"], row["b"]): row["n"] for row in rows}
        assert by_key == {(row["grouping"], row["a"], row["b"]): row["n"] for row in wanted(data, "cube", ["a", "b"])}
    with fb.open(place / "db", memory="8MB") as db:
        with pytest.raises(fb.Invalid, match="give key and aggs as when it was made"):
            db.cube("g")
        again = db.cube("g", key=["a", "b"], aggs=aggs)
        assert found(again.result()) == rows


def test_what_is_refused(db: fb.Database) -> None:
    rows = pa.table({"a": [1], "b": [2]})
    groups = db.cube("g", key=["a", "b"], aggs={"n": fb.count()}, groupings=[["a"]])
    groups.update(rows)
    with pytest.raises(fb.Invalid, match=r"keeps no groups by \[\"b\"\]"):
        groups.by("b")
    with pytest.raises(fb.Invalid, match=r"keeps no groups by \[\]"):
        groups.get()
    for columns in (["x"], ["a", "a"]):
        with pytest.raises(fb.Invalid, match="each once"):
            groups.by(*columns)
    with pytest.raises(fb.Invalid, match="each once"):
        groups.get(1, a=1)
    with pytest.raises(TypeError):
        groups.get(1, 2, 3)
    with pytest.raises(TypeError, match="groupings is"):
        db.cube("h", key="a", aggs={"n": fb.count()}, groupings="all")
    with pytest.raises(TypeError, match="groupings is"):
        db.cube("h", key="a", aggs={"n": fb.count()}, groupings=7)  # type: ignore[arg-type]
    with pytest.raises(fb.Invalid, match="each once"):
        db.cube("h", key="a", aggs={"n": fb.count()}, groupings=[["b"]])
    with pytest.raises(fb.Invalid, match="at most 12 columns"):
        db.cube("h", key=[f"c{at}" for at in range(13)], aggs={"n": fb.count()})
    with pytest.raises(fb.Invalid, match="a column is called `grouping`"):
        db.cube("h", key="grouping", aggs={"n": fb.count()})
    with pytest.raises(fb.Invalid, match="a column is called `grouping`"):
        db.cube("h", key="grouping", aggs={"n": fb.count()}, schema=pa.schema([("grouping", pa.int64())]))
    with pytest.raises(fb.NotFound, match="no cube `h`"):
        db.cube("h")
    with pytest.raises(fb.Invalid, match="holds no `@`"):
        db.cube("h@1", key="a", aggs={"n": fb.count()}).update(rows)
    db.table("w").put(b"k", b"v")
    with pytest.raises(fb.Invalid, match="`w`"):
        db.cube("w", key="a", aggs={"n": fb.count()}).update(rows)
    db.aggregator("plain", key=["a"], aggs={"n": fb.count()}).update(rows)
    with pytest.raises(fb.Invalid, match=r"`plain` was made by Database\.aggregator"):
        db.cube("plain", key="a", aggs={"n": fb.count()})


def test_a_cube_without_columns(db: fb.Database) -> None:
    groups = db.cube("g", aggs={"n": fb.count()})
    groups.update(pa.table({"a": [1, 2]}))
    assert (groups.groupings, groups.get()) == ([[]], {"n": 2})
    assert found(groups.result()) == [{"n": 2, "grouping": 0}]


def test_killed_amid_commits_a_cube_counts_each_row_once(place: Path, rng: random.Random) -> None:
    """The parent kills it after a drawn time, so that the kill comes amid a commit."""
    program = textwrap.dedent(
        """
        import itertools, sys
        import pyarrow as pa
        import forebay as fb

        db = fb.open(sys.argv[1], memory="8MB")
        groups = db.cube("g", key=["a", "b"], aggs={"n": fb.count(), "s": fb.sum("v")})
        for part in itertools.count(int(groups.metadata or b"0")):
            rows = pa.table({"a": [part % 3] * 100, "b": list(range(100)), "v": [part] * 100})
            groups.commit(rows, metadata=b"%d" % (part + 1))
            print(part, flush=True)
        """
    )
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(place / "db")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        returned = int(process.stdout.readline())
        time.sleep(rng.random() / 10)
        process.kill()
        returned = max([returned, *(int(line) for line in process.stdout.read().split("\n")[:-1])])
        process.stdout.close()
        process.wait()
        with fb.open(place / "db") as db:
            groups = db.cube("g")
            parts = int(groups.metadata or b"0")
            assert parts > returned, "what was committed is there"
            assert groups.get() == {"n": 100 * parts, "s": 100 * sum(range(parts))}
            for at in range(3):
                of_a = range(at, parts, 3)
                assert groups.get(a=at) == ({"n": 100 * len(of_a), "s": 100 * sum(of_a)} if of_a else None)
                assert groups.get(a=at, b=7) == ({"n": len(of_a), "s": sum(of_a)} if of_a else None)
            for b in (0, 50, 99):
                assert groups.get(b=b) == {"n": parts, "s": sum(range(parts))}


def test_metadata_is_that_of_the_moment_also_of_a_cube_that_was_made_again(db: fb.Database) -> None:
    rows = pa.table({"a": [1, 2], "b": [2, 3]})
    made: dict[str, Any] = {"key": ["a", "b"], "aggs": {"n": fb.count()}}
    db.cube("g", **made).commit(rows, metadata=b"2")
    db.savepoint("s")
    db.drop_cube("g")
    groups = db.cube("g", **made)
    groups.commit(rows.slice(1), metadata=b"1")
    then = groups.at(db.open_savepoint("s"))
    assert (then.metadata, then.by("a").metadata, then.get()) == (b"2", b"2", {"n": 2})
    assert (groups.metadata, groups.get()) == (b"1", {"n": 1})
    db.rollback("s")
    assert (groups.metadata, groups.get()) == (b"2", {"n": 2})


def test_a_handle_of_before_the_first_rows_sees_what_another_made(db: fb.Database) -> None:
    rows = pa.table({"a": [1, 2], "b": [2, 3]})
    for opens in (db.cube, db.aggregator):
        made: dict[str, Any] = {"key": ["a", "b"], "aggs": {"n": fb.count()}}
        early, other = opens(opens.__name__, **made), opens(opens.__name__, **made)
        assert early.metadata is None
        other.commit(rows, metadata=b"2")
        assert early.metadata == b"2"
        early = opens(opens.__name__, **made)
        assert early.get(1, 2) == {"n": 1}
        early.commit(metadata=b"3")
        assert other.metadata == b"3"


def test_an_update_of_one_long_record_batch_has_each_row_once(db: fb.Database) -> None:
    """Six columns are 64 groupings, so that it is committed in parts of some hundred rows."""
    keys = [f"k{at}" for at in range(6)]
    data = pa.table({key: list(range(at, 20_000 + at)) for at, key in enumerate(keys)})
    groups = db.cube("g", key=keys, aggs={"n": fb.count()})
    assert groups.update(data) == 20_000
    assert groups.get() == {"n": 20_000}
    assert groups.get(k5=7) == {"n": 1}
    assert pa.table(groups.by("k1", "k3").result()).num_rows == 20_000

