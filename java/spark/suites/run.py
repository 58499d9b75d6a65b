"""Runs Spark's own streaming suites, as they are, on Forebay's state store and on RocksDB's, and compares which tests pass.

A test that passes with RocksDB and not with Forebay is a failure; so is a test that one of them has not run. The suites
are those of Spark's test jar: nothing of them is changed, the provider is named by a system property.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
JAVA = HERE.parent.parent
VERSIONS = {"4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0"}
PROVIDERS = {
    "forebay": "dev.forebay.spark.ForebayStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
SUITES = [
    "StreamingAggregationSuite",
    "StreamingDeduplicationSuite",
    "StreamingDeduplicationWithinWatermarkSuite",
    "StreamingSessionWindowSuite",
    "FlatMapGroupsWithStateSuite",
    "StreamingInnerJoinSuite",
    "StreamingOuterJoinSuite",
    "StreamingFullOuterJoinSuite",
    "StreamingLeftSemiJoinSuite",
    "StreamingQuerySuite",
]
# The suites of joins are classes of their own for each format of their state from 4.2 on.
JOIN_FORMATS = ["WithoutVCF", "WithVCF"]
# Suites that name RocksDB's provider in their settings: a class of ours stands for each, and names ours there.
SWAPPED = [
    "StateDataSourceTransformWithStateSuite",
    "TransformWithListStateSuite",
    "TransformWithListStateTTLSuite",
    "TransformWithMapStateSuite",
    "TransformWithMapStateTTLSuite",
    "TransformWithStateAvroSuite",
    "TransformWithStateChainingSuite",
    "TransformWithStateInitialStateSuite",
    "TransformWithStateUnsafeRowSuite",
    "TransformWithStateValidationSuite",
    "TransformWithValueStateTTLSuite",
]
SWAPPED_CLASS = """package dev.forebay.spark;

public final class Forebay{0} extends {1}.{0} {{
    @Override
    public <T> T withSQLConf(scala.collection.immutable.Seq<scala.Tuple2<String, String>> settings, scala.Function0<T> body) {{
        return super.withSQLConf(Swap.provider(settings), body);
    }}
}}
"""
# Suites for any provider, by a class of ours. RocksDB's own have many other cases: all that ours have of them must pass.
ALONE = ["StateStoreSuiteBase", "StateDataSourceChangeDataReaderSuite", "StateDataSourceReadSuite"]


# They hold the bytes of changelogs against what RocksDB's provider writes: ours tell first which attempt they are of.
OF_BYTES = "snapshotStartBatchId with transformWithState (with changelog checkpointing)"


def suites(minor: str) -> list[str]:
    """The suites of a version that are run if none are named."""
    if minor in ("4.0", "4.1"):
        return [*SUITES, *SWAPPED, *ALONE]
    # Spark since 4.2 runs transformWithState with RocksDB's provider alone.
    joins = [suite for suite in SUITES if suite.endswith("JoinSuite")]
    forms = [suite.replace("JoinSuite", f"Join{form}Suite") for suite in joins for form in JOIN_FORMATS]
    return [*(suite for suite in SUITES if suite not in joins), *forms, *ALONE]


def class_path(minor: str, work: Path) -> str:
    """What Spark's tests need, fetched by Maven once."""
    listed = work / "classpath.txt"
    if not listed.exists():
        command = [os.environ.get("MVN", "mvn"), "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:build-classpath"]
        command += [f"-Dspark.version={VERSIONS[minor]}", f"-Dmdep.outputFile={listed}"]
        subprocess.run(command, check=True)
    return listed.read_text().strip()


def unpacked_tests(minor: str, paths: str, work: Path) -> Path:
    """The test jar as a folder: some tests read their resources as files."""
    folder = work / "tests"
    if not folder.exists():
        name = f"spark-sql_2.13-{VERSIONS[minor]}-tests.jar"
        jar = next(path for path in paths.split(":") if path.endswith(name))
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(folder)
    return folder


def compiled(paths: str, work: Path) -> Path:
    """Our classes for suites of Spark's, which know the test jar."""
    folder, made = work / "ours", work / "made"
    for path in (folder, made):
        path.mkdir(exist_ok=True)
    for suite in SWAPPED:
        (made / f"Forebay{suite}.java").write_text(SWAPPED_CLASS.format(suite, package(suite)))
    sources = [str(path) for path in sorted([*(HERE / "src").rglob("*.java"), *made.glob("*.java")])]
    subprocess.run(["javac", "-nowarn", "--release", "17", "-cp", paths, "-d", str(folder), *sources], check=True)
    return folder


def opens() -> list[str]:
    """The options of the JVM that Spark needs, as the modules' tests have them."""
    text = (HERE.parent / "pom.xml").read_text()
    return re.search(r"<jvm.opens>(.*?)</jvm.opens>", text).group(1).split()


def package(suite: str) -> str:
    """Where Spark has a suite."""
    if suite.startswith("StateDataSource"):
        return "org.apache.spark.sql.execution.datasources.v2.state"
    return "org.apache.spark.sql.streaming"


def named(suite: str, provider: str) -> str:
    """The class of a suite for a provider."""
    if suite in [*SWAPPED, *ALONE] and provider == "forebay":
        return f"dev.forebay.spark.Forebay{suite.removesuffix('Base')}"
    return suite if "." in suite else f"{package(suite)}.{suite}"


def run(name: str, minor: str, suite: str, work: Path) -> dict[str, bool]:
    """Runs a suite on a provider. Returns whether each test has passed; none, where the suite has ended before its tests."""
    paths = class_path(minor, work)
    tests = unpacked_tests(minor, paths, work)
    ours = [JAVA / "spark" / f"spark-{minor}" / "target" / "classes", JAVA / "core" / "target" / "classes"]
    home = work / name
    shutil.rmtree(home, ignore_errors=True)
    (home / "tmp").mkdir(parents=True)
    # Spark's build runs its tests with assertions, and some wait for one to fail.
    command = ["java", "-ea", "-Xmx3g", "-Xss4m", *opens(), "-Dspark.testing=1", f"-Dspark.test.home={home}"]
    command += [f"-Djava.io.tmpdir={home / 'tmp'}", "-Dspark.ui.enabled=false"]
    command += [f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"]
    command += [f"-Dspark.sql.streaming.stateStore.providerClass={PROVIDERS[name]}"]
    paths = ":".join([str(tests), *map(str, ours), paths])
    paths = f"{compiled(paths, work)}:{paths}"
    command += ["-cp", paths, "org.scalatest.tools.Runner", "-R", str(tests), "-oW", "-s", named(suite, name)]
    log = work / f"{suite}.{name}.log"
    with log.open("w") as out:
        subprocess.run(command, cwd=home, stdout=out, stderr=subprocess.STDOUT, check=False)
    shutil.rmtree(home, ignore_errors=True)
    text = log.read_text()
    found = {} if "*** ABORTED ***" in text or "Run completed in" not in text else parsed(text)
    print(f"{suite} of Spark {VERSIONS[minor]} on {name}: {sum(found.values())} of {len(found)} tests pass; {log}", flush=True)
    for test, passed in found.items():
        if not passed:
            print(f"  fails: {test}")
    return found


def bench(name: str, folder: str, *options: str) -> list[str]:
    """The command that runs a program of Spark 4.1's tests, with a folder for what is temporary."""
    work = JAVA.parent / "target" / "spark-suites" / "4.1"
    work.mkdir(parents=True, exist_ok=True)
    module = JAVA / "spark" / "spark-4.1" / "target"
    paths = [module / "test-classes", module / "classes", JAVA / "core" / "target" / "classes"]
    paths = ":".join([*map(str, paths), class_path("4.1", work)])
    return ["java", *options, *opens(), f"-Djava.io.tmpdir={folder}", "-cp", paths, f"dev.forebay.spark.{name}"]


def parsed(text: str) -> dict[str, bool]:
    """The tests that ScalaTest tells of."""
    passed = {}
    for line in text.splitlines():
        if line.startswith("- ") and not line.endswith("!!! IGNORED !!!"):
            passed[line[2:].removesuffix(" *** FAILED ***")] = not line.endswith("*** FAILED ***")
    return passed


def worse(ours: dict[str, bool], theirs: dict[str, bool]) -> list[str]:
    """What is not with Forebay as it is with RocksDB."""
    theirs = {test: passed for test, passed in theirs.items() if not test.startswith(OF_BYTES)}
    ours = {test: passed for test, passed in ours.items() if not test.startswith(OF_BYTES)}
    found = [test for test, passed in theirs.items() if passed and not ours.get(test, False)]
    found += [f"{test}, which RocksDB has not run" for test in ours if test not in theirs]
    found += [f"{test}, which has not run" for test in theirs if test not in ours and not theirs[test]]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minor", choices=VERSIONS)
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--work", type=Path, default=JAVA.parent / "target" / "spark-suites")
    parser.add_argument("--only", choices=PROVIDERS, help="run one provider, and compare nothing")
    arguments = parser.parse_args()
    work = arguments.work.resolve() / arguments.minor
    work.mkdir(parents=True, exist_ok=True)
    failures: list[str] = []
    for suite in arguments.suites or suites(arguments.minor):
        names = [arguments.only] if arguments.only else ["forebay"] if suite in ALONE else list(PROVIDERS)
        if suite in ALONE and arguments.only == "rocksdb":
            continue
        found = {name: run(name, arguments.minor, suite, work) for name in names}
        if not all(found.values()):
            failures.append(f"{suite}, which has ended before its tests: see the log")
        elif len(names) == 1:
            failures += [test for test, passed in found[names[0]].items() if not passed]
        else:
            failures += worse(found["forebay"], found["rocksdb"])
    for failure in failures:
        print("is not as it should be:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
