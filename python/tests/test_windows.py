"""Windows: groups by key and by time that a database keeps, held against DuckDB's time_bucket and plain Python."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import forebay as fb

UTC = dt.UTC
BEGIN = dt.datetime(2024, 2, 28, 22, tzinfo=UTC)
MINUTE = dt.timedelta(minutes=1)


def rows(rng: random.Random, count: int, kind: pa.DataType | None = None) -> pa.Table:
    """Rows of three days, in no order."""
    kind = kind or pa.timestamp("us", "UTC")
    moments = [BEGIN + dt.timedelta(milliseconds=rng.randrange(3 * 86_400_000)) for _ in range(count)]
    since = int(BEGIN.timestamp() * 1000)
    if pa.types.is_date(kind):
        times = pa.array([moment.date() for moment in moments], kind)
    elif pa.types.is_integer(kind):
        times = pa.array([since + (moment - BEGIN) // dt.timedelta(milliseconds=1) for moment in moments], kind)
    else:
        if kind.tz is None:
            moments = [moment.replace(tzinfo=None) for moment in moments]
        times = pa.array(moments, pa.timestamp("us", kind.tz)).cast(kind, safe=False)
    user = [rng.choice(["ann", "bob", None, "a\0b"]) for _ in range(count)]
    return pa.table(
        {
            "ts": times,
            "user": pa.array(user, pa.string()),
            "n": pa.array([rng.randrange(100) for _ in range(count)], pa.int64()),
        }
    )


def asked_of_duckdb(query: str, data: pa.Table) -> list[dict[str, Any]]:
    """The rows that are expected, whose windows are in UTC."""
    relation = duckdb.connect().from_arrow(data).query("data", query)
    assert relation is not None
    wanted: list[dict[str, Any]] = relation.to_arrow_table().to_pylist()
    for row in wanted:
        row["window"] = row["window"].replace(tzinfo=UTC)
    return wanted


def found(result: fb.Rows) -> list[dict[str, Any]]:
    return sorted(pa.table(result).to_pylist(), key=repr)


AGGS = {"count": fb.count(), "sum": fb.sum("n"), "users": fb.distinct("user"), "last": fb.max("n")}


@pytest.mark.parametrize("every", ["15m", "1h", "1d", "1w", "1mo"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_windows_are_those_of_duckdb(db: fb.Database, rng: random.Random, every: str, unit: str) -> None:
    data = rows(rng, 2000, pa.timestamp(unit, "UTC"))
    windows = db.windows("w", time="ts", every=every, key="user", aggs=AGGS)
    assert windows.update(data.slice(0, 700)) == 700
    windows.commit(data.slice(700), metadata=b"2000")
    assert windows.metadata == b"2000"
    trunc = {"15m": "", "1h": "hour", "1d": "day", "1w": "week", "1mo": "month"}[every]
    plain = "ts at time zone 'UTC'"
    start = f"date_trunc('{trunc}', {plain})" if trunc else f"time_bucket(interval 15 minute, {plain})"
    query = f"""select ({start})::timestamp as "window", "user", count(*) as "count", sum(n)::bigint as sum,
        count(distinct "user") as users, max(n) as last from data group by all"""
    wanted = asked_of_duckdb(query, data)
    assert found(windows.result()) == sorted(wanted, key=repr)
    starts = sorted({row["window"] for row in wanted})
    assert windows.windows() == starts
    for start_at in starts[:3]:
        those = sorted((row for row in wanted if row["window"] == start_at), key=repr)
        assert found(windows.window(start_at)) == those
        assert found(windows.window(start_at + MINUTE)) == those
        for row in those:
            answers = {name: row[name] for name in AGGS}
            assert windows.get(start_at + MINUTE, row["user"]) == answers
            assert windows.get(user=row["user"], window=start_at) == answers
        assert windows.get(start_at, "nobody") is None
    cut = starts[len(starts) // 2]
    parts = found(windows.result(end=cut)) + found(windows.result(cut))
    assert sorted(parts, key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ms", "Europe/Oslo"), pa.date32(), pa.date64(), pa.int64(), pa.uint64()]
)
def test_times_are_of_many_types(db: fb.Database, rng: random.Random, kind: pa.DataType) -> None:
    data = rows(rng, 500, kind)
    windows = db.windows("w", time="ts", every=dt.timedelta(days=1), aggs={"n": fb.count(), "hi": fb.max_text("ts")})
    windows.update(data)
    if pa.types.is_integer(kind):
        wanted = Counter(value // 86_400_000 * 86_400_000 for value in data["ts"].to_pylist())
    elif pa.types.is_date(kind):
        wanted = Counter(dt.datetime(day.year, day.month, day.day) for day in data["ts"].to_pylist())
    else:
        zone = UTC if kind.tz else None
        moments = [moment.astimezone(UTC) if zone else moment for moment in data["ts"].to_pylist()]
        wanted = Counter(dt.datetime(m.year, m.month, m.day, tzinfo=zone) for m in moments)
    assert {row["window"]: row["n"] for row in pa.table(windows.result()).to_pylist()} == wanted
    assert windows.windows() == sorted(wanted)
    first = min(wanted)
    answers = windows.get(first)
    assert answers is not None and answers["n"] == wanted[first]
    if not isinstance(first, int):
        assert windows.windows(first.date(), first.date() + dt.timedelta(1)) == [first]
    # Times of other types fall into the same windows.
    other = data["ts"] if pa.types.is_integer(kind) else data["ts"].cast(pa.timestamp("ns", getattr(kind, "tz", None)))
    windows.update(pa.table({"ts": other}))
    assert windows.windows() == sorted(wanted)
    assert sum(row["n"] for row in pa.table(windows.result()).to_pylist()) == 1000


def test_what_retention_drops(db: fb.Database, rng: random.Random) -> None:
    data = rows(rng, 3000)
    windows = db.windows("w", time="ts", every="1h", retain="24h", key="user", aggs=AGGS)
    windows.update(data)
    assert windows.kept_from == dt.datetime(1970, 1, 1, tzinfo=UTC)
    before = db.tables()
    now = BEGIN + dt.timedelta(days=3)
    assert windows.expire(now) == 72 - 24
    assert windows.expire(now) == windows.expire(BEGIN) == 0
    kept_from = now - dt.timedelta(hours=24)
    assert windows.kept_from == kept_from
    assert len(before) - len(db.tables()) == 48, "each window is a table"
    kept = data.filter(pa.compute.greater_equal(data["ts"], pa.scalar(kept_from)))
    again = fb.Aggregator(key="user", aggs=AGGS)
    again.update(kept)
    assert found(windows.by("user").result()) == found(again.result())
    assert windows.windows() == [kept_from + dt.timedelta(hours=hour) for hour in range(24)]
    assert windows.get(BEGIN, "ann") is None
    assert found(windows.result(BEGIN, kept_from)) == []


def test_late_rows(db: fb.Database) -> None:
    windows = db.windows("w", time="ts", every="1m", retain="10m", key="user", aggs={"n": fb.count()})
    minutes = [BEGIN + MINUTE * at for at in range(20)]
    windows.update(pa.table({"ts": minutes, "user": ["a"] * 20}))
    windows.expire(minutes[-1])
    assert windows.windows() == minutes[9:]
    late = pa.table({"ts": [minutes[15], minutes[8], minutes[9], minutes[3]], "user": ["a"] * 4})
    for metadata in (None, b"refused"):
        with pytest.raises(fb.Invalid, match="column `ts`: row 2 has a time from before .*late="):
            windows.commit(late, metadata=metadata)
    with pytest.raises(fb.Invalid, match="row 2"):
        windows.update(late)
    assert (windows.get(minutes[15], "a"), windows.late_rows) == ({"n": 1}, 0), "all or nothing"
    assert windows.update(late, late="drop") == 2
    assert windows.metadata is None
    windows.commit(late, metadata=b"kept", late="drop")
    assert (db.windows("w").metadata, windows.late_rows) == (b"kept", 4)
    assert windows.get(minutes[15], "a") == windows.get(minutes[9], "a") == {"n": 3}
    assert windows.windows() == minutes[9:]
    with pytest.raises(fb.Invalid, match="late is `keep`"):
        windows.update(late, late="keep")  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["update", "commit"])
def test_rows_are_late_that_time_passes_amid_a_call(db: fb.Database, call: str) -> None:
    """From when on rows are kept was looked at once, before the first; then the call was refused for them."""
    windows = db.windows("w", time="ts", every="1m", retain="10m", key="user", aggs={"n": fb.count()})
    minutes = [BEGIN + MINUTE * at for at in range(30)]

    def batch(*those: int) -> pa.RecordBatch:
        times = pa.array([minutes[at] for at in those], pa.timestamp("us", "UTC"))
        return pa.record_batch({"ts": times, "user": pa.array(["a"] * len(those))})

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(0, 0, 12)
        windows.expire(minutes[20])
        yield batch(1, 13)

    windows.update(pa.Table.from_batches([batch(0)]))
    stream = pa.RecordBatchReader.from_batches(batch(0).schema, rows())
    if call == "update":
        windows.update(stream, late="drop")
    else:
        windows.commit(stream, metadata=b"5", late="drop")
        assert windows.metadata == b"5"
    assert windows.kept_from == minutes[10]
    assert [(row["window"], row["n"]) for row in found(windows.result())] == [(minutes[12], 1), (minutes[13], 1)]
    assert windows.late_rows == 2, "a group, whose rows had come in time, and a row"


def test_what_is_kept_and_what_is_refused(place: Path) -> None:
    data = pa.table({"ts": pa.array([0, 61_000], pa.int64()), "user": ["a", "b"]})
    with fb.open(place / "db", memory="8MB") as db:
        with pytest.raises(fb.NotFound, match="no windows `w`"):
            db.windows("w")
        with pytest.raises(fb.Invalid, match="together"):
            db.windows("w", time="ts", aggs={"n": fb.count()})
        lengths: list[tuple[str | dt.timedelta, str]] = [("1x", "a unit"), ("0s", "no time"), ("2mo", "1, 3 or 12"), (dt.timedelta(0), "millisecond")]
        for every, told in lengths:
            with pytest.raises(fb.Invalid, match=told):
                db.windows("w", time="ts", every=every, aggs={"n": fb.count()})
        with pytest.raises(fb.Invalid, match="both in months"):
            db.windows("w", time="ts", every="1mo", retain="90d", aggs={"n": fb.count()})
        with pytest.raises(fb.Invalid, match="two columns would be called `window`"):
            db.windows("w", time="ts", every="1m", key="window", aggs={"n": fb.count()})
        windows = db.windows("w", time="ts", every="1m", retain="1h", key="user", aggs={"n": fb.count()})
        with pytest.raises(fb.Invalid, match="nothing was added yet"):
            windows.result()
        with pytest.raises(fb.Invalid, match="nothing was added yet"):
            windows.commit(metadata=b"none")
        assert windows.metadata is None
        for wrong, told in [
            (data.rename_columns(["at", "user"]), "no column `ts`"),
            (data.append_column("window", [[1, 2]]), "have a column `window`"),
            (pa.table({"ts": ["soon"], "user": ["a"]}), "column `ts` is Utf8"),
            (pa.table({"ts": pa.array([5, None], pa.int64()), "user": ["a", "b"]}), "row 2 has no time"),
            (pa.table({"ts": pa.array([-1], pa.int64()), "user": ["a"]}), "before 1970"),
        ]:
            with pytest.raises(fb.Invalid, match=told):
                windows.commit(wrong)
        with db.batch() as batch:
            table = db.table("beside")
            batch.put(table, b"key", b"value")
            windows.commit(data, metadata=b"1", batch=batch)
        assert table.get(b"key") == b"value"
        assert windows.top("n", 1, start=60_000).batches()
        assert pa.table(windows.get_many(pa.table({"window": [0, 60_000, 0], "user": ["a", "b", "b"]})))[
            "n"
        ].to_pylist() == [1, 1, None]
        assert "every=\"60000ms\"" in repr(windows)
    with fb.open(place / "db", memory="8MB") as db:
        windows = db.windows("w")
        assert windows.name == "w"
        assert found(windows.result()) == [
            {"window": 0, "user": "a", "n": 1},
            {"window": 60_000, "user": "b", "n": 1},
        ]
        assert windows.metadata == b"1"
        with pytest.raises(fb.Invalid, match="were made with time=\"ts\", every=\"60000ms\", of which 60"):
            db.windows("w", time="ts", every="2m")
        with pytest.raises(fb.Invalid, match="aggs"):
            db.windows("w", key="user", aggs={"m": fb.count()})
        db.windows("w", time="ts", every=MINUTE, retain=dt.timedelta(hours=1), key="user", aggs={"n": fb.count()})
        db.drop_windows("w")
        assert list(db.tables()) == ["beside"]
        with pytest.raises(fb.NotFound):
            db.drop_windows("w")


def test_states_go_on_in_memory(db: fb.Database, rng: random.Random) -> None:
    data = rows(rng, 1000)
    windows = db.windows("w", time="ts", every="1h", key="user", aggs=AGGS)
    windows.update(data)
    merged = fb.Aggregator(key=["window", "user"], aggs=AGGS)
    merged.merge(windows.states())
    assert found(merged.result()) == found(windows.result())
    assert found(windows.by("window", "user").result()) == found(windows.result())
    top = pl.DataFrame(windows.top("count", 3))["count"].to_list()
    assert top == sorted((row["count"] for row in found(windows.result())), reverse=True)[:3]


class Widest(fb.UserAggregate):
    """How far values go apart."""

    name, version = "widest", 1
    state, answer = {"lo": "Int64", "hi": "Int64"}, "Int64"

    def update(self, values: fb.Column, groups: fb.Column) -> pl.DataFrame:
        column = pl.DataFrame(values).to_series()
        grouped = pl.DataFrame({"v": column, "g": pl.Series(groups)}).group_by("g").agg(
            lo=pl.col("v").min(), hi=pl.col("v").max()
        )
        return grouped.sort("g")

    def merge(self, states: fb.Column, groups: fb.Column) -> pl.DataFrame:
        table = pl.DataFrame(states).with_columns(g=pl.Series(groups))
        return table.group_by("g").agg(pl.col("lo").min(), pl.col("hi").max()).sort("g")

    def evaluate(self, states: fb.Column) -> pl.Series:
        table = pl.DataFrame(states)
        return table["hi"] - table["lo"]


def test_functions_of_ones_own(db: fb.Database, rng: random.Random) -> None:
    data = rows(rng, 2000)
    aggs: dict[str, Any] = {"widest": Widest("n"), "count": fb.count()}
    windows = db.windows("w", time="ts", every="1d", retain="2d", key="user", aggs=aggs)
    for at in range(0, 2000, 40):
        windows.commit(data.slice(at, 40))
    query = """select date_trunc('day', ts at time zone 'UTC')::timestamp as "window", "user", max(n) - min(n) as widest,
        count(*) as count from data group by all"""
    wanted = asked_of_duckdb(query, data)
    assert found(windows.result()) == sorted(wanted, key=repr)
    assert windows.expire(BEGIN + dt.timedelta(days=3)) == 1
    kept = [row for row in wanted if row["window"] >= windows.kept_from]
    assert found(windows.result()) == sorted(kept, key=repr)


DAY = """
    import datetime as dt
    import random
    import sys
    import pyarrow as pa
    import forebay as fb

    BEGIN = dt.datetime(2024, 2, 28, tzinfo=dt.UTC)
    AGGS = {"count": fb.count(), "sum": fb.sum("n")}

    def rows(minute):
        draw = random.Random(minute)
        count = draw.randrange(1, 9)
        moments = [BEGIN + dt.timedelta(minutes=minute, seconds=draw.randrange(60)) for _ in range(count)]
        return pa.table({"ts": moments, "user": draw.choices("abcde", k=count), "n": draw.choices(range(100), k=count)})
"""
LOAD = """
    with fb.open(sys.argv[1], memory="4MB") as db:
        plain = db.aggregator("plain", key="user", aggs=AGGS)
        windows = db.windows("windows", time="ts", every="1h", retain="12h", key="user", aggs=AGGS)
        done = [int(groups.metadata or 0) for groups in (plain, windows)]
        for minute in range(min(done), 1440):
            for groups, from_there in zip((plain, windows), done):
                if minute >= from_there:
                    groups.commit(rows(minute), metadata=b"%d" % (minute + 1))
            if minute % 90 == 0:
                windows.expire(BEGIN + dt.timedelta(minutes=minute))
            print(minute, flush=True)
"""


def test_a_day_of_updates_amid_kills_counts_once(place: Path, rng: random.Random) -> None:
    program, kills = textwrap.dedent(DAY) + textwrap.dedent(LOAD), 0
    while True:
        with subprocess.Popen(
            [sys.executable, "-c", program, str(place / "db")], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            lives = rng.randrange(1, 350)
            if sum(1 for _, line in zip(range(lives), child.stdout, strict=False)) == lives:
                # The child is amid something else by now.
                child.kill()
                kills += 1
                continue
        assert child.returncode == 0
        break
    assert kills > 3, "it is killed several times a day"
    given: dict[str, Any] = {}
    exec(textwrap.dedent(DAY), given)
    everything = pa.concat_tables([given["rows"](minute) for minute in range(1440)])
    whole = fb.Aggregator(key="user", aggs=given["AGGS"])
    whole.update(everything)
    with fb.open(place / "db", memory="4MB") as db:
        plain, windows = db.aggregator("plain"), db.windows("windows")
        assert plain.metadata == windows.metadata == b"1440"
        assert found(plain.result()) == found(whole.result())
        # The last time that windows expired was at 22:30.
        begin = given["BEGIN"] + dt.timedelta(hours=10)
        assert windows.kept_from == begin
        assert windows.windows() == [begin + dt.timedelta(hours=hour) for hour in range(14)]
        query = """select date_trunc('hour', ts at time zone 'UTC')::timestamp as "window", "user", count(*) as count,
            sum(n)::bigint as sum from data group by all"""
        wanted = [row for row in asked_of_duckdb(query, everything) if row["window"] >= begin]
        assert found(windows.result()) == sorted(wanted, key=repr)
