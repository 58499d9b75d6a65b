"""Counts keys by one engine, as a process that meter.rs starts: says that it is ready, waits for a line, counts, and
tells what that took. What it imports and opens before is not measured.

usage: engine.py duckdb|polars|datafusion ARROW PARQUET THREADS
"""

import json
import os
import sys
import time

QUERY = "select key, count(*) as n from keys group by key"


def duckdb(arrow, _, threads):
    import duckdb
    import pyarrow

    keys = pyarrow.ipc.open_file(pyarrow.memory_map(arrow)).read_all()
    con = duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})
    # It would be drawn where results are told.
    con.sql("set enable_progress_bar = false")
    con.register("keys", keys)
    yield duckdb.__version__
    yield con.sql(QUERY).to_arrow_reader(1 << 16)


def polars(_, parquet, threads):
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    counts = polars.scan_parquet(parquet).group_by("key").agg(polars.len().alias("n"))
    yield polars.__version__
    yield (batch.to_arrow() for batch in counts.collect_batches(engine="streaming"))


def datafusion(arrow, _, threads):
    import datafusion
    import pyarrow

    file = pyarrow.ipc.open_file(pyarrow.memory_map(arrow))
    batches = [file.get_batch(at) for at in range(file.num_record_batches)]
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(threads))
    context.register_record_batches("keys", [batches[at::threads] for at in range(threads)])
    yield datafusion.__version__
    yield (batch.to_pyarrow() for batch in context.sql(QUERY).execute_stream())


def main(engine, arrow, parquet, threads):
    import pyarrow.compute

    steps = {"duckdb": duckdb, "polars": polars, "datafusion": datafusion}[engine](arrow, parquet, int(threads))
    version = next(steps)
    print("ready", flush=True)
    sys.stdin.readline()
    seconds, cpu_seconds = time.perf_counter(), time.process_time()
    groups = counted = 0
    for batch in next(steps):
        groups += batch.num_rows
        counted += pyarrow.compute.sum(batch.column(1)).as_py()
    told = {
        "version": version,
        "seconds": time.perf_counter() - seconds,
        "adding_seconds": None,
        "cpu_seconds": time.process_time() - cpu_seconds,
        "groups": groups,
        "counted": counted,
        "checksum": None,
    }
    print(json.dumps(told), flush=True)
    sys.stdin.readline()
    # Without taking everything down first.
    os._exit(0)


main(*sys.argv[1:])
