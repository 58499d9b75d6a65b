"""Aggregation functions, for ``aggs``.

Each call gives the function's text, such as ``sum:amount``, which may as well be written by hand: ``docs/guide/aggregates.md``
lists all. Null values are passed over, but by :func:`count` of rows. What each answers, and in which type of Arrow's, is in
the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from forebay._forebay import Column
from forebay._forebay import quoted as _quoted


def _of(name: str, *words: object) -> str:
    return ":".join([name, *(str(word) for word in words)])


def count(column: str | None = None) -> str:
    """How many rows; of a column, how many with a value in it. ``Int64``."""
    return "count" if column is None else _of("count", _quoted(column))


def count_if(column: str) -> str:
    """How many rows in which the column is true. ``Int64``."""
    return _of("count_if", _quoted(column))


def sum(column: str) -> str:
    """The exact sum of integers and decimals, ``Decimal128(38, ..)``; of floats ``Float64``."""
    return _of("sum", _quoted(column))


def isum(column: str) -> str:
    """The exact sum of integers of 64 bits, in 16 bytes a group where :func:`sum` has 40. ``Decimal128(38, 0)``."""
    return _of("isum", _quoted(column))


def fsum(column: str) -> str:
    """The compensated sum of numbers. ``Float64``, and faster than :func:`sum` of floats."""
    return _of("fsum", _quoted(column))


def mean(column: str) -> str:
    """The mean. ``Float64``."""
    return _of("mean", _quoted(column))


avg = mean


def min(column: str) -> str:
    """The least number, in the column's kind of number."""
    return _of("min", _quoted(column))


def max(column: str) -> str:
    """The greatest number, in the column's kind of number."""
    return _of("max", _quoted(column))


def min_text(column: str) -> str:
    """The least text, by its bytes."""
    return _of("min_text", _quoted(column))


def max_text(column: str) -> str:
    """The greatest text, by its bytes."""
    return _of("max_text", _quoted(column))


def any(column: str) -> str:
    """One of the values, the same in whatever order they come."""
    return _of("any", _quoted(column))


def var(column: str, *, ddof: int = 1) -> str:
    """The variance of a sample; of all values with ``ddof=0``. ``Float64``."""
    return _of(_spread("var", ddof), _quoted(column))


def stddev(column: str, *, ddof: int = 1) -> str:
    """The standard deviation of a sample; of all values with ``ddof=0``. ``Float64``."""
    return _of(_spread("stddev", ddof), _quoted(column))


def _spread(name: str, ddof: int) -> str:
    if ddof not in (0, 1):
        raise ValueError(f"ddof is {ddof}; give 0 or 1")
    return f"{name}_samp" if ddof else f"{name}_pop"


def corr(column: str, other: str) -> str:
    """Pearson's correlation of two columns. ``Float64``."""
    return _of("corr", _quoted(column), _quoted(other))


def bool_and(column: str) -> str:
    """Whether all are true. ``Boolean``."""
    return _of("bool_and", _quoted(column))


def bool_or(column: str) -> str:
    """Whether any is true. ``Boolean``."""
    return _of("bool_or", _quoted(column))


def bit_and(column: str) -> str:
    """The bits that all integers have."""
    return _of("bit_and", _quoted(column))


def bit_or(column: str) -> str:
    """The bits that any integer has."""
    return _of("bit_or", _quoted(column))


def bit_xor(column: str) -> str:
    """The bits that an odd number of integers have."""
    return _of("bit_xor", _quoted(column))


def first(column: str, by: str) -> str:
    """The value where ``by`` is least, as text."""
    return _of("first", _quoted(column), _quoted(by))


def last(column: str, by: str) -> str:
    """The value where ``by`` is greatest, as text."""
    return _of("last", _quoted(column), _quoted(by))


def top_k(column: str, k: int, by: str | None = None) -> str:
    """The ``k`` greatest values, or those where ``by`` is greatest, as one text."""
    return _of("top_k", _quoted(column), k, *([] if by is None else [_quoted(by)]))


top = top_k


def distinct(column: str) -> str:
    """How many distinct values, exactly: a state grows with them. ``Int64``."""
    return _of("distinct", _quoted(column))


def approx_distinct(column: str, lg_k: int = 12) -> str:
    """About how many distinct values, by HyperLogLog: the standard error is 1.04 / sqrt(2**lg_k). ``Float64``."""
    return _of("approx_distinct", _quoted(column), lg_k)


hll = approx_distinct


def theta(column: str, lg_k: int = 12) -> str:
    """About how many distinct values, by a Theta sketch: the standard error is 1 / sqrt(2**lg_k). ``Float64``."""
    return _of("theta", _quoted(column), lg_k)


def quantile(column: str, share: float) -> str:
    """About the value that this share of all is below, by a t-digest. ``Float64``."""
    return _of("approx_quantile", _quoted(column), share)


def median(column: str) -> str:
    """About the value that half of all are below. ``Float64``."""
    return quantile(column, 0.5)


def frequent(column: str, size: int = 256) -> str:
    """The most frequent texts, and about how often each came, as one text. ``size`` is a power of 2."""
    return _of("frequent", _quoted(column), size)


def list(column: str, most: int = 1000) -> str:
    """The values in the order of their bytes, the least ``most`` of them, as one text."""
    return _of("list", _quoted(column), most)


def set(column: str, most: int = 1000) -> str:
    """The distinct values, likewise."""
    return _of("set", _quoted(column), most)


def string_agg(column: str, separator: str = " ", most: int = 1000) -> str:
    """The values as one text."""
    return _of("string_agg", _quoted(column), _quoted(separator), most)


def histogram(column: str, bounds: Sequence[float]) -> str:
    """How many values are below each bound, and above the last, as one text."""
    return _of("histogram", _quoted(column), ";".join(str(bound) for bound in bounds))


def sample(column: str, k: int, weight: str | None = None) -> str:
    """``k`` distinct values at random, by weight where a column of weights is given, as one text."""
    return _of("sample", _quoted(column), k, *([] if weight is None else [_quoted(weight)]))


class UserAggregate:
    """A function of one's own, over columns, for many groups at a time. Give an object of a subclass in ``aggs``.

    >>> import numpy as np, polars as pl
    >>> class GeometricMean(forebay.UserAggregate):
    ...     name = "geometric_mean"
    ...     state = {"logs": "Float64", "n": "Int64"}
    ...     answer = "Float64"
    ...     tolerance = 1e-9
    ...     def update(self, values, groups):
    ...         groups = pl.Series(groups).to_numpy()
    ...         logs = np.log(pl.DataFrame(values).to_series().to_numpy())
    ...         return pl.DataFrame({"logs": np.bincount(groups, logs), "n": np.bincount(groups)})
    ...     def merge(self, states, groups):
    ...         return pl.DataFrame(states).group_by(pl.Series(groups).alias("g")).sum().sort("g")
    ...     def evaluate(self, states):
    ...         states = pl.DataFrame(states)
    ...         return (states["logs"] / states["n"]).exp()
    >>> forebay.Aggregator(key="city", aggs={"mean": GeometricMean("price")})

    What the three calls are given has ``__arrow_c_array__``: make of it what you like, by ``pyarrow.record_batch``,
    ``polars.DataFrame`` or ``polars.Series``. What they return has ``__arrow_c_array__`` or ``__arrow_c_stream__``.
    Groups are numbered from 0 in each call, and each number up to the greatest stands in ``groups``, a column of
    ``UInt32``, once or more. They are numbers of this call alone.

    **Laws.** ``merge`` gives the same whatever the order of states, and however they are merged in parts; the merge of
    one state is that state; the states of rows merge to the state of all the rows. They are checked when the object is
    first used, over ``samples()`` or, before any is added, over the first rows: answers may differ by ``tolerance``.

    **Errors.** An exception is raised by the call on the aggregator that needed the function, and of the rows that
    ``update`` was given nothing is added. A merge may also run on a thread of the engine's: what it raises there is
    raised by the next call on the aggregator, and nothing is lost. No call of Forebay's is let in from within the three.
    """

    name: ClassVar[str]
    """What the function is called in files: letters, digits, ``_``, ``-``, ``.``."""
    version: ClassVar[int] = 1
    """Of its states, from 0 to 65535: raise it where states are to be of another meaning."""
    state: ClassVar[Any]
    """The columns of a state: a dictionary of names and types, or a schema of Arrow's (``__arrow_c_schema__``). A type is
    one of Arrow's, or its text: ``"Int64"``, ``"Float64"``, ``"Utf8"``, ``"Binary"``, ``"Boolean"``, ``"List(Float64)"``."""
    answer: ClassVar[Any]
    """The type of what it answers."""
    tolerance: ClassVar[float | None] = 0.0
    """How far answers may differ that are to be the same, as a share of the greater one, or of 1. ``None`` for any."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns

    def samples(self) -> Any:
        """Rows to check the laws over, with the columns by their names; ``None``, as here, for the first rows that come."""
        return None

    def update(self, values: Column, groups: Column) -> Any:
        """The states of groups, in the order of their numbers, of rows.

        ``values`` is a record batch of up to 1,048,576 rows with the columns by their names, as they came, with nulls.
        """
        raise NotImplementedError

    def merge(self, states: Column, groups: Column) -> Any:
        """The states of groups, in the order of their numbers, of states: a record batch of the columns of ``state``."""
        raise NotImplementedError

    def evaluate(self, states: Column) -> Any:
        """What states stand for: an array or a series, one answer for each."""
        raise NotImplementedError


__all__ = [
    "UserAggregate",
    "any",
    "approx_distinct",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "count_if",
    "distinct",
    "first",
    "frequent",
    "fsum",
    "histogram",
    "hll",
    "isum",
    "last",
    "list",
    "max",
    "max_text",
    "mean",
    "median",
    "min",
    "min_text",
    "quantile",
    "sample",
    "set",
    "stddev",
    "string_agg",
    "sum",
    "theta",
    "top",
    "top_k",
    "var",
]
