"""Group-by on Spark in two stages: `forebay.spark.group_by` against Spark's own, and against `applyInPandas`.

Each runs in a process of its own, all with the same rows from Parquet and two threads, and writes its answers to Spark's
`noop`. Memory is the sum over the JVM and Python's workers at its peak, of pages that are theirs alone (`/proc`).

    python bench/python/spark_groups.py --rows 20000000 --groups 2500000
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import forebay as fb

WAYS = ["built-in Spark", "built-in Forebay", "own applyInPandas", "own Forebay"]


class GeometricMean(fb.UserAggregate):
    name = "geometric_mean"
    state = {"logs": "Float64", "n": "Int64"}
    answer = "Float64"
    tolerance = 1e-9

    def update(self, values: Any, groups: Any) -> Any:
        import numpy as np

        groups = np.asarray(pa.array(groups))
        logs = np.log(np.asarray(pa.record_batch(values).column(0)))
        return pa.table({"logs": np.bincount(groups, logs), "n": np.bincount(groups)})

    def merge(self, states: Any, groups: Any) -> Any:
        import numpy as np

        groups, states = np.asarray(pa.array(groups)), pa.record_batch(states)
        sums = [np.bincount(groups, np.asarray(states.column(name))) for name in ("logs", "n")]
        return pa.table({"logs": sums[0], "n": sums[1].astype(np.int64)})

    def evaluate(self, states: Any) -> Any:
        states = pa.record_batch(states)
        return pc.exp(pc.divide(states.column("logs"), states.column("n")))


def answers(way: str, rows: Any, memory: str) -> Any:
    import pandas as pd
    from pyspark.sql import functions as F

    import forebay.spark

    if way == "built-in Spark":
        return rows.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("sum"), F.max("v").alias("most"))
    if way == "built-in Forebay":
        aggs = {"n": fb.count(), "sum": fb.fsum("v"), "most": fb.max("v")}
        return forebay.spark.group_by(rows, "k", aggs, memory=memory)
    if way == "own Forebay":
        return forebay.spark.group_by(rows, "k", {"mean": GeometricMean("v")}, memory=memory)

    def of_group(group: pd.DataFrame) -> pd.DataFrame:
        import numpy as np

        return pd.DataFrame({"k": group["k"].head(1), "mean": [float(np.exp(np.log(group["v"]).mean()))]})

    return rows.groupBy("k").applyInPandas(of_group, "k long, mean double")


def run(way: str, source: str, arguments: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    builder = builder.config("spark.driver.memory", arguments.jvm).config("spark.sql.shuffle.partitions", 2)
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", 65536).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.read.parquet(source)
    # All is loaded and compiled once before it is measured.
    answers(way, rows.limit(10_000), arguments.memory).write.format("noop").mode("overwrite").save()
    start = time.perf_counter()
    answers(way, rows, arguments.memory).write.format("noop").mode("overwrite").save()
    print("seconds", time.perf_counter() - start)
    spark.stop()


def peak_of(process: subprocess.Popen[str]) -> list[int]:
    """Watches all processes below one; the list's one number is the most bytes that they had to themselves at a time."""
    most = [0]

    def watch() -> None:
        while process.poll() is None:
            most[0] = max(most[0], sum(map(own_bytes, family(process.pid))))
            time.sleep(0.1)

    threading.Thread(target=watch, daemon=True).start()
    return most


def family(pid: int) -> list[int]:
    found = [pid]
    for child in subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split():
        found += family(int(child))
    return found


def own_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Clean"))) << 10


def make(path: Path, rows: int, groups: int) -> None:
    import numpy as np
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    table = pa.table({"k": rng.integers(0, groups, rows), "v": rng.random(rows) + 1, "w": rng.random(rows)})
    for part in range(4):
        pq.write_table(table.slice(part * -(-rows // 4), -(-rows // 4)), path / f"part-{part}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=2_500_000)
    parser.add_argument("--memory", default="128MB", help="for each of Forebay's tasks")
    parser.add_argument("--jvm", default="4g")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--pandas-share", type=int, default=20, help="applyInPandas gets this share of rows and groups")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--source", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        return run(arguments.run, arguments.source, arguments)
    with tempfile.TemporaryDirectory(prefix="forebay-spark-") as made:
        whole, part, share = Path(made) / "whole", Path(made) / "part", arguments.pandas_share
        for path, divided in ((whole, 1), (part, share)):
            path.mkdir()
            make(path, arguments.rows // divided, arguments.groups // divided)
        for way in arguments.only.split(","):
            source, times = (part, share) if "Pandas" in way else (whole, 1)
            took, most = [], 0
            for _ in range(arguments.times):
                passed = ["--memory", arguments.memory, "--jvm", arguments.jvm]
                command = [sys.executable, __file__, "--run", way, "--source", str(source), *passed]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYSPARK_PYTHON": sys.executable})
                peak = peak_of(process)
                told = process.communicate()[0]
                took.append(float(told.split("seconds")[1]))
                most = max(most, peak[0])
            of = f" of 1/{times} of rows and groups" if times > 1 else ""
            print(f"{way}{of}: {statistics.median(took):.2f} s ({', '.join(f'{one:.2f}' for one in took)}), {most >> 20} MiB")


if __name__ == "__main__":
    main()
