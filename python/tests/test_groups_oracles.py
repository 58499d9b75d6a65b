"""Every built-in function over random tables, held against DuckDB and against Polars, which agree where both have it."""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb

C = pl.col
Rows = list[dict[str, Any]]


def texts(values: list[Any]) -> list[str]:
    return sorted((str(value) for value in values if value is not None), key=str.encode)


def several(values: list[str]) -> str | None:
    """The text of a list."""
    escaped = [value.replace("\\", "\\\\").replace(";", "\\;") for value in values]
    return ";".join("\\…" if value == "…" else value for value in escaped) if values else None


def at_place(column: str, by: str, pick: Callable[..., Any]) -> Callable[[Rows], Any]:
    def found(rows: Rows) -> Any:
        those = [(row[by], str(row[column]).encode()) for row in rows if row[by] is not None and row[column] is not None]
        return pick(those)[1].decode() if those else None

    return found


def top_k(rows: Rows) -> Any:
    return sorted((row["i"] for row in rows if row["i"] is not None), reverse=True)[:3]


def bits(operate: Callable[[int, int], int]) -> Callable[[Rows], Any]:
    def found(rows: Rows) -> Any:
        values = [row["i"] for row in rows if row["i"] is not None]
        return functools.reduce(operate, values) if values else None

    return found


def bins(rows: Rows) -> list[int]:
    counts = [0, 0, 0]
    for row in rows:
        if row["f"] is not None:
            counts[0 if row["f"] < -1 else 1 if row["f"] < 2 else 2] += 1
    return counts


# Each function, the query of DuckDB's, and the expression of Polars' or plain Python over a group's rows.
EXACT: dict[str, tuple[str, str | None, pl.Expr | Callable[[Rows], Any] | None]] = {
    "count": (fb.count(), "count(*)", pl.len()),
    "count_s": (fb.count("s"), "count(s)", C("s").count()),
    "count_if": (fb.count_if("b"), "case when count(b) > 0 then count_if(b) end", None),
    "sum_i": (fb.sum("i"), "sum(i)", pl.when(C("i").count() > 0).then(C("i").sum())),
    "isum_i": (fb.isum("i"), "sum(i)", pl.when(C("i").count() > 0).then(C("i").sum())),
    "isum_small": (fb.isum("small"), "sum(small)", None),
    "sum_small": (fb.sum("small"), "sum(small)", None),
    "sum_u": (fb.sum("u"), "sum(u)", None),
    "sum_d": (fb.sum("d"), "sum(d)", pl.when(C("d").count() > 0).then(C("d").sum())),
    "sum_f": (fb.sum("f"), "sum(f)", pl.when(C("f").count() > 0).then(C("f").sum())),
    "fsum": (fb.fsum("f"), "fsum(f)", None),
    "min_i": (fb.min("i"), "min(i)", C("i").min()),
    "max_u": (fb.max("u"), "max(u)", C("u").max()),
    "min_nan": (fb.min("nan"), "min(nan)", C("nan").min()),
    "max_nan": (fb.max("nan"), "max(nan)", C("nan").nan_max()),
    "min_single": (fb.min("single"), "min(single)", C("single").min()),
    "max_d": (fb.max("d"), "max(d)", C("d").max()),
    "min_text": (fb.min_text("s"), "min(s)", C("s").min()),
    "max_text": (fb.max_text("view"), "max(\"view\")", C("view").max()),
    "max_coded": (fb.max_text("coded"), "max(coded)", None),
    "min_day": (fb.min_text("day"), "min(day)::varchar", C("day").min().dt.to_string()),
    "any": (fb.any("s"), "min(s)", None),
    "bool_and": (fb.bool_and("b"), "bool_and(b)", pl.when(C("b").count() > 0).then(C("b").all())),
    "bool_or": (fb.bool_or("b"), "bool_or(b)", pl.when(C("b").count() > 0).then(C("b").any())),
    "bit_and": (fb.bit_and("i"), "bit_and(i)", bits(lambda one, other: one & other)),
    "bit_or": (fb.bit_or("i"), "bit_or(i)", bits(lambda one, other: one | other)),
    "bit_xor": (fb.bit_xor("i"), "bit_xor(i)", bits(lambda one, other: one ^ other)),
    "distinct_s": (fb.distinct("s"), "count(distinct s)", C("s").drop_nulls().n_unique()),
    "distinct_day": (fb.distinct("day"), "count(distinct day)", C("day").drop_nulls().n_unique()),
    "distinct_time": (fb.distinct("time"), "count(distinct time)", C("time").drop_nulls().n_unique()),
    "first": (fb.first("s", "i"), None, at_place("s", "i", min)),
    "last": (fb.last("s", "i"), None, at_place("s", "i", max)),
    "list": (fb.list("s"), None, lambda rows: several(texts([row["s"] for row in rows]))),
    "set": (fb.set("coded"), None, lambda rows: several(texts(list({row["coded"] for row in rows})))),
    "string_agg": (fb.string_agg("s", "|"), "string_agg(s, '|' order by s)", None),
}
# Of no values Polars has a variance of 0 where that of a population is asked for, and SQL has none.
CLOSE: dict[str, tuple[str, str | None, pl.Expr | Callable[[Rows], Any] | None]] = {
    "mean": (fb.mean("f"), "avg(f)", C("f").mean()),
    "mean_i": (fb.mean("i"), "avg(i)", C("i").mean()),
    "mean_nan": (fb.mean("nan"), "avg(nan)", C("nan").mean()),
    "var": (fb.var("f"), "var_samp(f)", C("f").var()),
    "var_pop": (fb.var("i", ddof=0), "var_pop(i)", None),
    "stddev": (fb.stddev("f"), "stddev_samp(f)", C("f").std()),
    "stddev_pop": (fb.stddev("f", ddof=0), "stddev_pop(f)", None),
    "corr": (fb.corr("f", "i"), "corr(f, i)", None),
}
# What is within an error is held against what is exact, over few groups.
SKETCHES = {
    "hll": fb.hll("s2"),
    "theta": fb.theta("s2"),
    "median": fb.median("f"),
    "quantile": fb.quantile("f", 0.9),
    "frequent": fb.frequent("s"),
    "sample": fb.sample("s2", 3),
    "top_k": fb.top_k("i", 3),
    "top_by": fb.top_k("s", 2, "i"),
    "histogram": fb.histogram("f", [-1, 2]),
}
WORDS = ["", "ulm", "Ulm", "a;b", "é", "back\\slash", "a text that is rather long, longer than views keep", "…"]


def column(rng: random.Random, count: int, make: Callable[[], Any], kind: pa.DataType, nulls: float) -> pa.ChunkedArray:
    """Slices with offsets, of an array that is longer."""
    before, behind = rng.randrange(9), rng.randrange(9)
    values = [None if rng.random() < nulls else make() for _ in range(before + count + behind)]
    whole = pa.array(values, kind).slice(before, count)
    cut = rng.randrange(count + 1)
    return pa.chunked_array([whole.slice(0, cut), whole.slice(cut)], kind)


def table(rng: random.Random, count: int) -> pa.Table:
    nulls = rng.choice([0.0, 0.1, 0.9])
    words = rng.sample(WORDS, rng.randrange(1, len(WORDS)))
    size = rng.choice([3, 1000, 1 << 40])
    day = datetime.date(1969, 12, 28)

    def of(make: Callable[[], Any], kind: pa.DataType) -> pa.ChunkedArray:
        return column(rng, count, make, kind, nulls)

    return pa.table(
        {
            "k": of(lambda: rng.choice(words), rng.choice([pa.string(), pa.large_string(), pa.string_view()])),
            "kd": of(lambda: decimal.Decimal(rng.randrange(-2, 2)) / 10, pa.decimal128(9, 1)),
            "kt": of(lambda: datetime.time(rng.randrange(2), 0, 0, 7), pa.time64("us")),
            "km": of(lambda: datetime.datetime(1969, 12, 31, rng.randrange(3)), pa.timestamp("ms", "UTC")),
            "kc": of(lambda: rng.choice(words), pa.dictionary(pa.int16(), pa.string())),
            "kf": of(lambda: rng.choice([math.nan, -0.0, 0.0, 1.5]), pa.float64()),
            "i": of(lambda: rng.randrange(-size, size), pa.int64()),
            "small": of(lambda: rng.randrange(-128, 128), pa.int8()),
            "u": of(lambda: rng.randrange(1 << 63, 1 << 64), pa.uint64()),
            "f": of(lambda: rng.randrange(-400, 400) / 8, pa.float64()),
            "nan": of(lambda: rng.choice([math.nan, math.inf, -1.0, 2.0, 3.5]), pa.float64()),
            "single": of(lambda: rng.randrange(-40, 40) / 8, pa.float32()),
            "d": of(lambda: decimal.Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-4), pa.decimal128(18, 4)),
            "s": of(lambda: rng.choice(words), pa.string()),
            "s2": of(lambda: str(rng.randrange(400)), pa.string()),
            "view": of(lambda: rng.choice(words), pa.string_view()),
            "coded": of(lambda: rng.choice(words), pa.dictionary(pa.int8(), pa.string())),
            "b": of(lambda: rng.random() < 0.7, pa.bool_()),
            "day": of(lambda: day + datetime.timedelta(rng.randrange(8)), pa.date32()),
            "time": of(lambda: datetime.time(rng.randrange(24)), pa.time32("s")),
        }
    )


KEYS = st.sampled_from([[], ["k"], ["kd", "kc"], ["kt"], ["km", "b"], ["kf"], ["day"], ["small"]])


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def by_key(found: pa.Table, key: list[str], names: list[str]) -> dict[tuple[Any, ...], list[Any]]:
    found = pa.table({name: found[name] for name in [*key, *names]})
    rows = list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    answers = {tuple(map(plain, row[: len(key)])): [plain(value) for value in row[len(key) :]] for row in rows}
    assert len(answers) == len(rows), "each group once"
    return answers


def asked_of_duckdb(rows: pa.Table, key: list[str], queries: dict[str, str]) -> pa.Table:
    columns = [*key, *(f"{query} as {name}" for name, query in queries.items())]
    relation = duckdb.connect().from_arrow(rows)
    answer = relation.query("tab", f"select {', '.join(columns)} from tab {'group by all' if key else ''}")
    assert answer is not None
    return answer.to_arrow_table()


def asked_of_polars(rows: pa.Table, key: list[str], expressions: dict[str, pl.Expr]) -> pa.Table:
    frame = pl.DataFrame(rows)
    if not key:
        return frame.select(expression.alias(name) for name, expression in expressions.items()).to_arrow()
    # DuckDB and Forebay have one group of both zeros; so has Polars.
    return frame.group_by(key).agg(expression.alias(name) for name, expression in expressions.items()).to_arrow()


def groups_of(rows: pa.Table, key: list[str]) -> dict[tuple[Any, ...], Rows]:
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows.to_pylist():
        groups.setdefault(tuple(plain(row[name]) for name in key), []).append(row)
    return groups


def is_close(one: Any, other: Any) -> bool:
    if one == other or {one, other} <= {None, "nan"}:
        return True
    return None not in (one, other) and math.isclose(float(one), float(other), rel_tol=1e-8, abs_tol=1e-8)


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32), count=st.sampled_from([0, 1, 2, 30, 300]), key=KEYS, whole=st.booleans())
def test_functions_are_those_of_duckdb_and_polars(seed: int, count: int, key: list[str], whole: bool) -> None:
    rng = random.Random(seed)
    rows = table(rng, count)
    functions = {**EXACT, **CLOSE}
    groups = fb.Aggregator(key=key, aggs={name: text for name, (text, _, _) in functions.items()})
    cut = count if whole else rng.randrange(count + 1)
    other = fb.Aggregator(key=key, aggs={name: text for name, (text, _, _) in functions.items()})
    groups.update(rows.slice(0, cut))
    other.update(rows.slice(cut))
    groups.merge(other.states())
    names = [*functions]
    found = by_key(pa.table(groups.result()), key, names)
    if count == 0:
        # SQL has a group of no rows where there is no key; a table of groups has none.
        assert found == {}
        return

    def check(who: str, wanted: dict[tuple[Any, ...], list[Any]], asked: list[str]) -> None:
        assert found.keys() == wanted.keys(), who
        for group, answers in wanted.items():
            for name, expected in zip(asked, answers, strict=True):
                answer = found[group][names.index(name)]
                same = is_close(answer, expected) if name in CLOSE else answer == expected
                assert same, (who, name, group, answer, expected)

    queries = {name: query for name, (_, query, _) in functions.items() if query is not None}
    check("DuckDB", by_key(asked_of_duckdb(rows, key, queries), key, [*queries]), [*queries])
    expressions = {name: made for name, (_, _, made) in functions.items() if isinstance(made, pl.Expr)}
    check("Polars", by_key(asked_of_polars(rows, key, expressions), key, [*expressions]), [*expressions])
    loops = {name: made for name, (_, _, made) in functions.items() if made is not None and not isinstance(made, pl.Expr)}
    by_hand = {group: [plain(loop(those)) for loop in loops.values()] for group, those in groups_of(rows, key).items()}
    check("loops", by_hand, [*loops])


@settings(max_examples=15)
@given(seed=st.integers(0, 1 << 32), key=st.sampled_from([[], ["kd"], ["b"]]))
def test_sketches_are_within_their_errors(seed: int, key: list[str]) -> None:
    rng = random.Random(seed)
    rows = table(rng, 2000)
    groups = fb.Aggregator(key=key, aggs=SKETCHES)
    for start in range(0, 2000, 500):
        groups.update(rows.slice(start, 500))
    for group, those in groups_of(rows, key).items():
        asked = [decimal.Decimal(str(value)) if isinstance(value, (int, float)) and key == ["kd"] else value for value in group]
        found = groups.get(*asked)
        assert found is not None
        distinct = {row["s2"] for row in those} - {None}
        for name in ("hll", "theta"):
            assert abs(found[name] - len(distinct)) <= 0.08 * len(distinct) + 0.01, name
        values = sorted(row["f"] for row in those if row["f"] is not None)
        for name, share in (("median", 0.5), ("quantile", 0.9)):
            if not values:
                assert found[name] is None
                continue
            rank = sum(value <= found[name] for value in values) / len(values)
            below = sum(value < found[name] for value in values) / len(values)
            assert below - 0.05 - 1 / len(values) <= share <= rank + 0.05 + 1 / len(values), name
        words = Counter(row["s"] for row in those if row["s"] is not None)
        if words:
            most = max(words.values())
            assert f"={most}" in re.split(r"(?<!\\);", str(found["frequent"]))[0], found["frequent"]
            assert found["sample"] is None or len(str(found["sample"]).split(";")) == min(3, len(distinct))
        assert [int(value.split("=")[0]) for value in (found["top_k"] or "").split(";") if value] == top_k(those)
        assert (found["top_by"] is None) == (not any(row["s"] is not None and row["i"] is not None for row in those))
        told = [int(part.rsplit("=", 1)[1]) for part in (found["histogram"] or "").split(";") if part]
        assert told == bins(those) or (not values and not told), found["histogram"]


def test_all_functions_are_here() -> None:
    named = {text.split(":")[0] for text, _, _ in [*EXACT.values(), *CLOSE.values()]}
    named |= {text.split(":")[0] for text in SKETCHES.values()}
    made: set[str] = set()
    for name in fb.functions.__all__:
        function = getattr(fb.functions, name)
        if name == "UserAggregate":
            continue
        arguments = {"corr": ("f", "i"), "first": ("s", "i"), "last": ("s", "i")}.get(name, ("f",))
        more: dict[str, tuple[Any, ...]] = {"quantile": (0.5,), "top": (2,), "top_k": (2,), "sample": (2,), "histogram": ([1],)}
        made.add(function(*arguments, *more.get(name, ())).split(":")[0])
    assert made <= named, "each function of the package is held against something"
