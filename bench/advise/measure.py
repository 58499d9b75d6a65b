"""Runs a workload under one layout by `forebay bench`, and says what it cost."""

import json
import pathlib
import subprocess
import tempfile


def run(forebay, workload, candidate, folder):
    """What each phase took, as a list of objects; raises where the bench says that something is wrong."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        file = pathlib.Path(home) / f"{workload.name}.toml"
        file.write_text(workload.bench_toml(candidate))
        words = [forebay, "bench", str(file), "--json", "--quiet", "--dir", home]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line]
    phases = [line for line in lines if line["type"] == "phase"]
    failures = [line for line in lines if line["type"] == "failure"]
    if done.returncode or failures or not phases:
        raise RuntimeError(f"{' '.join(words)}: {failures or done.stderr}")
    for phase in phases:
        phase["record_bytes"] = workload.key_bytes + workload.value_bytes
    return phases


def seconds(phases, machine):
    """The cost: processor time by cores, and the device's time, one after the other."""
    processor, device = parts(phases, machine)
    return processor + device


def parts(phases, machine):
    """Both parts of it.

    The bench's own work, making records and comparing answers, is not among it. The device's time is all bytes by its
    bandwidth, and a fixed time for each page that a get or a range reads.
    """
    processor = sum(phase["cpu_seconds"] - phase["generator_cpu_seconds"] for phase in phases)
    moved = sum((phase["write_bytes"] or 0) + (phase["read_bytes"] or 0) for phase in phases)
    reads = sum(page_reads(phase) for phase in phases)
    device = moved / machine["device_bytes_per_second"] + reads / machine["device_reads_per_second"]
    return processor / machine["cores"], device


def page_reads(phase):
    """Pages that gets and ranges of a phase read."""
    return (phase["device_reads_per_get"] or 0) * lookups(phase)


def lookups(phase):
    """How many gets or ranges there were."""
    kind = phase["phase"].split("-")[0]
    if kind == "range":
        return phase["operations"]
    return phase["operations"] - phase["user_bytes"] / record_bytes(phase) if kind == "mixed" else 0


def record_bytes(phase):
    """Bytes of key and value, which the measuring loop notes in each phase."""
    return phase["record_bytes"]
