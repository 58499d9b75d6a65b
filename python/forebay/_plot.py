"""The picture of samples. This module is imported when a plot is asked for: it needs matplotlib."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure


class Plot(Figure):
    """A figure that notebooks show also where pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        made = io.BytesIO()
        self.savefig(made, format="png", dpi=100)
        return made.getvalue()


def _rates(samples: list[dict[str, float]], name: str, by: str = "seconds") -> list[float | None]:
    """From sample to sample: how much more of one for each of another."""
    pairs = zip(samples[:-1], samples[1:], strict=True)
    steps = [(after[name] - before[name], after[by] - before[by]) for before, after in pairs]
    return [part / whole if whole > 0 else None for part, whole in steps]


def _line(axes: Any, times: list[float], values: list[float | None], label: str) -> None:
    # None leaves a gap.
    axes.plot(times, [float("nan") if value is None else value for value in values], label=label)


def drawn(samples: list[dict[str, float]]) -> Figure:
    """Four plots over seconds: rates, amplification, waits, latency."""
    times = [sample["seconds"] for sample in samples]
    figure = Plot(figsize=(9, 6), layout="constrained")
    ((rates, amplification), (waits, latency)) = figure.subplots(2, 2, sharex=True)

    _line(rates, times[1:], _rates(samples, "user_records"), "records put")
    _line(rates, times[1:], _rates(samples, "gets"), "gets")
    rates.set(title="Rates", ylabel="a second")

    _line(amplification, times[1:], _rates(samples, "written_bytes", "user_bytes"), "bytes written for each put")
    _line(amplification, times, [sample["space_amplification"] or None for sample in samples], "space")
    amplification.set(title="Amplification", ylabel="times")

    _line(waits, times[1:], _rates(samples, "stall_seconds"), "waits of writers")
    waits.set(title="Stalls", ylabel="seconds a second", xlabel="seconds")

    for name, label in (
        ("commit_p50_us", "commit, half"),
        ("commit_p99_us", "commit, 99 of 100"),
        ("get_p50_us", "get, half"),
        ("get_p99_us", "get, 99 of 100"),
    ):
        values = [sample[name] for sample in samples]
        if any(values):
            _line(latency, times, [value or None for value in values], label)
    latency.set(title="Latency, since the opening", ylabel="microseconds", xlabel="seconds")
    if latency.lines:
        latency.set_yscale("log")
    for axes in (rates, amplification, waits, latency):
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize="small")
    for axes in (rates, amplification, waits):
        axes.set_ylim(bottom=0)
    return figure
