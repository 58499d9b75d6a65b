"""Runs `GroupBench` on Forebay's group-by and on Spark's own, each query in a process of its own, one after the other."""

import subprocess
import sys
import tempfile

from run import JAVA, bench

QUERIES = ("few", "many", "text", "distinct")
HEAP = "3g"


def main() -> int:
    rows, groups = sys.argv[1:]
    logs = f"-Dlog4j2.configurationFile={JAVA / 'spark' / 'suites' / 'log4j2.properties'}"
    with tempfile.TemporaryDirectory(dir=JAVA.parent / "target") as folder:
        command = bench("GroupBench", folder, f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+AlwaysPreTouch", logs)
        runs = [("files", "none"), *((who, query) for query in QUERIES for who in ("forebay", "spark"))]
        for who, query in runs:
            subprocess.run([*command, who, f"{folder}/rows", query, rows, groups], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
