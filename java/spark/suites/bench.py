"""Runs `Bench` on Forebay's provider and on RocksDB's, each in a process and a directory of its own, one after the other."""

import subprocess
import sys
import tempfile

from run import JAVA, bench


def main() -> int:
    for provider in ("forebay", "rocksdb"):
        with tempfile.TemporaryDirectory(dir=JAVA.parent / "target") as folder:
            command = bench("Bench", folder, "-Xmx1g", "-Dspark.testing=1")
            subprocess.run([*command, provider, f"{folder}/checkpoints", *sys.argv[1:]], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
