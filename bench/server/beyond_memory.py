"""`forebay serve` with more data than memory: lookups beside what the device gives, and rows of an aggregator.

    python bench/server/beyond_memory.py --forebay target/release/forebay --place /tmp/beyond

One core for the server and one for who asks. All keys are written, eight times the memory, and merges come to rest. Then
`GET`s of random keys, by redis-benchmark, beside reads of 4 KiB of the same files around the system's page cache, as many at a
time. Then `AGG.ADD` of batches of rows of ten million keys: the rate with all merges that come meanwhile, and again until they
are done.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beside_redis import free_port, load

VALUE_BYTES = 1000
KEYS = 2_000_000
# Rows, keys of them, and rows of a command.
ROWS, GROUPS, BATCH = 20_000_000, 10_000_000, 500


@contextmanager
def serving(arguments: argparse.Namespace, memory: str) -> Iterator[tuple[int, int]]:
    """A new database: port and process."""
    shutil.rmtree(arguments.place, ignore_errors=True)
    arguments.place.mkdir(parents=True)
    port = free_port()
    command = [arguments.forebay, "serve", str(arguments.place / "db"), "--listen", f"127.0.0.1:{port}", "--memory", memory]
    server = subprocess.Popen(["taskset", "-c", "0", *command], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        assert "listening" in server.stderr.readline()
        yield port, server.pid
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(arguments.place, ignore_errors=True)


def stats(port: int) -> dict[str, object]:
    told: dict[str, object] = json.loads(subprocess.run(
        ["redis-cli", "-p", str(port), "--raw", "FB.STATS"], capture_output=True, check=True, text=True,
    ).stdout)  # fmt: skip
    return told


def rest(port: int) -> float:
    """Seconds until nothing more is written."""
    begin, before = time.monotonic(), object()
    while True:
        now = stats(port)["jobs_done"]
        if now == before:
            return time.monotonic() - begin
        before = now
        time.sleep(3)


def device_reads(folder: Path, at_a_time: int, seconds: float = 5.0) -> float:
    """Random reads a second of 4 KiB, around the page cache."""
    files = [path for path in folder.iterdir() if path.stat().st_size > 1 << 20 and path.suffix == ".list"]
    counts, end = [0] * at_a_time, time.monotonic() + seconds

    def read(number: int) -> None:
        draw, page = random.Random(number), mmap.mmap(-1, 4096)
        opened = [(os.open(path, os.O_RDONLY | os.O_DIRECT), path.stat().st_size // 4096) for path in files]
        while time.monotonic() < end:
            file, pages = draw.choice(opened)
            os.preadv(file, [page], draw.randrange(pages) * 4096)
            counts[number] += 1
        for file, _ in opened:
            os.close(file)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(at_a_time)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def lookups(arguments: argparse.Namespace) -> None:
    with serving(arguments, "256M") as (port, _):
        each = f"-r {KEYS} -d {VALUE_BYTES}"
        written, _ = load(port, f"-c 50 -P 64 -n {4 * KEYS} {each} -t set")
        rested = rest(port)
        print(f"SET of {VALUE_BYTES} B, {KEYS:,} keys, eight times the memory: {written:,.0f}/s, then merges for {rested:.0f} s", flush=True)
        for connections, deep in ((1, 1), (16, 1), (50, 1), (50, 16)):
            before = stats(port)
            rate, slowest = load(port, f"-c {connections} -P {deep} -n {300_000 if connections > 1 else 60_000} {each} -t get")
            after = stats(port)
            reads, gets = (int(str(after[key])) - int(str(before[key])) for key in ("device_reads", "gets"))
            device = device_reads(arguments.place / "db", min(connections * deep, 64))
            print(
                f"GET, {connections} connections, P = {deep}: {rate:,.0f}/s, p99 {slowest:.2f} ms, {reads / gets:.2f} reads each;"
                f" the device {device:,.0f}/s with {min(connections * deep, 64)} at a time: {rate / device:.2f}",
                flush=True,
            )  # fmt: skip


def rows() -> Iterator[bytes]:
    """Commands of ten batches each."""
    draw = random.Random(7)
    for _ in range(ROWS // BATCH // 10):
        commands = []
        for _ in range(10):
            words = [b"$8\r\n%08d\r\n$1\r\n%d\r\n" % (draw.randrange(GROUPS), draw.randrange(10)) for _ in range(BATCH)]
            commands.append(b"*%d\r\n$7\r\nAGG.ADD\r\n$1\r\na\r\n" % (2 + 2 * BATCH) + b"".join(words))
        yield b"".join(commands)


def aggregates(arguments: argparse.Namespace) -> None:
    commands = list(rows())
    with serving(arguments, "512M") as (port, process):
        create = "AGG.CREATE a KEY k COLUMNS n:int FUNCTIONS count sum:n"
        subprocess.run(["redis-cli", "-p", str(port), *create.split()], check=True, capture_output=True)
        os.sched_setaffinity(0, {1})
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port)) as one:
            writer = threading.Thread(target=lambda: [one.sendall(some) for some in commands])
            writer.start()
            answers, replies = 0, one.makefile("rb")
            while answers < ROWS:
                answers += int(replies.readline()[1:])
            writer.join()
        added = time.monotonic() - begin
        rested = rest(port)
        with open(f"/proc/{process}/status", encoding="ascii") as lines:
            most = next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))
        print(
            f"AGG.ADD of {BATCH} rows a command, {GROUPS:,} keys: {ROWS / added:,.0f} rows/s, {ROWS / (added + rested):,.0f} with"
            f" the {rested:.0f} s that merges went on; the process took {most} MiB at most of 512",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", default="target/release/forebay")
    parser.add_argument("--place", type=Path, default=Path("beyond-memory"))
    parser.add_argument("--only", choices=("lookups", "aggregates"))
    arguments = parser.parse_args()
    for name, run in (("lookups", lookups), ("aggregates", aggregates)):
        if arguments.only in (None, name):
            run(arguments)


if __name__ == "__main__":
    main()
