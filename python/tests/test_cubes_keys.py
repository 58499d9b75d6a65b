"""Cubes by keys of every type, held against DuckDB's GROUPING SETS."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb

D = decimal.Decimal
LONG = "a text that is too long for a view"
NOON = dt.datetime(2024, 3, 31, 12, tzinfo=dt.UTC)

# The type of a column, the one that DuckDB gets, and its values besides null.
KINDS: dict[str, tuple[pa.DataType, pa.DataType, list[Any]]] = {
    "float": (pa.float64(), pa.float64(), [math.nan, -0.0, 0.0, 1.5, math.inf, -math.inf, 5e-324]),
    "single": (pa.float32(), pa.float32(), [math.nan, -0.0, 0.0, -2.25]),
    "decimal": (pa.decimal128(12, 3), pa.decimal128(12, 3), [D("-1.500"), D("0.000"), D("1.5"), D("123456789.001")]),
    "zone": (
        pa.timestamp("us", "Europe/Zurich"),
        pa.timestamp("us", "UTC"),
        [NOON, NOON - dt.timedelta(hours=11), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)],
    ),
    "time": (pa.timestamp("ms"), pa.timestamp("ms"), [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 12)]),
    "date": (pa.date32(), pa.date32(), [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    "coded": (pa.dictionary(pa.int8(), pa.string()), pa.string(), ["", "a", LONG]),
    "text": (pa.string(), pa.string(), ["", "a", "a\0", "a\0b", "ä"]),
    "large": (pa.large_string(), pa.string(), ["", "a", "b"]),
    "view": (pa.string_view(), pa.string(), ["", "a", LONG]),
    "bytes": (pa.binary(), pa.binary(), [b"", b"\0", b"\0\xff", b"\0\0\xff", b"\xff\0"]),
    "bytes_view": (pa.binary_view(), pa.binary(), [b"\0\xff", b"\0" * 20]),
    "truth": (pa.bool_(), pa.bool_(), [True, False]),
    "small": (pa.int8(), pa.int8(), [-128, 0, 127]),
    "unsigned": (pa.uint64(), pa.uint64(), [0, 1 << 63, (1 << 64) - 1]),
}


def plain(value: Any) -> Any:
    """What stands for all values that are one group."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


def chunk(rng: random.Random, kind: pa.DataType, pool: list[Any], values: list[Any]) -> pa.Array:
    """The values as a slice, before and behind which others stand."""
    before, behind = (rng.choices([None, *pool], k=rng.randrange(11)) for _ in range(2))
    all_of_it = pa.array([*before, *values, *behind], kind)
    return all_of_it.slice(len(before), len(values))


def rows_of(table: pa.Table, columns: list[str]) -> dict[tuple[Any, ...], list[Any]]:
    """The answers by grouping and key, where zeros and all that is no number are one value each."""
    keys = zip(*(table[name].to_pylist() for name in ["grouping", *columns]), strict=True)
    answers = zip(table["n"].to_pylist(), table["sum"].to_pylist(), strict=True)
    rows = {tuple(map(plain, key)): list(answer) for key, answer in zip(keys, answers, strict=True)}
    assert len(rows) == table.num_rows, "each group once"
    return rows


@settings(max_examples=50)
@given(
    seed=st.integers(0, 1 << 32),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True),
    counts=st.lists(st.sampled_from([0, 1, 3, 60]), min_size=1, max_size=4),
    flushes=st.booleans(),
)
def test_cubes_by_keys_of_any_type_are_those_of_duckdb(
    seed: int, kinds: list[str], counts: list[int], flushes: bool
) -> None:
    rng = random.Random(seed)
    values = {kind: [rng.choices([None, *KINDS[kind][2]], k=count) for count in counts] for kind in kinds}
    numbers = [[rng.randrange(100) for _ in range(count)] for count in counts]
    schema = pa.schema([*((kind, KINDS[kind][0]) for kind in kinds), ("v", pa.int64())])
    with tempfile.TemporaryDirectory() as place, fb.open(Path(place) / "db", memory="8MB") as db:
        groups = db.cube("g", key=kinds, aggs={"n": fb.count(), "sum": fb.sum("v")}, schema=schema)
        for at, added in enumerate(numbers):
            columns = [chunk(rng, KINDS[kind][0], KINDS[kind][2], values[kind][at]) for kind in kinds]
            batch = pa.record_batch([*columns, pa.array(added, pa.int64())], schema=schema)
            if at % 2:
                groups.update(batch)
            else:
                groups.commit(batch, metadata=b"%d" % at)
            if flushes:
                db.flush()
        found = pa.table(groups.result())
        assert groups.metadata == b"%d" % ((len(counts) - 1) // 2 * 2)
        if not sum(counts):
            # SQL has a group of no rows over all; a table of groups has none.
            assert found.num_rows == 0
            return
        check_answers(groups, found, kinds, wanted(kinds, values, numbers))


def wanted(
    kinds: list[str], values: dict[str, list[list[Any]]], numbers: list[list[int]]
) -> dict[tuple[Any, ...], list[Any]]:
    """The same by DuckDB, of whole columns of plain types."""
    columns = {kind: pa.array([value for part in values[kind] for value in part], KINDS[kind][1]) for kind in kinds}
    rows = pa.table({**columns, "v": pa.array([number for part in numbers for number in part], pa.int64())})
    names = ", ".join(f'"{kind}"' for kind in kinds)
    query = f"select {names}, count(*) n, sum(v)::bigint sum, grouping_id({names}) as grouping from rows group by cube({names})"
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    relation = connection.from_arrow(rows).query("rows", query)
    assert relation is not None
    return rows_of(relation.to_arrow_table(), kinds)


def check_answers(
    groups: fb.Cube, found: pa.Table, kinds: list[str], wanted: dict[tuple[Any, ...], list[Any]]
) -> None:
    """All groups, each by its names, and each grouping with its columns turned round."""
    assert rows_of(found, kinds) == wanted
    for columns in groups.groupings:
        turned = columns[::-1]
        level = groups.by(*turned)
        rows = pa.table(level.result())
        bits = sum(1 << at for at, kind in enumerate(reversed(kinds)) if kind not in columns)
        assert rows.num_rows == sum(1 for grouping, *_ in wanted if grouping == bits)
        for row in rows.to_pylist():
            answers = {name: row[name] for name in ("n", "sum")}
            key = {kind: row[kind] for kind in columns}
            whole = (bits, *(plain(key.get(kind)) for kind in kinds))
            assert [*answers.values()] == wanted[whole]
            assert groups.get(**key) == answers
            assert level.get(*(key[kind] for kind in turned)) == answers
        if turned:
            schema = pa.schema([rows.schema.field(kind) for kind in turned])
            keys = pa.Table.from_pylist(rows.select(turned).to_pylist()[::-1], schema=schema)
            many = pa.table(level.get_many(keys))
            assert many["sum"].to_pylist() == rows["sum"].to_pylist()[::-1]
