"""Aggregation functions, for ``aggs``.

Each call gives the function's text, such as ``sum:amount``, which may as well be written by hand: ``docs/guide/aggregates.md``
lists all. Null values are passed over, but by :func:`count` of rows. What each answers, and in which type of Arrow's, is in
the same page.
"""

from __future__ import annotations

from collections.abc import Sequence

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


__all__ = [
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
