"""attack.py --forebay F --count N --seed S: N rounds of clients that mean harm, on one server.

Strangers that hold half a request, connections that do nothing, slow writers and slow readers, huge arguments, deep
pipelines, ends amid a request. During each of them a client is answered, and the process stays within what it was
allowed: memory, buffers, and one value on its way, and a tenth. Behind each its connections are gone.
"""

import argparse
import random
import shutil
import socket
import tempfile
import threading

from running import Connection, Server, encoded, raise_file_limit, within

PASSWORD = "open sesame"
MEMORY, BUFFERS, ARGUMENT = 64 << 20, 64 << 20, 16 << 20
# The engine's and the buffers' memory; a value on its way is in an argument's turn, batch and reply.
PROCESS = (MEMORY + BUFFERS + 3 * ARGUMENT) * 11 // 10


class Attack:
    def __init__(self, forebay, folder, seed, idle):
        self.draw, self.idle = random.Random(seed), idle
        options = ["--memory", f"{MEMORY >> 20}M", "--buffers", f"{BUFFERS >> 20}M", "--password-file", f"{folder}/password"]
        options += ["--argument-max", f"{ARGUMENT >> 20}M", "--connections-max", str(idle + 2000)]
        with open(f"{folder}/password", "w", encoding="ascii") as file:
            file.write(PASSWORD + "\n")
        self.server = Server(forebay, folder, *options)
        self.good = self.known()
        assert self.good.ask("SET", "big", b"x" * (ARGUMENT - (1 << 10))) == b"OK"
        self.base = self.server.memory_bytes()

    def known(self):
        return Connection(self.server.port, PASSWORD)

    def strangers(self, count):
        return [socket.create_connection(("127.0.0.1", self.server.port), timeout=60) for _ in range(count)]

    def answered(self):
        assert self.good.ask("PING") == b"PONG"
        now = self.server.memory_bytes()
        assert now <= PROCESS, f"{now >> 20} MiB of {PROCESS >> 20}"
        return now

    def over(self, sockets, name):
        peak = self.answered()
        for one in sockets:
            one.close()
        clients = lambda: int(self.good.ask("INFO").split(b"connected_clients:")[1].split(b"\r\n")[0])
        assert within(30, lambda: clients() == 1), f"{name}: {clients()} connections are left"
        print(f"  {name}: {len(sockets)} connections, {peak / (1 << 20):.0f} MiB", flush=True)

    def half_requests(self):
        """Of strangers: as much as they may send of a request without its end."""
        before, sockets = self.answered(), self.strangers(500)
        part = b"*10\r\n" + b"$4096\r\n%s\r\n" % (b"x" * 4096) * 9 + b"$4096\r\n" + b"y" * 4000
        for one in sockets:
            one.sendall(part)
        assert within(30, lambda: self.good.ask("PING") == b"PONG")
        each = (self.answered() - before) / len(sockets)
        assert each <= 80 << 10, f"{each:.0f} bytes of a stranger's connection"
        print(f"  a stranger's connection: {each / 1024:.1f} KiB", flush=True)
        self.over(sockets, "half requests")

    def idle_ones(self):
        before, sockets = self.answered(), self.strangers(self.idle)
        took = self.answered() - before
        assert took <= 200 << 20, f"{took >> 20} MiB"
        print(f"  {self.idle} idle connections: {took / (1 << 20):.1f} MiB", flush=True)
        self.over(sockets, "idle")

    def refusals(self):
        sockets = self.strangers(50)
        for one in sockets:
            try:
                one.sendall(b"PING\r\n" * 100_000)
            except OSError:
                pass  # It was closed, as it should be.
        self.over(sockets, "refusals")

    def huge_arguments(self):
        """More than all buffers, in arguments that never end."""
        all_known = [self.known() for _ in range(12)]
        threads = [threading.Thread(target=self.push, args=(one, ARGUMENT - 4096)) for one in all_known]
        [thread.start() for thread in threads]
        while any(thread.is_alive() for thread in threads):
            self.answered()
        [thread.join() for thread in threads]
        self.over(all_known, "huge arguments")

    @staticmethod
    def push(connection, bytes_sent):
        try:
            connection.socket.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % ARGUMENT)
            for _ in range(0, bytes_sent, 1 << 16):
                connection.socket.sendall(b"x" * (1 << 16))
        except OSError:
            pass  # The server has closed it, as it held most.

    def many_arguments(self):
        all_known = [self.known() for _ in range(6)]
        for one in all_known:
            one.socket.sendall(b"*1048576\r\n" + b"$0\r\n\r\n" * 1_000_000)
            self.answered()
        self.over(all_known, "a million empty arguments")

    def slow_writers(self):
        all_known = [self.known() for _ in range(300)]
        request = encoded("SET", "slow", b"x" * 200)
        for at in range(0, len(request), 7):
            for one in all_known:
                one.socket.sendall(request[at : at + 7])
            self.answered()
        assert all(one.read() == b"OK" for one in all_known)
        self.over(all_known, "slow writers")

    def slow_readers(self):
        """Each asks for more than all buffers, and reads nothing."""
        all_known = [self.known() for _ in range(20)]
        for one in all_known:
            one.send("MGET", *["big"] * 3)
            one.socket.sendall(encoded("GET", "big") * 100)
            self.answered()
        self.over(all_known, "slow readers")

    def large_answers(self):
        one = self.known()
        assert isinstance(one.ask("MGET", *["big"] * 1000), RuntimeError)
        one.socket.sendall(encoded("MULTI") + encoded("GET", "big") * 100 + encoded("EXEC"))
        self.answered()
        other, wide = self.known(), [f"wide:{number}" for number in range(64)]
        other.socket.sendall(b"".join(encoded("SETRANGE", key, ARGUMENT - 4096, "x") for key in wide))
        for _ in wide:
            assert other.read() == ARGUMENT - 4095
            self.answered()
        assert other.ask("DEL", *wide) == len(wide)
        self.over([one, other], "large answers and values")

    def large_transactions(self):
        one, keys = self.known(), ["tx:1", "tx:2", "tx:3"]
        for request in (("SETRANGE", ARGUMENT - 4096, "x"), ("SET", b"x" * (ARGUMENT - 4096))):
            assert one.ask("MULTI") == b"OK"
            for key in keys:
                assert one.ask(request[0], key, *request[1:]) == b"QUEUED"
            assert len(one.ask("EXEC")) == len(keys)
            self.answered()
        assert one.ask("DEL", *keys) == len(keys)
        self.over([one], "transactions of large values")

    def pipelines(self):
        all_known = [self.known() for _ in range(4)]
        threads = [threading.Thread(target=self.pipeline, args=(one, 100_000)) for one in all_known]
        [thread.start() for thread in threads]
        while any(thread.is_alive() for thread in threads):
            self.answered()
        self.over(all_known, "deep pipelines")

    @staticmethod
    def pipeline(connection, count):
        def write():
            connection.socket.sendall(encoded("SET", "deep", b"x" * 60) * count)

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(count):
            assert connection.read() == b"OK"
        writer.join()

    def half_open(self):
        for _ in range(2000):
            (one,) = self.strangers(1)
            one.sendall(self.draw.choice([b"G", b"*", b"*3\r\n$3", b"PING\r\n"]))
            one.close()
        self.over([], "ends amid a request")

    def round(self):
        attacks = [
            self.half_requests, self.idle_ones, self.refusals, self.huge_arguments, self.many_arguments,
            self.slow_writers, self.slow_readers, self.large_answers, self.large_transactions, self.pipelines, self.half_open,
        ]  # fmt: skip
        self.draw.shuffle(attacks)
        for attack in attacks:
            attack()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--forebay", required=True)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = tempfile.mkdtemp()
    idle = min(10_000, raise_file_limit() // 2 - 2000)
    attack = Attack(given.forebay, folder, given.seed, idle)
    for number in range(given.count):
        print(f"round {number + 1} of {given.count}", flush=True)
        attack.round()
    most = attack.server.memory_bytes("VmHWM")
    attack.server.end()
    print(f"{given.count} rounds; at most {most >> 20} MiB of {PROCESS >> 20}, {attack.base >> 20} at the start")
    assert most <= PROCESS
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
