"""Random tables with nulls, extremes and odd text, as files of every kind that the command reads.

A table is made from a seed, and is the same each time. Of each kind of file it is what such a file can hold: `KINDS`
tells what becomes of it, as DuckDB has it, and both the file and the expected answers are made of that.
"""

import csv
import datetime
import json
import math

import duckdb
import pyarrow
import pyarrow.parquet

# What a column is to DuckDB.
COLUMNS = {
    "k": "varchar",  # keys that are nearly the same
    "g": "bigint",
    "i": "bigint",
    "u": "ubigint",
    "n": "integer",
    "h": "decimal(38,0)",
    "m": "decimal(38,2)",
    "q": "decimal(18,4)",
    "d": "double",
    "p": "double",
    "e": "double",  # huge, tiny, infinite, not a number
    "f": "float",
    "w": "double",  # weights: above nought
    "b": "boolean",
    "s": "varchar",
    "o": "varchar",  # numbers as people write them
    "r": "varchar",  # truths as people write them
    "y": "date",
    "t": "timestamp",
}

KEYS = [
    "a", "A", "a ", " a", "a\t", "aa", "", "null", "NULL", "\\N", "Ä", "A\u0308", "ä", "ß", "SS", "日本", "\U0001f980",
    "a,b", "a;b", "a\"b", "'a'", "\"", "\"\"", "a\nb", "a\r\nb", "a\\nb", "a\u0000b", "\ufeff", "\u00a0", "x=y", "…", "\\",
    "#", "-", "true", "key with a rather long text that does not fit any place for short ones " * 3,
]
NUMERALS = ["1", "01", "1.0", "+12.50", "-0", "-0.0", ".5", "5.", " 7 ", "1e3", "1E-3", "-1.25e+2", "0.000001", "99999999"]
TRUTHS = ["true", "True", "T", "t", "yes", "Y", "1", "false", "FALSE", "f", "no", "N", "0"]
I64 = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 2, 2**63 - 1]
EXTREME = [1e308, -1e308, 1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308, 1e15, 0.1, -0.0, 1e16, 1e-7]


def text(draws):
    """Any text, at times of any characters."""
    if draws.random() < 0.7:
        return draws.choice(KEYS)
    letters = ["a", "b", "Z", " ", ",", ";", "\"", "\\", "\n", "\t", "é", "Ω", "\u2028", "\U0001f600", "\ud7ff", "\x7f", "\x01"]
    return "".join(draws.choice(letters) for _ in range(draws.randrange(1, 12)))


def row(draws, keys, is_flat):
    """One row. Where values are flat, they are few, and so come again."""
    some = lambda value: None if draws.random() < 0.1 else value
    small = lambda: float(draws.randrange(-20, 20)) if is_flat else draws.uniform(-1000, 1000)
    day = datetime.date(1970, 1, 1) + datetime.timedelta(draws.randrange(-3, 4) if is_flat else draws.randrange(-700000, 2900000))
    stamp = datetime.datetime(2024, 2, 29) + datetime.timedelta(microseconds=draws.randrange(-(10**16), 10**16))
    extreme = draws.choice(EXTREME) if draws.random() < 0.9 else draws.choice([math.inf, -math.inf, math.nan])
    return {
        "k": some(draws.choice(keys)),
        "g": some(draws.choice(I64)),
        "i": some(draws.choice(I64) if draws.random() < 0.3 else draws.randrange(-(2**63), 2**63)),
        "u": some(2**64 - 1 - draws.randrange(50) if draws.random() < 0.5 else draws.randrange(2**64)),
        "n": some(draws.choice([-(2**31), 2**31 - 1, draws.randrange(-9, 9)])),
        "h": some(draws.randrange(-(2**110), 2**110)),
        "m": some(f"{draws.randrange(-10**32, 10**32)}.{draws.randrange(100):02d}"),
        "q": some(f"{draws.randrange(-10**9, 10**9)}.{draws.randrange(10**4):04d}"),
        "d": some(small()),
        "p": some(small()),
        "e": some(extreme),
        "f": some(draws.choice([0.1, -2.5, 3.4e37, 1.2e-38, 16777216.0, draws.uniform(-10, 10)])),
        "w": some(draws.uniform(0.1, 9.0)),
        "b": some(draws.random() < 0.5),
        "s": some(text(draws)),
        "o": some(draws.choice(NUMERALS)),
        "r": some(draws.choice(TRUTHS)),
        "y": some(day.isoformat()),
        "t": some(stamp.isoformat(" ")),
    }


def make(con, draws, rows):
    """Makes the table `rows`."""
    con.execute("create or replace table rows (" + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()) + ")")
    keys = [text(draws) for _ in range(draws.choice([1, 3, 12, 40, 300]))]
    is_flat = draws.random() < 0.5
    values = [list(row(draws, keys, is_flat).values()) for _ in range(rows)]
    if values:
        con.executemany(f"insert into rows values ({', '.join('?' * len(COLUMNS))})", values)


def of_delimited(name, kind):
    """An empty field is the empty text to a key, and no value to a function."""
    return f"nullif({name}, '')" if kind == "varchar" else name


def of_tsv(name, kind):
    """The same; a field holds neither tab nor newline."""
    kept = f"translate({name}, chr(9) || chr(10) || chr(13), '   ')"
    return f"nullif({kept}, '')" if kind == "varchar" else name


def of_any(name, kind):
    return name


# What becomes of a column.
KINDS = {"csv": of_delimited, "tsv": of_tsv, "jsonl": of_any, "parquet": of_any}


def shape(con, kind):
    """Makes the view `shaped`: what of the table a file of this kind holds."""
    columns = [f"{KINDS[kind](name, of)} as {name}" for name, of in COLUMNS.items()]
    con.execute(f"create or replace view shaped as select {', '.join(columns)} from rows")


def shown(value, of):
    """A value as its text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(single(value) if of == "float" else value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds")
    return str(value)


def single(value):
    """Of a number of 32 bits the shortest that tells it from others of 32 bits."""
    if not math.isfinite(value):
        return value
    bits = pyarrow.array([value], pyarrow.float32())
    texts = (float(f"{value:.{digits}g}") for digits in range(1, 18))
    return next(short for short in texts if abs(short) < 3.5e38 and pyarrow.array([short], pyarrow.float32()) == bits)


def write(con, draws, kind, path):
    """Writes what is `shaped` in one of the ways in which others write such files."""
    if kind == "parquet":
        return write_parquet(con, draws, path)
    rows = con.execute("from shaped").fetchall()
    with open(path, "w", encoding="utf-8", newline="") as file:
        if kind == "csv":
            quoting = draws.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
            out = csv.writer(file, quoting=quoting, lineterminator=draws.choice(["\n", "\r\n"]))
            out.writerow(COLUMNS)
            out.writerows([shown(*cell) for cell in zip(row, COLUMNS.values())] for row in rows)
        elif kind == "tsv":
            lines = [list(COLUMNS)] + [[shown(*cell) for cell in zip(row, COLUMNS.values())] for row in rows]
            end = draws.choice(["\n", "\r\n"])
            file.writelines("\t".join(line) + end for line in lines)
        else:
            is_ascii, has_nulls = draws.random() < 0.5, draws.random() < 0.5
            # A field that is in no record is refused.
            file.writelines(line_of_json(row, is_ascii, has_nulls or at == 0) + "\n" for at, row in enumerate(rows))


def line_of_json(row, is_ascii, has_nulls):
    fields = []
    for (name, of), value in zip(COLUMNS.items(), row):
        is_number = isinstance(value, (int, float)) or of.startswith("decimal")
        if value is None:
            cell = "null"
        elif is_number and not (isinstance(value, float) and not math.isfinite(value)):
            cell = shown(value, of)
        else:
            cell = json.dumps(shown(value, of), ensure_ascii=is_ascii)
        if value is not None or has_nulls:
            fields.append(f'"{name}":{cell}')
    return "{" + ",".join(fields) + "}"


def write_parquet(con, draws, path):
    if draws.random() < 0.5:
        codec, version = draws.choice(["snappy", "zstd", "uncompressed"]), draws.choice(["v1", "v2"])
        con.execute(f"copy shaped to '{path}' (format parquet, compression {codec}, parquet_version {version})")
        return
    pyarrow.parquet.write_table(
        con.sql("from shaped").to_arrow_table(),
        path,
        compression=draws.choice(["none", "snappy", "gzip", "brotli", "lz4", "zstd"]),
        use_dictionary=draws.random() < 0.5,
        data_page_version=draws.choice(["1.0", "2.0"]),
        data_page_size=draws.choice([None, 100, 1000]),
        row_group_size=draws.choice([None, 7, 1000]),
    )


def connection():
    con = duckdb.connect()
    con.execute("set enable_progress_bar = false")
    return con
