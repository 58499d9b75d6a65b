"""redis-py and redis-cli by TLS: `python tls.py FOREBAY`."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

import redis
from certificates import Authority
from running import Server, within


def main():
    with tempfile.TemporaryDirectory() as folder:
        ours, others = Authority(folder, "ours"), Authority(folder, "others")
        certificate, key = ours.sign("server")
        server = Server(sys.argv[1], folder, "--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", ours.path)

        def client(signed, trusted=ours):
            ways = {"ssl_certfile": signed[0], "ssl_keyfile": signed[1]} if signed else {}
            return redis.Redis(port=server.port, ssl=True, ssl_ca_certs=trusted.path, retry=None, socket_timeout=20, **ways)

        def refused(signed, trusted=ours):
            try:
                client(signed, trusted).ping()
            except (redis.ConnectionError, redis.TimeoutError):
                return True
            return False

        good = ours.sign("client")
        with client(good) as known:
            value = os.urandom(5 << 20)
            assert known.set("long", value) and known.get("long") == value
            with known.pipeline(transaction=False) as pipe:
                for number in range(5000):
                    pipe.set(f"key:{number}", number)
                assert all(pipe.execute())
            assert known.dbsize() == 5001
            assert refused(None) and refused(others.sign("stranger")) and refused(ours.sign("old", days=-1))
            assert refused(good, trusted=others)
            # Another certificate takes the place of this one; those that are connected stay.
            shutil.copy(others.sign("newer")[0], certificate)
            server.process.send_signal(signal.SIGHUP)
            assert "stay as they were" in next(line for line in server.process.stderr if "certificates" in line)
            assert client(good).ping()
            shutil.copy(f"{folder}/newer.key", key)
            server.process.send_signal(signal.SIGHUP)
            assert within(20, lambda: not refused(good, others))
            assert refused(good) and known.ping()
        if shutil.which("redis-cli"):
            words = ["redis-cli", "-p", str(server.port), "--tls", "--cacert", others.path, "--cert", good[0], "--key", good[1]]
            assert subprocess.run([*words, "strlen", "long"], capture_output=True, check=True).stdout == b"5242880\n"
            plain = subprocess.run(["redis-cli", "-p", str(server.port), "ping"], capture_output=True, check=False)
            assert b"PONG" not in plain.stdout
        server.end()
    print("redis-py by TLS: as with Redis")


main()
