"""Random commands, to the server and to a redis-server at once: equal replies, or a difference that is listed here.

Requests go in pipelines that are divided at random bytes, in both versions of the protocol. A failure prints the seed, the
command and both replies.

    python differential.py --forebay target/debug/forebay --redis redis-server --rounds 200 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from random_commands import command


def same_zero(text: bytes) -> bytes:
    """Scores of ours are never -0."""
    return b"0" if text == b"-0" else text


class Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def send(self, requests: list[list[bytes]], rng: random.Random) -> None:
        data = b"".join(b"*%d\r\n" % len(one) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in one) for one in requests)
        while data:
            cut = rng.choice([1, 2, 7, 100, len(data)])
            self.socket.sendall(data[:cut])
            data = data[cut:]

    def read(self) -> Any:
        line = self.file.readline()
        assert line.endswith(b"\r\n"), f"the connection ended with {line!r}"
        mark, rest = line[:1], line[1:-2]
        if mark in b"+-:,#_(":
            return (mark, same_zero(rest))
        count = int(rest)
        if count < 0:
            return (mark, None)
        if mark in b"$=":
            return (mark, same_zero(self.file.read(count + 2)[:-2]))
        if mark == b"~":
            return (mark, sorted(self.read() for _ in range(count)))
        return (mark, [self.read() for _ in range(2 * count if mark == b"%" else count)])


# In the order of our own hashes, or at random.
UNORDERED = {b"HGETALL", b"HKEYS", b"HVALS", b"HRANDFIELD", b"SMEMBERS", b"SPOP", b"SRANDMEMBER", b"ZRANDMEMBER", b"SINTER", b"SUNION", b"SDIFF"}


def paired(flat: list[Any], is_paired: bool) -> list[Any]:
    """Elements in an order of their own; in pairs, where they are and do not say so."""
    if is_paired and flat and flat[0][0] != b"*":
        flat = [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]
    return sorted(map(repr, flat))


def are_equal(request: list[bytes], ours: Any, theirs: Any) -> bool:
    """Whether replies are, but for what is told differently on purpose."""
    if request[0] in (b"DBSIZE", b"SCAN", b"RANDOMKEY") and ours[0] == b"-" and b"a transaction cannot look at all keys" in ours[1]:
        return True
    if ours[0] != theirs[0]:
        return False
    if ours[0] == b"-":
        # Errors are equal by their code: texts are for people.
        return bool(ours[1].split(b" ")[0] == theirs[1].split(b" ")[0])
    if request[0] == b"RANDOMKEY":
        return (ours[1] is None) == (theirs[1] is None)
    if request[0] == b"SCAN" and ours[0] == b"*":
        # Positions are our own, and keys come in our order.
        kept = [(one[1][0][1] == b"0", sorted(key for _, key in one[1][1][1])) for one in (ours, theirs)]
        return kept[0] == kept[1]
    if ours[0] == b"*" and ours[1] is not None and theirs[1] is not None:
        if request[0] in (b"HSCAN", b"SSCAN", b"ZSCAN"):
            kept = [(one[1][0], paired(one[1][1][1], request[0] != b"SSCAN")) for one in (ours, theirs)]
            return kept[0] == kept[1]
        if request[0] in UNORDERED:
            is_paired = request[0] == b"HGETALL" or request[-1] in (b"WITHVALUES", b"WITHSCORES")
            return paired(ours[1], is_paired) == paired(theirs[1], is_paired)
    if request[0] == b"HGETALL" and ours[0] == b"%":
        return paired(ours[1], True) == paired(theirs[1], True)
    if request[0] in (b"HRANDFIELD", b"SRANDMEMBER", b"ZRANDMEMBER") and len(request) == 2:
        return (ours[1] is None) == (theirs[1] is None)
    if request[0] == b"TTL" and ours[0] == b":" and int(ours[1]) > 0 and int(theirs[1]) > 0:
        # Each by its own clock.
        return abs(int(ours[1]) - int(theirs[1])) <= 3
    if request[0] == b"EXPIRETIME" and ours[0] == b":" and int(ours[1]) > 0 and int(theirs[1]) > 0:
        return abs(int(ours[1]) - int(theirs[1])) <= 3
    return bool(ours == theirs)


class Queue:
    """What waits for `EXEC` on a connection, as its replies tell."""

    def __init__(self) -> None:
        self.requests: list[list[bytes]] = []

    def are_equal(self, request: list[bytes], ours: Any, theirs: Any) -> bool:
        if ours == (b"+", b"QUEUED"):
            self.requests.append(request)
        waited = self.requests
        if request[0] in (b"EXEC", b"DISCARD"):
            self.requests = []
        if request[0] != b"EXEC" or ours[0] != b"*" or ours[1] is None:
            return are_equal(request, ours, theirs)
        pairs = zip(waited, ours[1], theirs[1] or [], strict=True)
        return ours[0] == theirs[0] and all(are_equal(one, mine, other) for one, mine, other in pairs)


@contextlib.contextmanager
def servers(forebay: str, redis: str) -> Iterator[tuple[int, int]]:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ports = []
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                ports.append(free.getsockname()[1])
        for line in (
            [forebay, "serve", str(Path(folder) / "db"), "--listen", f"127.0.0.1:{ports[0]}", "--quiet"],
            [redis, "--port", str(ports[1]), "--save", "", "--dir", folder, "--logfile", str(Path(folder) / "redis.log")],
        ):
            process = subprocess.Popen(line)
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
        for port in ports:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                time.sleep(0.05)
        yield ports[0], ports[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forebay", default="target/debug/forebay")
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    compared = 0
    with servers(arguments.forebay, arguments.redis) as ports:
        for seed in range(arguments.seed, arguments.seed + arguments.rounds):
            rng = random.Random(seed)
            ends = [[Connection(port) for port in ports] for _ in range(2)]
            queues = [Queue(), Queue()]
            ready = [[b"FLUSHALL"]] + ([[b"HELLO", b"3"]] if seed % 2 else [])
            for pair in ends:
                for one in pair:
                    one.send(ready, rng)
                    for _ in ready:
                        one.read()
            for _ in range(20):
                which = rng.randrange(2)
                pair = ends[which]
                requests = [command(rng) for _ in range(rng.randint(1, 12))]
                for one in pair:
                    one.send(requests, rng)
                for request in requests:
                    ours, theirs = (one.read() for one in pair)
                    compared += 1
                    if not queues[which].are_equal(request, ours, theirs):
                        raise SystemExit(f"seed {seed}: {request}\n  forebay {ours}\n  redis   {theirs}\n  of {requests}")
    print(f"{compared:,} replies are equal, from seed {arguments.seed} on")


if __name__ == "__main__":
    main()
