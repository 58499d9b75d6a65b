"""A function in Python over many groups: `forebay.UserAggregate` against `group_by(..).map_groups(..)` of Polars.

Both compute a geometric mean by numpy from the same frame. Rows and groups of Polars are divided by `--polars-share`, as it
calls Python for each group; its seconds are multiplied by the share again, which favours it: its time for a group does not
sink with their number.

    python bench/python/own_function.py --rows 10000000 --groups 1000000
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import forebay as fb


class GeometricMean(fb.UserAggregate):
    name = "geometric_mean"
    state = {"logs": "Float64", "n": "Int64"}
    answer = "Float64"
    tolerance = 1e-9

    def update(self, values: Any, groups: Any) -> Any:
        groups = pl.Series(groups).to_numpy()
        logs = np.log(pl.DataFrame(values).to_series().to_numpy())
        return pl.DataFrame({"logs": np.bincount(groups, logs), "n": np.bincount(groups)})

    def merge(self, states: Any, groups: Any) -> Any:
        states, groups = pl.DataFrame(states), pl.Series(groups).to_numpy()
        count = np.bincount(groups, states["n"].to_numpy()).astype(np.int64)
        return pl.DataFrame({"logs": np.bincount(groups, states["logs"].to_numpy()), "n": count})

    def evaluate(self, states: Any) -> Any:
        states = pl.DataFrame(states)
        return (states["logs"] / states["n"]).exp()


def of_group(group: pl.DataFrame) -> pl.DataFrame:
    mean = float(np.exp(np.log(group["v"].to_numpy()).mean()))
    return pl.DataFrame({"k": group["k"].head(1), "mean": [mean]})


def rows(count: int, groups: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame({"k": rng.integers(0, groups, count), "v": rng.random(count) + 1})


def ours(frame: pl.DataFrame, arguments: argparse.Namespace, calls: int) -> pl.DataFrame:
    with fb.Aggregator(key="k", aggs={"mean": GeometricMean("v")}, memory=arguments.memory) as groups:
        for part in frame.iter_slices(-(-frame.height // calls)):
            groups.update(part)
        return pl.DataFrame(groups.result())


def seconds(what: str, times: int, act: Callable[[], pl.DataFrame]) -> tuple[float, pl.DataFrame]:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        answers = act()
        took.append(time.perf_counter() - start)
    median = statistics.median(took)
    print(f"{what}: {median:.2f} s ({', '.join(f'{one:.2f}' for one in took)}), {answers.height:,} groups")
    return median, answers.sort("k")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--polars-share", type=int, default=10)
    arguments = parser.parse_args()
    frame = rows(arguments.rows, arguments.groups)
    one, answers = seconds("Forebay, one update", arguments.times, lambda: ours(frame, arguments, 1))
    seconds("Forebay, 100 updates", 1, lambda: ours(frame, arguments, 100))
    whole = frame.group_by("k").agg(mean=pl.col("v").log().mean().exp()).sort("k")
    assert np.allclose(answers["mean"], whole["mean"]) and (answers["k"] == whole["k"]).all()
    share = arguments.polars_share
    part = rows(arguments.rows // share, arguments.groups // share)
    other, answers = seconds(
        f"Polars, map_groups, 1/{share} of rows and groups", 1, lambda: part.group_by("k").map_groups(of_group)
    )
    assert np.allclose(answers["mean"], part.group_by("k").agg(m=pl.col("v").log().mean().exp()).sort("k")["m"])
    print(f"Forebay takes 1/{other * share / one:.1f} of the time")


if __name__ == "__main__":
    main()
