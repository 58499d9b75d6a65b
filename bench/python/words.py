"""Group-by of words: 20 million rows of 2.5 million, counted, by Forebay and by DuckDB, each in a process of its own.

Rows come as Arrow's record batches of 65,536, which are there before. What is timed is until all groups are seen. Memory is
what the process has more at its peak than before it began. With ``--rust`` a program in Rust counts words of the same kind.
Engines take turns.

    cargo build --release --package forebay --features arrow --example word_rate
    python bench/python/words.py --rows 20000000 --groups 2500000 --rust target/release/examples/word_rate
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import statistics
import subprocess
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
    # What making the words has left free would be taken for memory that the engine needs none of.
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
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
    parser.add_argument("--rust", type=Path, help="the program word_rate, to be held against")
    parser.add_argument("--dir", default=None, help="where what memory has no room for goes")
    asked = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    engines = asked.engines.split(",") + ["rust"] * (asked.rust is not None)
    outcomes: dict[str, list[Any]] = {engine: [] for engine in engines}
    for _ in range(asked.rounds):
        for engine in engines:
            with tempfile.TemporaryDirectory(dir=asked.dir) as place:
                if engine == "rust":
                    of = (asked.rust.absolute(), asked.rows, asked.groups, asked.limit_mib, asked.threads, place)
                    done = subprocess.run([*map(str, of)], check=True, capture_output=True, text=True)
                    seconds, count = done.stdout.split()
                    outcomes[engine].append((float(seconds), None, int(count)))
                    continue
                told = spawn.Queue()
                of = (engine, asked.rows, asked.groups, asked.limit_mib << 20, asked.threads, place, told)
                process = spawn.Process(target=one, args=of)
                process.start()
                outcomes[engine].append(told.get())
                process.join()
    for engine, those in outcomes.items():
        failed = [outcome for outcome in those if isinstance(outcome, str)]
        if failed:
            print(f"{engine}: {failed[0]}", flush=True)
            continue
        rates = sorted(asked.rows / seconds / 1e6 for seconds, _, _ in those)
        bytes_ = [bytes_ for _, bytes_, _ in those if bytes_ is not None]
        took = f", {statistics.median(bytes_) / 2**20:.0f} MiB" if bytes_ else ""
        shown = ", ".join(f"{rate:.2f}" for rate in rates)
        print(f"{engine}: {statistics.median(rates):.2f} million rows/s ({shown}){took}, {those[0][2]:,} groups", flush=True)


if __name__ == "__main__":
    main()
