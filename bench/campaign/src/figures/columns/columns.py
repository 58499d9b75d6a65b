"""Answers questions of the db-benchmark from a file into a file by DuckDB or Polars, writes the rows as Parquet, and
holds answers against each other.

usage: columns.py convert CSV PARQUET
       columns.py duckdb|polars QUESTION ROWS ANSWER THREADS
       columns.py check QUESTION ANSWER EXPECTED MEDIAN_ERROR
"""

import json
import os
import sys
import time

IDS = ["id1", "id2", "id3", "id4", "id5", "id6"]
# By the question: what a group is, what DuckDB is asked, and how many answers there are.
QUESTIONS = {
    "1": (["id1"], "sum(v1)::bigint", 1),
    "2": (["id1", "id2"], "sum(v1)::bigint", 1),
    "3": (["id3"], "sum(v1)::bigint, avg(v3)", 2),
    "4": (["id4"], "avg(v1), avg(v2), avg(v3)", 3),
    "5": (["id6"], "sum(v1)::bigint, sum(v2)::bigint, sum(v3)", 3),
    "6": (["id4", "id5"], "median(v3), stddev_samp(v3)", 2),
    "7": (["id3"], "max(v1) - min(v2)", 1),
    "8": (["id6"], "unnest(max(v3, 2))", 1),
    "9": (["id2", "id4"], "pow(corr(v1, v2), 2)", 1),
    "10": (IDS, "sum(v3), count(*)", 2),
}
# Of floating-point numbers that were added in another order.
ROUNDING = 1e-9


def convert(csv, parquet):
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    kinds = [pyarrow.string()] * 3 + [pyarrow.int32()] * 5 + [pyarrow.float64()]
    kinds = dict(zip(IDS + ["v1", "v2", "v3"], kinds))
    rows = pyarrow.csv.read_csv(csv, convert_options=pyarrow.csv.ConvertOptions(column_types=kinds))
    pyarrow.parquet.write_table(rows, parquet)


def duckdb(question, rows, answer, threads):
    import duckdb

    yield duckdb.__version__
    con = duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})
    con.execute("set enable_progress_bar = false")
    by, asked, _ = QUESTIONS[question]
    by = ", ".join(by)
    form = "format parquet, compression snappy" if answer.endswith("parquet") else "format csv, header"
    con.execute(f"copy (select {by}, {asked} from '{rows}' group by {by}) to '{answer}' ({form})")


def polars(question, rows, answer, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars
    from polars import col

    yield polars.__version__
    asked = {
        "1": [col("v1").sum()],
        "2": [col("v1").sum()],
        "3": [col("v1").sum(), col("v3").mean()],
        "4": [col("v1").mean(), col("v2").mean(), col("v3").mean()],
        "5": [col("v1").sum(), col("v2").sum(), col("v3").sum()],
        "6": [col("v3").median(), col("v3").std().alias("sd")],
        "7": [(col("v1").max() - col("v2").min()).alias("range")],
        "8": [col("v3").top_k(2)],
        "9": [(polars.corr("v1", "v2") ** 2).alias("r2")],
        "10": [col("v3").sum(), polars.len()],
    }[question]
    read = polars.scan_parquet if rows.endswith("parquet") else polars.scan_csv
    answers = read(rows).group_by(QUESTIONS[question][0]).agg(asked)
    if question == "8":
        answers = answers.explode("v3")
    if answer.endswith("parquet"):
        answers.sink_parquet(answer, compression="snappy", maintain_order=False, engine="streaming")
    else:
        answers.sink_csv(answer, maintain_order=False, engine="streaming")


def answered(con, question, answer):
    """An answer as rows of texts and numbers, whoever wrote it."""
    by, _, count = QUESTIONS[question]
    read = f"read_parquet('{answer}')" if answer.endswith("parquet") else f"read_csv('{answer}', all_varchar = true)"
    names = ['"' + name[0].replace('"', '""') + '"' for name in con.execute(f"from {read} limit 0").description]
    keys, cells = names[: len(by)], names[len(by) :]
    numbers = [f"nullif({cell}::varchar, '')::double" for cell in cells]
    if question == "7" and len(cells) == 2:
        # Who cannot subtract tells both.
        numbers = [f"{numbers[0]} - {numbers[1]}"]
    if question == "8":
        # Of who tells both in one text.
        numbers = [f"unnest(string_split({cells[0]}::varchar, ';'))::double"]
    if len(numbers) != count:
        raise ValueError(f"question {question} has {count} answers, and {answer} has {len(numbers)}")
    texts = [f"{key}::varchar as k{at}" for at, key in enumerate(keys)]
    numbers = [f"{number} as v{at}" for at, number in enumerate(numbers)]
    rows = f"select {', '.join(texts + numbers)} from {read}"
    # Of no spread there is no correlation: some call that null, and some not a number.
    cells = [f"case when not isnan(v{at}) then v{at} end as v{at}" for at in range(count)]
    keys = [f"k{at}" for at in range(len(by))]
    place = f"row_number() over (partition by {', '.join(keys)} order by v0)" if question == "8" else "1"
    return f"select {', '.join(keys + cells)}, {place} as place from ({rows})"


def check(question, answer, expected, median_error):
    """Against what was answered first, which is kept. Prints how many groups there are."""
    import duckdb

    con = duckdb.connect(config={"preserve_insertion_order": False})
    con.execute("set enable_progress_bar = false")
    if not os.path.exists(expected):
        con.execute(f"copy ({answered(con, question, answer)}) to '{expected}.part' (format parquet)")
        os.rename(f"{expected}.part", expected)
    by, _, count = QUESTIONS[question]
    keys = [f"k{at}" for at in range(len(by))]
    is_same = []
    for at in range(count):
        error = f"{ROUNDING} * greatest(1, abs(b.v{at}))"
        if question == "6" and at == 0:
            error = median_error
        near = f"coalesce(abs(a.v{at} - b.v{at}) <= {error}, a.v{at} is null and b.v{at} is null)"
        is_same.append(near)
    rows, groups, bad, example = con.execute(f"""
        with a as ({answered(con, question, answer)}), b as (from '{expected}'),
        pairs as (
            select a.k0 as one, b.k0 as other, {' and '.join(is_same)} as is_same, a.v0 as found, b.v0 as wanted,
                a.place = 1 as is_first
            from a full join b on {' and '.join(f'a.{key} = b.{key}' for key in keys + ['place'])}
        )
        select count(*), count(*) filter (is_first),
            count(*) filter (one is null or other is null or not is_same),
            any_value([one, other, found::varchar, wanted::varchar])
                filter (one is null or other is null or not is_same)
        from pairs
    """).fetchone()
    if bad:
        raise ValueError(f"{bad} of {rows} answers are others than those of the first engine, such as {example}")
    print(json.dumps({"groups": groups}))


def main(what, *arguments):
    if what in ("convert", "check"):
        return {"convert": convert, "check": check}[what](*arguments)
    steps = {"duckdb": duckdb, "polars": polars}[what](*arguments)
    # What is imported is not measured.
    version = next(steps)
    seconds, cpu_seconds = time.perf_counter(), time.process_time()
    for _ in steps:
        pass
    told = {
        "version": version,
        "seconds": time.perf_counter() - seconds,
        "cpu_seconds": time.process_time() - cpu_seconds,
    }
    print(json.dumps(told), flush=True)
    # Without taking everything down first.
    os._exit(0)


try:
    main(*sys.argv[1:])
except Exception as error:
    # Where results are told, so that the reason is kept.
    print(f"{type(error).__name__}: {error}")
    sys.exit(1)
