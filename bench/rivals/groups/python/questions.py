"""Every function of `forebay aggregate`, and what DuckDB has to be asked to know its answer."""

import math

from tables import COLUMNS

# What is kept of floating-point numbers that are added in another order, and of what sketches answer.
ROUNDING = 1e-11
SINGLE_ROUNDING = 1e-6
CORRELATION_ERROR = 1e-6
RANK_ERROR = 0.02
# Six standard errors of 2^12 registers, and of as many hashes.
REGISTERS_ERROR = 6 * 1.04 / 64
HASHES, HASHES_ERROR = 4096, 6 / 64
# So many texts are counted exactly.
FREQUENT_MAX = 192
CUT = {"cut": True}


def plain(value):
    return value


def number(value):
    """A number to the last digit, as its text."""
    return None if value is None else {"number": str(value)}


def near(value):
    """A floating-point number, and how far an answer may be."""
    value, error = value["value"], value["error"]
    if value is None or math.isnan(value) and error == CORRELATION_ERROR:
        return None
    if not math.isfinite(error):
        return {}
    return {"from": value - error, "to": value + error} if math.isfinite(value) else number(value)


def between(value):
    return None if value["from"] is None else value


def listed(most):
    def answer(items):
        return items if items is None or len(items) <= most else items[:most] + [CUT]

    return answer


def numbers(items):
    return None if items is None else {"numbers": items}


def joined(separator, most):
    def answer(items):
        if items is None:
            return None
        return separator.join(items[:most]) + ("…" if len(items) > most else "")

    return answer


def pairs(items):
    """Texts and how often each came, the commonest first."""
    if items is None:
        return None
    ordered = sorted(items.items(), key=lambda item: (-item[1], item[0].encode()))
    return {"pairs": [[text, str(count)] for text, count in ordered]} if len(ordered) <= FREQUENT_MAX else {}


def bins(bounds):
    def answer(counts):
        names = [repr(bound).removesuffix(".0") for bound in bounds] + ["inf"]
        return {"pairs": [[name, str(count)] for name, count in zip(names, counts)]} if sum(counts) else None

    return answer


def some(most):
    def answer(items):
        return None if items is None else {"some": min(most, len(items)), "of": [item["v"] for item in items]}

    return answer


def about(value, error):
    return f"{{'value': {value}::double, 'error': ({error})::double}}"


def added(name, value, rounding):
    """A sum or a mean. Where finite numbers alone may become too large on the way, it depends on their order."""
    finite = f"{name}(abs({value})) filter (isfinite({value}))"
    return about(f"{name}({value})", f"{rounding} * coalesce({finite}, 0)")


def texts(column):
    """Values as the texts that they are."""
    return f"strftime({column}, '%Y-%m-%dT%H:%M:%S.%f')" if COLUMNS[column] == "timestamp" else f"{column}::varchar"


def value(column):
    """Numbers and truths that are written as texts."""
    return {"o": "trim(o)::decimal(38,10)", "r": "r::boolean"}.get(column, column)


def of_columns():
    """Functions of one column: (the command's, DuckDB's, what makes the expected answer of DuckDB's)."""
    yield "count", "count(*)", number
    for column in COLUMNS:
        yield f"count:{column}", f"count({column})", number
        yield f"distinct:{column}", f"count(distinct {column})", number
        count = f"count(distinct {column})"
        yield f"approx_distinct:{column}", about(count, f"{REGISTERS_ERROR} * {count} + 0.5"), near
        error = f"case when {count} < {HASHES} then 0 else {HASHES_ERROR} * {count} + 1 end"
        yield f"theta:{column}", about(count, error), near
    for column in ["b", "r"]:
        for name in ["count_if", "bool_and", "bool_or"]:
            yield f"{name}:{column}", f"{name}({value(column)})", number if name == "count_if" else plain
    for column in ["g", "i", "u", "n", "h", "m", "q", "o"]:
        yield f"sum:{column}", f"sum({value(column)})::varchar", number
    for column in ["g", "i", "u", "n", "h", "m", "q", "o", "d", "e", "f"]:
        for name in ["min", "max"]:
            yield f"{name}:{column}", f"{name}({value(column)})::varchar", number
    for column in ["g", "i", "u", "n", "m", "q", "o", "d", "p", "e", "f"]:
        double = f"({value(column)})::double"
        rounding = SINGLE_ROUNDING if column == "f" else ROUNDING
        yield f"fsum:{column}", added("sum", double, rounding), near
        yield f"avg:{column}", added("avg", double, rounding), near
    for column in ["d", "p"]:
        yield f"sum:{column}", added("sum", column, ROUNDING), near
    for column in ["i", "n", "q", "o", "d", "p"]:
        double = f"({value(column)})::double"
        for name in ["var_pop", "var_samp"]:
            yield f"{name}:{column}", about(f"{name}({double})", f"{ROUNDING} * avg({double} * {double})"), near
        for name in ["stddev_pop", "stddev_samp"]:
            error = f"sqrt({ROUNDING} * avg({double} * {double}))"
            yield f"{name}:{column}", about(f"{name}({double})", error), near
    for column in ["g", "i", "u", "n"]:
        for name in ["bit_and", "bit_or", "bit_xor"]:
            yield f"{name}:{column}", f"{name}({column})::varchar", number
    for column in ["k", "s", "y", "t"]:
        for name, theirs in [("min_text", "min"), ("max_text", "max"), ("any", "min")]:
            yield f"{name}:{column}", f"{theirs}({texts(column)})", plain


def of_several():
    """Functions of two columns, and those that answer with lists."""
    for name, theirs in [("corr", "corr(d, p)"), ("r2", "pow(corr(d, p), 2)")]:
        yield f"{name}:d:p", about(theirs, CORRELATION_ERROR), near
    for column, by in [("s", "i"), ("s", "e"), ("i", "q"), ("n", "y"), ("k", "t"), ("d", "f"), ("s", "o"), ("y", "u")]:
        kind = numbers if COLUMNS[column] not in ("varchar", "date") else plain
        there = f"filter (where {column} is not null and {by} is not null)"
        found = texts(column)
        least = f"list({found} order by {value(by)}, {found}) {there}"
        greatest = f"list({found} order by {value(by)} desc, {found} desc) {there}"
        first = number if kind is numbers else plain
        for name in ["first", "arg_min"]:
            yield f"{name}:{column}:{by}", f"({least})[1]", first
        for name in ["last", "arg_max"]:
            yield f"{name}:{column}:{by}", f"({greatest})[1]", first
        yield f"top_k:{column}:3:{by}", f"({greatest})[1:3]", kind
    for column in ["i", "q", "f", "e", "y"]:
        greatest = f"list({texts(column)} order by {column} desc) filter (where {column} is not null)"
        yield f"top_k:{column}:2", f"({greatest})[1:2]", plain if column == "y" else numbers
    for column in ["s", "k", "g", "y", "t"]:
        found = texts(column)
        values = f"list({found} order by {found}) filter (where {column} is not null)"
        distinct = f"list(distinct {found} order by {found}) filter (where {column} is not null)"
        yield f"list:{column}", values, listed(1000)
        yield f"list:{column}:3", values, listed(3)
        yield f"set:{column}", distinct, listed(1000)
        yield f"set:{column}:2", distinct, listed(2)
        yield f"string_agg:{column}", values, joined(" ", 1000)
        yield f'string_agg:{column}:", ":3', values, joined(", ", 3)
        yield f'string_agg:{column}:"":2', values, joined("", 2)
    for column, bounds in [("d", [-500, 0, 500.5]), ("e", [-1e300, 0, 1e-300, 0.5]), ("n", [0])]:
        edges = [-math.inf, *bounds, math.inf]
        counts = [
            f"count({column}) filter ({column} >= {low!r}::double and {column} < {high!r}::double)"
            for low, high in zip(edges[:-2], edges[1:-1])
        ]
        counts.append(f"count({column}) filter ({column} >= {bounds[-1]!r}::double)")
        text = ";".join(repr(bound) for bound in bounds)
        counts = ", ".join(counts).replace("-inf::double", "'-inf'::double")
        yield f"histogram:{column}:{text}", f"[{counts}]", bins(bounds)
    yield "sample:s:3", "list(distinct {'v': s}) filter (where s is not null)", some(3)
    there = "filter (where s is not null and w is not null)"
    yield "sample:s:3:w", f"list(distinct {{'v': s, 'w': w}}) {there}", some(3)
    for column in ["d", "n"]:
        values = f"list({column}::double order by {column}) filter (where {column} is not null)"
        for share in [0, 0.05, 0.5, 0.99, 1]:
            low = f"greatest(1, floor({share - RANK_ERROR} * count({column})))::int"
            high = f"least(count({column}), ceil({share + RANK_ERROR} * count({column})) + 1)::int"
            found = f"{{'from': ({values})[{low}], 'to': ({values})[{high}]}}"
            yield f"approx_quantile:{column}:{share}", found, between
    for column in ["s", "r", "g"]:
        found = texts(column)
        yield f"frequent:{column}", f"histogram({found}) filter (where {column} is not null)", pairs


QUESTIONS = list(of_columns()) + list(of_several())
