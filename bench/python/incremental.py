"""Groups that are kept up to date: a million rows at a time to four million groups, with reads of one in a hundred between.

Forebay's aggregator against a loop over RocksDict, which reads the groups of 10,000 rows by one multi-get, adds, and writes
them by one write batch. Both have all groups before the first batch that is timed, and both write through the system's page
cache, as RocksDB does where nothing is said; with ``--direct`` ours writes around it, as it does where nothing is said.

    python bench/python/incremental.py --place /tmp/incremental
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import struct
import time
from pathlib import Path

import numpy as np
import polars as pl

import forebay as fb

PAIR = struct.Struct("<qq")


def batches(arguments: argparse.Namespace, count: int, rows: int) -> list[pl.DataFrame]:
    rng = np.random.default_rng(7)
    made = []
    for _ in range(count):
        made.append(pl.DataFrame({"k": rng.integers(0, arguments.groups, rows), "v": rng.integers(0, 1000, rows)}))
    return made


def all_groups(arguments: argparse.Namespace) -> pl.DataFrame:
    keys = np.random.default_rng(8).permutation(arguments.groups)
    return pl.DataFrame({"k": keys, "v": np.ones(arguments.groups, dtype=np.int64)})


def ours(arguments: argparse.Namespace, place: Path, rows: list[pl.DataFrame]) -> float:
    shutil.rmtree(place, ignore_errors=True)
    with fb.open(place, memory=arguments.memory, system_cache=not arguments.direct) as db:
        groups = db.aggregator("g", key="k", aggs={"n": fb.count(), "s": fb.isum("v")})
        first = all_groups(arguments)
        groups.update(first)
        start = time.perf_counter()
        for batch in rows:
            groups.update(batch)
            found = pl.DataFrame(groups.get_many(batch.select("k").head(batch.height // 100)))
            assert found["n"].null_count() == 0
        took = time.perf_counter() - start
        if arguments.check:
            answers = pl.DataFrame(groups.result())
            whole = pl.concat([first, *rows]).group_by("k").agg(n=pl.len(), s=pl.col("v").sum()).sort("k")
            assert (answers.sort("k")["s"].cast(pl.Int64) == whole["s"]).all() and answers.height == whole.height
    shutil.rmtree(place)
    return took


def theirs(arguments: argparse.Namespace, place: Path, rows: list[pl.DataFrame]) -> float:
    import rocksdict

    shutil.rmtree(place, ignore_errors=True)
    db = rocksdict.Rdict(str(place), rocksdict.Options(raw_mode=True))
    for part in all_groups(arguments).iter_slices(10_000):
        write = rocksdict.WriteBatch(raw_mode=True)
        for key, value in part.iter_rows():
            write.put(key.to_bytes(8, "little"), PAIR.pack(1, value))
        db.write(write)
    start = time.perf_counter()
    for batch in rows:
        for part in batch.iter_slices(10_000):
            added: dict[bytes, tuple[int, int]] = {}
            for key, value in part.iter_rows():
                key = key.to_bytes(8, "little")
                n, s = added.get(key, (0, 0))
                added[key] = (n + 1, s + value)
            write = rocksdict.WriteBatch(raw_mode=True)
            for (key, (n, s)), old in zip(added.items(), db[list(added)], strict=True):
                before = PAIR.unpack(old) if old is not None else (0, 0)
                write.put(key, PAIR.pack(n + before[0], s + before[1]))
            db.write(write)
        asked = [key.to_bytes(8, "little") for key in batch["k"].head(batch.height // 100)]
        assert all(old is not None for old in db[asked])
    took = time.perf_counter() - start
    db.close()
    shutil.rmtree(place)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=4_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a batch")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--their-rows", type=int, default=1_000_000, help="rows of the one batch of RocksDict")
    parser.add_argument("--memory", default="512MB")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--place", type=Path, default=Path("incremental.db"))
    parser.add_argument("--direct", action="store_true", help="write around the system's page cache")
    parser.add_argument("--check", action="store_true", help="hold all answers against Polars")
    arguments = parser.parse_args()
    rates = []
    for name, run, count, size, times in (
        ("Forebay", ours, arguments.batches, arguments.rows, arguments.times),
        ("RocksDict", theirs, 1, arguments.their_rows, 1),
    ):
        rows = batches(arguments, count, size)
        took = [run(arguments, arguments.place, rows) for _ in range(times)]
        rates.append(count * size / statistics.median(took))
        shown = ", ".join(f"{one:.2f}" for one in took)
        print(f"{name}: {rates[-1]:,.0f} rows a second ({shown} s, {count} batches of {size:,} rows)", flush=True)
    print(f"Forebay takes {rates[0] / rates[1]:.1f} times as many")


if __name__ == "__main__":
    main()
