"""Runs `Bench` on Forebay's provider and on RocksDB's, each in a process and a directory of its own, one after the other."""

import subprocess
import sys
import tempfile

from run import JAVA, class_path, opens


def main() -> int:
    work = JAVA.parent / "target" / "spark-suites" / "4.1"
    work.mkdir(parents=True, exist_ok=True)
    module = JAVA / "spark" / "spark-4.1" / "target"
    paths = [module / "test-classes", module / "classes", JAVA / "core" / "target" / "classes"]
    for provider in ("forebay", "rocksdb"):
        with tempfile.TemporaryDirectory(dir=work) as folder:
            command = ["java", "-Xmx1g", *opens(), f"-Djava.io.tmpdir={folder}", "-Dspark.testing=1"]
            command += ["-cp", ":".join([*map(str, paths), class_path("4.1", work)]), "dev.forebay.spark.Bench"]
            subprocess.run([*command, provider, f"{folder}/checkpoints", *sys.argv[1:]], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
