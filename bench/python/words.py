"""Group-by of words: 20 million rows of 2.5 million, counted, by Forebay and by DuckDB, each in a process of its own.

Rows come as Arrow's record batches of 65,536, which are there before. What is timed is until all groups are seen. Memory is
what the process has more at its peak than before it began.

    python bench/python/words.py --rows 20000000 --groups 2500000
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa


def data(rows: int, groups: int) -> pa.Table:
    places = np.random.default_rng(3).integers(0, groups, rows)
    words = pa.array([f"w{at * 2654435761 % 2**32:08x}" for at in range(groups)])
    column = words.take(pa.array(places))
    return pa.table({"word": pa.chunked_array([column.slice(at, 1 << 16) for at in range(0, rows, 1 << 16)])})


def memory(name: str) -> int:
    """``VmRSS`` or ``VmHWM`` of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def by_forebay(table: pa.Table, limit: int, threads: int, place: str) -> int:
    import forebay

    with forebay.Aggregator(key="word", aggs={"n": forebay.count()}, memory=limit, threads=threads, spill=place) as groups:
        groups.update(table)
        return sum(len(batch) for batch in groups.result().batches())


def by_duckdb(table: pa.Table, limit: int, threads: int, place: str) -> int:
    import duckdb

    options = {"threads": threads, "preserve_insertion_order": False, "memory_limit": f"{limit}B", "temp_directory": place}
    with duckdb.connect(config=options) as connection:
        connection.register("words", table)
        reader = connection.sql("select word, count(*) as n from words group by word").to_arrow_reader(1 << 16)
        return sum(batch.num_rows for batch in reader)


def one(engine: str, rows: int, groups: int, limit: int, threads: int, place: str, told: Any) -> None:
    table = data(rows, groups)
    before = memory("VmRSS")
    forget_peak()
    begun = time.perf_counter()
    try:
        count = {"forebay": by_forebay, "duckdb": by_duckdb}[engine](table, limit, threads, place)
    except Exception as error:
        told.put(f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
        return
    told.put((time.perf_counter() - begun, memory("VmHWM") - before, count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=2_500_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit-mib", type=int, default=4096, help="what each engine may take")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--engines", default="forebay,duckdb")
    parser.add_argument("--dir", default=None, help="where what memory has no room for goes")
    asked = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    for engine in asked.engines.split(","):
        outcomes = []
        for _ in range(asked.rounds):
            with tempfile.TemporaryDirectory(dir=asked.dir) as place:
                told = spawn.Queue()
                of = (engine, asked.rows, asked.groups, asked.limit_mib << 20, asked.threads, place, told)
                process = spawn.Process(target=one, args=of)
                process.start()
                outcomes.append(told.get())
                process.join()
        failed = [outcome for outcome in outcomes if isinstance(outcome, str)]
        if failed:
            print(f"{engine}: {failed[0]}", flush=True)
            continue
        seconds, bytes_, counts = (statistics.median(values) for values in zip(*outcomes, strict=True))
        rate = asked.rows / seconds / 1e6
        print(f"{engine}: {rate:.2f} million rows/s, {bytes_ / 2**20:.0f} MiB, {counts:,.0f} groups", flush=True)


if __name__ == "__main__":
    main()
