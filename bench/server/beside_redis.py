"""`forebay serve` beside redis-server: one core for the server, one for redis-benchmark, the same durability, in turn.

    python bench/server/beside_redis.py --forebay target/release/forebay --place /tmp/beside

Each row is a load of redis-benchmark's, which has all keys written before; rates are medians of the rounds. Redis keeps all data
in memory and writes its append-only file; ours keeps what fits below `--memory`, and the rest on the device.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Name, arguments of redis-benchmark, whether each reply is durable, and what is wanted: at least this share of Redis's rate.
LOADS = (
    ("SET of 100 B, 50 connections, P = 64", "-c 50 -P 64 -n 3000000 -r 1000000 -d 100 -t set", False, 1.5),
    ("GET of 100 B, 50 connections, P = 64", "-c 50 -P 64 -n 3000000 -r 1000000 -d 100 -t get", False, 0.8),
    ("GET of 100 B, 50 connections, P = 1", "-c 50 -P 1 -n 300000 -r 1000000 -d 100 -t get", False, 0.8),
    ("INCR of 100 keys, 50 connections, P = 64", "-c 50 -P 64 -n 3000000 -r 100 -t incr", False, 1.0),
    ("HSET, 50 connections, P = 64", "-c 50 -P 64 -n 1000000 -r 100000 -t hset", False, None),
    ("ZADD, 50 connections, P = 64", "-c 50 -P 64 -n 1000000 -r 100000 -t zadd", False, None),
    ("LPUSH, 50 connections, P = 64", "-c 50 -P 64 -n 1000000 -r 100000 -t lpush", False, None),
    ("durable SET, 16 connections, P = 1", "-c 16 -P 1 -n 60000 -r 1000000 -d 100 -t set", True, 1.5),
    ("durable SET, 300 connections, P = 16", "-c 300 -P 16 -n 600000 -r 1000000 -d 100 -t set", True, 5.0),
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    server = subprocess.Popen(["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True, check=False).stdout == b"PONG\n":
                break
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def load(port: int, arguments: str) -> tuple[float, float]:
    """Requests a second, and the 99th percentile of their times in milliseconds."""
    told = subprocess.run(
        ["taskset", "-c", "1", "redis-benchmark", "-p", str(port), "--csv", *arguments.split()],
        capture_output=True, check=True, text=True,
    ).stdout
    row = next(csv.DictReader(io.StringIO(told)))
    return float(row["rps"]), float(row["p99_latency_ms"])


def commands(arguments: argparse.Namespace, place: Path, port: int, durable: bool) -> dict[str, list[str]]:
    redis = f"redis-server --port {port} --dir {place} --save --appendonly yes --appendfsync {'always' if durable else 'everysec'}"
    ours = (
        f"{arguments.forebay} serve {place / 'db'} --listen 127.0.0.1:{port} --loops 1 --memory {arguments.memory} "
        f"--durability {'disk' if durable else 'os'}"
    )
    return {"redis": redis.split(), "forebay": ours.split()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", default="target/release/forebay")
    parser.add_argument("--place", type=Path, default=Path("beside-redis"))
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="loads whose name has this")
    arguments = parser.parse_args()
    print(f"on {os.cpu_count()} cores, {arguments.rounds} rounds")
    for name, load_arguments, durable, wanted in LOADS:
        if arguments.only not in name:
            continue
        found: dict[str, list[tuple[float, float]]] = {"redis": [], "forebay": []}
        for _ in range(arguments.rounds):
            for which in found:
                shutil.rmtree(arguments.place, ignore_errors=True)
                arguments.place.mkdir(parents=True)
                port = free_port()
                with running(commands(arguments, arguments.place, port, durable)[which], port):
                    if "GET" in name:
                        load(port, "-c 50 -P 64 -n 3000000 -r 1000000 -d 100 -t set")
                    found[which].append(load(port, load_arguments))
        rate = {which: statistics.median(one for one, _ in runs) for which, runs in found.items()}
        slow = {which: statistics.median(one for _, one in runs) for which, runs in found.items()}
        share = rate["forebay"] / rate["redis"]
        told = f"wanted {wanted}" if wanted else "nothing wanted"
        print(
            f"{name}: {rate['forebay']:,.0f}/s, p99 {slow['forebay']:.2f} ms; redis {rate['redis']:,.0f}/s, {slow['redis']:.2f} ms:"
            f" {share:.2f} ({told})",
            flush=True,
        )
    shutil.rmtree(arguments.place, ignore_errors=True)


if __name__ == "__main__":
    main()
