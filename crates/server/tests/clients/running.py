"""A server of this machine for the campaigns, and a connection that knows no more than bytes."""

import re
import resource
import signal
import socket
import subprocess
import time


def raise_file_limit():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class Server:
    def __init__(self, forebay, folder, *options):
        command = [forebay, "serve", f"{folder}/db", "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        found = re.search(r":(\d+)$", said)
        if not found:
            raise SystemExit(f"the server does not listen: {said}{self.process.stderr.read()}")
        self.port = int(found.group(1))

    def memory_bytes(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        told = self.process.communicate(timeout=60)[1]
        if self.process.returncode:
            raise SystemExit(f"the server ended with {self.process.returncode}: {told}")


def encoded(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Connection:
    """To a port of this machine, or to a socket's path."""

    def __init__(self, port, password=None, seconds=60):
        if isinstance(port, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(seconds)
            self.socket.connect(port)
        else:
            self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.file = self.socket.makefile("rb")
        if password:
            assert self.ask("AUTH", password) == b"OK"

    def send(self, *words):
        self.socket.sendall(encoded(*words))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        mark, rest = line[:1], line[1:-2]
        if mark in b"+-":
            return rest if mark == b"+" else RuntimeError(rest.decode())
        if mark == b":":
            return int(rest)
        if int(rest) < 0:
            return None
        if mark == b"*":
            return [self.read() for _ in range(int(rest))]
        return self.file.read(int(rest) + 2)[:-2]

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


def within(seconds, holds):
    """Whether it comes to hold in this time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
