"""Counts the words of a directory of files, as files come: Spark's Structured Streaming with its state in Forebay.

Run it again with the same checkpoint, after files were added: it goes on where it was.
"""

import argparse
import json
import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

STATE = "spark.sql.streaming.stateStore."
# What words are made of is the same for the stream and for the batch that it is held against.
NO_WORD = "[^a-z]+"


def session(jars: list[str], master: str, snapshot_every: int) -> SparkSession:
    """A local Spark whose state is in Forebay: the first three settings are all that it takes."""
    return (
        SparkSession.builder.master(master)
        .config("spark.jars", ",".join(jars))
        .config(STATE + "providerClass", "dev.forebay.spark.ForebayStateStoreProvider")
        .config(STATE + "forebay.memory", "128m")
        .config(STATE + "minDeltasForSnapshot", snapshot_every)
        .config(STATE + "maintenanceInterval", "1s")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.executor.memory", "600m")
        .config("spark.deploy.maxExecutorRetries", -1)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )


def words(lines: DataFrame) -> DataFrame:
    word = f.explode(f.split(f.lower(f.col("value")), NO_WORD)).alias("word")
    return lines.select(word).where("word <> ''").groupBy("word").count()


def write(batch: DataFrame, number: int, out: Path) -> None:
    """Replaces the result, so that it is that of one batch at any time."""
    counts = {row["word"]: row["count"] for row in batch.collect()}
    new = out.with_suffix(".new")
    new.write_text(json.dumps({"batch": number, "counts": counts}))
    os.replace(new, out)
    print(f"batch {number}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--jars", nargs="+", required=True)
    parser.add_argument("--master", default="local[2]", help="local-cluster[2,1,600] has two executors, each a process")
    parser.add_argument("--files-per-batch", type=int, default=8)
    parser.add_argument("--snapshot-every", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a file for all counts, as JSON")
    arguments = parser.parse_args()
    arguments.checkpoint.mkdir(parents=True, exist_ok=True)
    out = arguments.out or arguments.checkpoint / "counts.json"

    spark = session(arguments.jars, arguments.master, arguments.snapshot_every)
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.readStream.option("maxFilesPerTrigger", arguments.files_per_batch).text(str(arguments.files))
    query = (
        words(lines)
        .writeStream.outputMode("complete")
        .foreachBatch(lambda batch, number: write(batch, number, out))
        .option("checkpointLocation", str(arguments.checkpoint / "stream"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    result = json.loads(out.read_text())
    expected = {row["word"]: row["count"] for row in words(spark.read.text(str(arguments.files))).collect()}
    progress = query.lastProgress
    if progress is not None:
        state = progress["stateOperators"][0]
        uploaded = state["customMetrics"]["forebayBytesCopied"]
        print(f"{state['numRowsTotal']} keys, {state['memoryUsedBytes']} bytes of memory, {uploaded} bytes in snapshots")
    for word, count in sorted(result["counts"].items(), key=lambda entry: (-entry[1], entry[0]))[:10]:
        print(f"{count:8} {word}")
    if result["counts"] != expected:
        raise SystemExit(f"the counts of {out} are not those of a batch over the same files")
    print(f"{len(expected)} words after batch {result['batch']}: the same as a batch over all files", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
