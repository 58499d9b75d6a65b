"""kill.py --forebay F --count N --seed S: `kill -9` of a server under load, N times, on one database.

Connections count up, by INCR in pipelines and by two keys that one transaction sets, at durability os or disk. After
each kill the next server is asked: no counter is below the last reply, none is beyond what was sent, and both keys of a
transaction have the same number.
"""

import argparse
import random
import shutil
import tempfile
import threading

from running import Connection, Server, encoded

CONNECTIONS = 6
DEPTH = 16


class Load(threading.Thread):
    """One connection's work: what was sent, and what was answered."""

    def __init__(self, port, number, begin, durability):
        super().__init__()
        self.port, self.number, self.durability = port, number, durability
        self.sent = self.answered = begin
        self.pair_sent = self.pair_answered = begin
        self.fault = None

    def run(self):
        try:
            connection = Connection(self.port)
            assert connection.ask("FB.DURABILITY", self.durability) == b"OK"
            while True:
                self.step(connection)
        except (ConnectionError, OSError, ValueError):
            pass
        except Exception as error:  # noqa: BLE001
            self.fault = error

    def step(self, connection):
        self.pair_sent += 1
        pair = self.pair_sent
        asked = [encoded("INCR", f"count:{self.number}")] * DEPTH
        asked += [encoded("MULTI"), encoded("SET", f"one:{self.number}", pair)]
        asked += [encoded("SET", f"other:{self.number}", pair), encoded("EXEC")]
        self.sent += DEPTH
        connection.socket.sendall(b"".join(asked))
        for _ in range(DEPTH):
            answer = connection.read()
            assert answer == self.answered + 1, f"{answer} behind {self.answered}"
            self.answered = answer
        answers = [connection.read() for _ in range(4)]
        assert answers == [b"OK", b"QUEUED", b"QUEUED", [b"OK", b"OK"]], answers
        self.pair_answered = pair


def check(port, loads):
    """What the database has of each: the begin of the next round."""
    connection, begins = Connection(port), []
    for load in loads:
        if load.fault:
            raise SystemExit(f"connection {load.number}: {load.fault!r}")
        n = load.number
        found = connection.ask("MGET", f"count:{n}", f"one:{n}", f"other:{n}")
        count, one, other = [int(value or 0) for value in found]
        told = f"connection {n}: {count} of {load.answered} to {load.sent}, {one} and {other} of {load.pair_answered}"
        if not load.answered <= count <= load.sent or one != other:
            raise SystemExit(f"LOST: {told}")
        if not load.pair_answered <= one <= load.pair_sent:
            raise SystemExit(f"LOST: {told}")
        begins.append(count)
        # Both go on from one number.
        connection.ask("MSET", f"count:{n}", count, f"one:{n}", count, f"other:{n}", count)
    connection.close()
    return begins


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--forebay", required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw, folder = random.Random(given.seed), tempfile.mkdtemp()
    options = ["--durability", "os", "--memory", "16M", "--loops", "2"]
    begins, answered = [0] * CONNECTIONS, 0
    server = Server(given.forebay, folder, *options)
    for _ in range(given.count):
        durability = ["os", "disk"]
        loads = [Load(server.port, n, begin, durability[n % 2]) for n, begin in enumerate(begins)]
        [load.start() for load in loads]
        threading.Event().wait(draw.uniform(0.05, 0.6))
        server.kill()
        [load.join(60) for load in loads]
        answered += sum(load.answered - begin for load, begin in zip(loads, begins))
        server = Server(given.forebay, folder, *options)
        begins = check(server.port, loads)
    server.end()
    assert answered > 0, "no kill came behind a reply"
    print(f"{given.count} kills: {answered:,} counted replies, all of them there; transactions whole")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
