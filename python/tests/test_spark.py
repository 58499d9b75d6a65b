"""Group-by on Spark in two stages, against Spark's own. `make spark-groups-test` installs PySpark and runs it."""

from __future__ import annotations

import datetime as dt
import os
import random
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import forebay as fb
import forebay.spark

# PySpark leaves sockets to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


class Product(fb.UserAggregate):
    """The product of a column's values, by their logarithms."""

    name = "product"
    state = {"logs": "Float64"}
    answer = "Float64"
    tolerance = 1e-9

    def update(self, values: Any, groups: Any) -> Any:
        return self._sums(pc.ln(pa.record_batch(values).column(0)), groups)

    def merge(self, states: Any, groups: Any) -> Any:
        return self._sums(pa.record_batch(states).column("logs"), groups)

    def evaluate(self, states: Any) -> Any:
        return pc.exp(pa.record_batch(states).column("logs"))

    def _sums(self, logs: Any, groups: Any) -> Any:
        rows = pa.table({"g": pa.array(groups), "logs": logs})
        sums = rows.group_by("g").aggregate([("logs", "sum")]).sort_by("g")
        return pa.table({"logs": sums.column("logs_sum")})


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    builder = builder.config("spark.sql.shuffle.partitions", 3).config("spark.sql.session.timeZone", "Europe/Zurich")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def some_rows(rng: random.Random, count: int) -> pa.Table:
    """A key that half of the rows have, and many that few have; nulls among keys and values."""
    words = [None if rng.random() < 0.01 else "much" if rng.random() < 0.5 else f"w{rng.randrange(500)}" for _ in range(count)]
    days = [dt.datetime(2025, 3, 1 + rng.randrange(3), tzinfo=dt.timezone.utc) for _ in range(count)]
    values = [None if rng.random() < 0.1 else rng.uniform(0.5, 1.5) for _ in range(count)]
    other = [bytes(200)] * count
    kinds = pa.schema([("other", pa.binary()), ("word", pa.string()), ("day.of", pa.timestamp("us", "UTC")), ("v", pa.float64())])
    return pa.table([other, words, days, values], schema=kinds)


def sorted_rows(frame: Any, keys: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return sorted(rows, key=lambda row: [str(row[key]) for key in keys])


def test_it_gives_what_spark_gives(spark: SparkSession, rng: random.Random) -> None:
    rows = spark.createDataFrame(some_rows(rng, 20_000)).repartition(4)
    keys = ["word", "day.of"]
    aggs = {"n": fb.count(), "values": fb.count("v"), "least": fb.min("v"), "mean": fb.mean("v"), "all": fb.sum("v")}
    ours = sorted_rows(forebay.spark.group_by(rows, keys, aggs, partitions=3), keys)
    theirs = rows.groupBy("word", F.col("`day.of`")).agg(
        F.count("*").alias("n"), F.count("v").alias("values"), F.min("v").alias("least"),
        F.mean("v").alias("mean"), F.sum("v").alias("all"),
    )  # fmt: skip
    expected = sorted_rows(theirs, keys)
    assert len(ours) == len(expected) > 1000
    for one, other in zip(ours, expected, strict=True):
        assert list(one) == list(other)
        assert [one[name] for name in [*keys, "n", "values", "least"]] == [other[name] for name in [*keys, "n", "values", "least"]]
        assert (one["mean"], one["all"]) == pytest.approx((other["mean"], other["all"]))


def test_of_all_rows_functions_in_python_and_little_memory(spark: SparkSession, rng: random.Random) -> None:
    rows = some_rows(rng, 30_000)
    frame = spark.createDataFrame(rows).repartition(4)
    [row] = forebay.spark.group_by(frame, aggs={"n": fb.count(), "words": fb.distinct("word")}).collect()
    assert (row.n, row.words) == (30_000, len(set(rows["word"].to_pylist()) - {None}))
    assert [tuple(row) for row in forebay.spark.group_by(frame, aggs={"n": fb.count()}).collect()] == [(30_000,)]
    positive = frame.where("v is not null")
    ours = sorted_rows(forebay.spark.group_by(positive, "word", {"all": Product("v")}), ["word"])
    expected = sorted_rows(positive.groupBy("word").agg(F.exp(F.sum(F.log("v"))).alias("all")), ["word"])
    assert [row["word"] for row in ours] == [row["word"] for row in expected]
    assert [row["all"] for row in ours] == pytest.approx([row["all"] for row in expected])
    # More groups than there is memory for.
    many = spark.range(400_000).selectExpr("concat('a longer text, ', id % 300000) k", "id v")
    spilled = forebay.spark.group_by(many, "k", {"v": fb.max("v")}, memory="4MB")
    [both] = spilled.agg(F.count("*"), F.sum("v")).collect()
    assert tuple(both) == (300_000, sum(range(100_000, 400_000)))


def test_types_of_keys_are_kept(spark: SparkSession) -> None:
    # A time that is not there in the session's zone, among others.
    of_each = {"ntz": "timestamp_ntz'2025-03-30 02:30:00'", "zoned": "timestamp'2025-03-30 01:30:00'", "day": "date'2025-03-30'"}
    of_each |= {"decimal": "1.50BD", "nan": "double('NaN')", "bytes": "x'00ff'", "truth": "true", "byte": "3Y"}
    rows, keys = spark.range(100).selectExpr(*(f"{value} as {name}" for name, value in of_each.items())), list(of_each)
    ours = forebay.spark.group_by(rows, keys, {"n": fb.count()})
    theirs = rows.groupBy(*keys).agg(F.count("*").alias("n"))
    assert [(field.name, field.dataType) for field in ours.schema] == [(field.name, field.dataType) for field in theirs.schema]
    assert str(ours.collect()) == str(theirs.collect())


def test_what_does_not_fit_is_told_at_once(spark: SparkSession) -> None:
    rows = spark.range(3)
    with pytest.raises(fb.Invalid, match="nowhere"):
        forebay.spark.group_by(rows, "nowhere", {"n": fb.count()})
    with pytest.raises(fb.Invalid, match="v"):
        forebay.spark.group_by(rows, "id", {"n": fb.sum("v")})
    with pytest.raises(fb.Invalid, match="aggs"):
        forebay.spark.group_by(rows, "id")
    with pytest.raises(fb.Invalid, match="apples"):
        forebay.spark.group_by(rows, "id", {"n": fb.count()}, memory="512 apples")
    with pytest.raises(fb.Invalid, match="ForebayStateStoreProvider"):
        forebay.spark.group_by(spark.readStream.format("rate").load(), "value", {"n": fb.count()})
    assert forebay.spark.group_by(rows.where("id > 5"), "id", {"n": fb.count()}).collect() == []
