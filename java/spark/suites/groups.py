"""Runs `GroupBench` on Forebay's group-by and on Spark's own, each query in a process of its own, one after the other."""

import subprocess
import sys
import tempfile

from run import JAVA, class_path, opens

QUERIES = ("few", "many", "text", "distinct")
HEAP = "3g"


def main() -> int:
    rows, groups = sys.argv[1:]
    work = JAVA.parent / "target" / "spark-suites" / "4.1"
    work.mkdir(parents=True, exist_ok=True)
    module = JAVA / "spark" / "spark-4.1" / "target"
    paths = [module / "test-classes", module / "classes", JAVA / "core" / "target" / "classes"]
    with tempfile.TemporaryDirectory(dir=work) as folder:
        command = ["java", f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+AlwaysPreTouch", *opens(), f"-Djava.io.tmpdir={folder}"]
        command += [f"-Dlog4j2.configurationFile={JAVA / 'spark' / 'suites' / 'log4j2.properties'}"]
        command += ["-cp", ":".join([*map(str, paths), class_path("4.1", work)]), "dev.forebay.spark.GroupBench"]
        runs = [("files", "none"), *((who, query) for query in QUERIES for who in ("forebay", "spark"))]
        for who, query in runs:
            subprocess.run([*command, who, f"{folder}/rows", query, rows, groups], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
