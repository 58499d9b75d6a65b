"""Tables and groups as lazy frames of Polars: ``forebay.polars.scan``. It needs Polars, and nothing else.

>>> import forebay.polars
>>> forebay.polars.scan(users).filter(pl.col("key") >= b"m").select(pl.len()).collect()
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

try:
    import polars as pl
    from polars.io.plugins import register_io_source
except ImportError as error:
    raise ImportError(f"forebay.polars needs Polars: pip install polars ({error})") from error

from forebay._forebay import Aggregator, OrderedTable, Rows, Scan, StoredAggregator, Table

__all__ = ["scan"]

_ENTRIES = {"key": pl.Binary(), "value": pl.Binary()}
_MIRRORED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq", "Eq": "Eq"}


def scan(source: Table | Scan[Any] | Rows | Aggregator | StoredAggregator) -> pl.LazyFrame:
    """A lazy frame over a table, a scan, groups of an aggregator, or other rows.

    Of a table or a scan the columns are ``key`` and ``value``, both ``Binary``; of an aggregator those of ``result()``. Each
    collect reads anew: of a table or an aggregator what is there by then, of a scan what there was when it was asked for.

    Record batches of at most 65,536 rows are read, and those that a query wants no more of are not. Of an OrderedTable the
    parts of a filter that compare ``key`` with bytes (``<``, ``<=``, ``==``, ``>=``, ``>``, joined by ``&``) become a range of
    keys, and nothing beyond it is read.

    Raises TypeError for another source, and in collect what reading raises, as ``polars.exceptions.ComputeError``.
    """
    if not isinstance(source, Table | Scan | Rows | Aggregator | StoredAggregator):
        raise TypeError(f"{type(source).__name__} is no table, scan, aggregator or rows of forebay's")

    def frames(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = n_rows
        # The rows are counted before the filter, and rows that a range of keys leaves out count, too.
        for batch in _read(source, predicate if n_rows is None else None).batches():
            frame = pl.DataFrame(batch)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            if with_columns is not None:
                frame = frame.select(with_columns)
            yield from frame.iter_slices(batch_size or max(frame.height, 1))
            if left == 0:
                return

    return register_io_source(frames, schema=_schema(source))


def _schema(source: Table | Scan[Any] | Rows | Aggregator | StoredAggregator) -> Any:
    if isinstance(source, Table | Scan):
        return _ENTRIES
    rows = source if isinstance(source, Rows) else source.result()
    return pl.Schema(rows)


def _read(source: Table | Scan[Any] | Rows | Aggregator | StoredAggregator, predicate: pl.Expr | None) -> Scan[Any] | Rows:
    if isinstance(source, OrderedTable) and predicate is not None:
        return source.range(*key_range(predicate))
    if isinstance(source, Table):
        return source.items()
    if isinstance(source, Aggregator | StoredAggregator):
        return source.result()
    return source


def key_range(predicate: pl.Expr) -> tuple[bytes | None, bytes | None]:
    """From which key on, and up to which one, which is not among them, a filter can be true at all."""
    low: bytes = b""
    high: bytes | None = None
    try:
        compared = list(_compared(json.loads(predicate.meta.serialize(format="json"))))
    except Exception:
        # It is how Polars writes expressions by itself, which may change: then the whole table is read, and filtered.
        return None, None
    for operator, bound in compared:
        # The first key behind another one is that with a zero byte more.
        beyond = bound + b"\0"
        if operator in ("Gt", "GtEq", "Eq"):
            low = max(low, beyond if operator == "Gt" else bound)
        if operator in ("Lt", "LtEq", "Eq"):
            end = bound if operator == "Lt" else beyond
            high = end if high is None else min(high, end)
    # Where nothing can be true, an empty range.
    return low, high if high is None else max(high, low)


def _compared(expression: Any) -> Iterator[tuple[str, bytes]]:
    """The comparisons of the key with bytes that all must hold."""
    binary = expression.get("BinaryExpr") if isinstance(expression, dict) else None
    if binary is None:
        return
    left, operator, right = binary["left"], binary["op"], binary["right"]
    if operator in ("And", "LogicalAnd"):
        yield from _compared(left)
        yield from _compared(right)
    elif operator in _MIRRORED:
        if left == {"Column": "key"} and (bound := _literal(right)) is not None:
            yield operator, bound
        elif right == {"Column": "key"} and (bound := _literal(left)) is not None:
            yield _MIRRORED[operator], bound


def _literal(expression: Any) -> bytes | None:
    try:
        return bytes(expression["Literal"]["Scalar"]["Binary"])
    except (KeyError, TypeError, ValueError):
        return None
