"""Group-by on Spark in two stages: ``forebay.spark.group_by``. It needs PySpark 4 and pyarrow; workers need this package, too.

>>> import forebay as fb, forebay.spark
>>> forebay.spark.group_by(events, key=["user", "day"], aggs={"n": fb.count(), "pages": fb.hll("page")})
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

try:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col
    from pyspark.sql.pandas.types import from_arrow_schema
except ImportError as error:
    raise ImportError(f"forebay.spark needs PySpark and pyarrow: pip install pyspark pyarrow ({error})") from error

from forebay._errors import Invalid
from forebay._forebay import Aggregator

if TYPE_CHECKING:
    from forebay._forebay import _Function

__all__ = ["group_by"]


def group_by(
    rows: DataFrame,
    key: str | Sequence[str] | None = None,
    aggs: Mapping[str, str | _Function] | None = None,
    *,
    memory: int | str = "512MB",
    partitions: int | None = None,
) -> DataFrame:
    """Groups a data frame of Spark's, and gives one with the columns of the key and an answer for each name in ``aggs``.

    ``key`` and ``aggs`` are those of ``forebay.Aggregator``: built-in functions, and ``UserAggregate`` of your own. Where the
    rows are, each task makes states of its groups; Spark shuffles the states by the key, and each task of the second stage
    merges those that it gets. So a key that most rows have costs the second stage one state a task of the first.

    ``memory``, in bytes or as ``"512MB"``, is for each task, outside of the JVM; a task whose groups need more writes them
    to its folder for temporary files. ``partitions`` is how many tasks the second stage has; else Spark decides.

    Lazy, as all of Spark: this call reads no rows. Raises Invalid for columns and functions that do not fit, and for a
    stream. Without a key there is one group, or none where there are no rows.
    """
    if rows.isStreaming:
        raise Invalid(
            "a stream is not grouped by forebay.spark.group_by, which would group each batch by itself: use DataFrame.groupBy "
            "with the state store dev.forebay.spark.ForebayStateStoreProvider"
        )
    spark = rows.sparkSession
    keys, aggs = [key] if isinstance(key, str) else list(key or ()), aggs or {}
    whole = spark.createDataFrame([], rows.schema).toArrow().schema
    _aggregator(whole, keys, aggs, memory).close()
    columns = [name for name in whole.names if name in keys or _needs(whole, name, keys, aggs)]
    # Of no columns pyarrow would count no rows.
    columns = columns or whole.names[:1]
    of_rows = pa.schema([whole.field(name) for name in columns])
    none = _aggregator(of_rows, keys, aggs)
    of_states, of_answers = pa.table(none.states()).schema, pa.table(none.result()).schema

    def made(read: Callable[[Aggregator, pa.RecordBatchReader], object], of: pa.Schema, shown: str, names: list[str]) -> Any:
        def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with (
                tempfile.TemporaryDirectory(prefix="forebay-") as spill,
                Aggregator(key=keys, aggs=aggs, memory=memory, spill=spill, threads=1, schema=of_rows) as groups,
            ):
                read(groups, pa.RecordBatchReader.from_batches(of, (_typed(batch, of) for batch in batches)))
                for batch in pa.RecordBatchReader.from_stream(getattr(groups, shown)()):
                    yield batch.rename_columns(names)

        return stage

    # Between its stages columns are called by their places: mapInArrow takes no name with a dot in it.
    plain = [f"c{place}" for place in range(len(of_states))]
    shown = rows.select(*(col(f"`{name.replace('`', '``')}`").alias(f"c{at}") for at, name in enumerate(columns)))
    states = shown.mapInArrow(made(Aggregator.update, of_rows, "states", plain), _spark_schema(of_states, plain))
    into: Any = [partitions] if partitions else []
    by_key = states.repartition(*into, *plain[: len(keys)]) if keys else states.repartition(1)
    final = made(Aggregator.merge, of_states, "result", of_answers.names)
    return by_key.mapInArrow(final, _spark_schema(of_answers, of_answers.names))


def _aggregator(
    schema: pa.Schema, keys: list[str], aggs: Mapping[str, str | _Function], memory: int | str = "16MB"
) -> Aggregator:
    return Aggregator(key=keys, aggs=aggs, memory=memory, threads=1, schema=schema)


def _needs(whole: pa.Schema, column: str, keys: list[str], aggs: Mapping[str, str | _Function]) -> bool:
    """Whether a function reads a column: without it there is no such aggregator."""
    try:
        _aggregator(whole.remove(whole.get_field_index(column)), keys, aggs).close()
    except Invalid:
        return True
    return False


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Spark passes on columns without their metadata, which name the functions, and times in the session's zone."""
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _spark_schema(schema: pa.Schema, names: list[str]) -> Any:
    return from_arrow_schema(schema.empty_table().rename_columns(names).schema, prefer_timestamp_ntz=True)
