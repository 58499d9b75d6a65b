"""What a database keeps of groups: opened otherwise, rolled back, committed with batches, and in parts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pytest

import forebay as fb

Kind = Literal["aggregator", "cube", "windows"]
KINDS: list[Kind] = ["aggregator", "cube", "windows"]
DAY = dt.datetime(2025, 3, 1)
ROWS = pa.table({"t": pa.array([DAY, DAY], pa.timestamp("us")), "a": [1, 2], "b": ["x", "y"]})


def opened(db: fb.Database, kind: Kind, **given: Any) -> Any:
    more = {"time": "t", "every": "1d"} if kind == "windows" and "aggs" in given else {}
    return getattr(db, kind)("g", **more, **given)


def made(db: fb.Database, kind: Kind) -> Any:
    return opened(db, kind, key=["a", "b"], aggs={"n": fb.count()})


def drop(db: fb.Database, kind: Kind) -> None:
    if kind == "aggregator":
        db.drop_table("g")
        db.drop_table("g.schema")
    else:
        getattr(db, f"drop_{kind}")("g")


def counted(groups: Any) -> int:
    if isinstance(groups, fb.Cube):
        return int((groups.get() or {"n": 0})["n"])
    return sum(pa.table(groups.result())["n"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_a_handle_goes_on_where_a_rollback_brings_back_what_was_dropped(db: fb.Database, kind: Kind) -> None:
    """Its tables were those of later groups of that name, and each write by it raised NotFound for ever."""
    made(db, kind).commit(ROWS, metadata=b"2")
    db.savepoint("s")
    drop(db, kind)
    groups = made(db, kind)
    groups.commit(ROWS.slice(1), metadata=b"1")
    assert (groups.metadata, counted(groups)) == (b"1", 1)
    db.rollback("s")
    assert (groups.metadata, counted(groups)) == (b"2", 2)
    assert groups.update(ROWS) == 2
    groups.commit(ROWS, metadata=b"6")
    assert (groups.metadata, counted(groups)) == (b"6", 6)
    assert (made(db, kind).metadata, counted(made(db, kind))) == (b"6", 6)
    # What is dropped, and not made again, is not made by who holds it still.
    drop(db, kind)
    with pytest.raises(fb.NotFound):
        groups.update(ROWS)
    with pytest.raises(fb.NotFound):
        groups.commit(ROWS, metadata=b"7")
    assert [name for name in db.tables() if name.startswith("g")] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_handle_does_not_go_on_with_other_groups_of_its_name(db: fb.Database, kind: Kind) -> None:
    opened(db, kind, key="a", aggs={"n": fb.count()}).commit(ROWS)
    db.savepoint("s")
    drop(db, kind)
    groups = made(db, kind)
    groups.update(ROWS)
    db.rollback("s")
    with pytest.raises(fb.Invalid, match="asked for|was declared"):
        groups.update(ROWS)
    assert counted(opened(db, kind)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_is_not_said_otherwise(db: fb.Database, kind: Kind) -> None:
    made(db, kind).update(ROWS)
    for key in (["b", "a"], ["a"], "other", []):
        with pytest.raises(fb.Invalid, match="`g` was made with key"):
            opened(db, kind, key=key)
    others = [
        ROWS.schema.set(1, pa.field("a", pa.string())),
        ROWS.schema.set(2, pa.field("b", pa.float64())),
    ]
    for schema in others:
        for given in ({}, {"key": ["a", "b"], "aggs": {"n": fb.count()}}):
            with pytest.raises(fb.Invalid, match=r"other columns than schema= tells.*column `[ab]`"):
                opened(db, kind, schema=schema, **given)
    with pytest.raises(fb.Invalid, match="`b`"):
        opened(db, kind, schema=ROWS.schema.remove(2))
    # The same is well, also where texts are laid out otherwise, or columns come in another order.
    same = pa.schema([pa.field("b", pa.large_string()), ROWS.schema.field("a"), ROWS.schema.field("t")])
    sames: list[dict[str, Any]] = [{"key": ["a", "b"]}, {"schema": ROWS.schema}, {"key": ("a", "b"), "schema": same}]
    for given in sames:
        assert counted(opened(db, kind, **given)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_is_as_durable_as_its_batch_was_to_be(db: fb.Database, kind: Kind) -> None:
    groups, notes = made(db, kind), db.table("notes")
    for of_batch, of_commit in (("disk", None), ("disk", "memory"), (None, "disk"), ("memory", "disk")):
        batch = db.batch(durability=of_batch)  # type: ignore[arg-type]
        batch.put(notes, b"k", b"v")
        last = groups.commit(ROWS, batch=batch, durability=of_commit)
        assert db.durable_sequence >= last, (of_batch, of_commit)


@pytest.mark.parametrize("kind", ["aggregator", "windows"])
def test_groups_of_many_keys_are_of_one_moment(db: fb.Database, kind: Kind) -> None:
    """Each record batch of keys, and each part of a long one, was looked up as of its own."""
    groups = made(db, kind)
    groups.update(ROWS)
    result = pa.table(groups.result())
    keys = result.select(result.column_names[:-1])

    def asked() -> Iterator[pa.RecordBatch]:
        for batch in keys.to_batches(max_chunksize=1):
            yield batch
            groups.update(ROWS)

    found = pa.table(groups.get_many(pa.RecordBatchReader.from_batches(keys.schema, asked())))
    assert (found["n"].to_pylist(), counted(groups)) == ([1, 1], 6)


def test_an_update_of_a_cube_is_committed_in_parts_by_how_many_groupings_there_are(db: fb.Database) -> None:
    """Seven columns are 128 groupings: all rows of one record batch at once would be 320,000 groups in memory."""
    keys = [f"k{at}" for at in range(7)]
    data = pa.record_batch({key: list(range(at, 2500 + at)) for at, key in enumerate(keys)})
    groups = db.cube("g", key=keys, aggs={"n": fb.count()}, schema=data.schema)
    db.keep_changes("256MB")
    before = db.last_sequence
    assert groups.update(data) == 2500
    commits = [len(changes) for _, changes in db.changes(before)]
    assert sum(commits) > 300_000
    assert max(commits) < sum(commits) / 2, commits
    assert groups.get() == {"n": 2500}
    assert groups.get(k6=7) == {"n": 1}
