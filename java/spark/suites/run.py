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
# Suites that name RocksDB's provider themselves, or want to be told one: a class of ours stands for each.
OURS = {
    "StateStoreSuiteBase": "ForebayStateStoreSuite",
    "TransformWithValueStateTTLSuite": "ForebayTransformWithValueStateTTLSuite",
    "TransformWithListStateTTLSuite": "ForebayTransformWithListStateTTLSuite",
    "TransformWithMapStateTTLSuite": "ForebayTransformWithMapStateTTLSuite",
    "TransformWithListStateSuite": "ForebayTransformWithListStateSuite",
    "TransformWithMapStateSuite": "ForebayTransformWithMapStateSuite",
    "TransformWithStateUnsafeRowSuite": "ForebayTransformWithStateUnsafeRowSuite",
}


# The suite for any provider has no counterpart of RocksDB's. All that our class has of it must pass.
ALONE = "StateStoreSuiteBase"


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
    folder = work / "ours"
    folder.mkdir(exist_ok=True)
    sources = [str(path) for path in sorted((HERE / "src").rglob("*.java"))]
    subprocess.run(["javac", "-nowarn", "--release", "17", "-cp", paths, "-d", str(folder), *sources], check=True)
    return folder


def opens() -> list[str]:
    """The options of the JVM that Spark needs, as the modules' tests have them."""
    text = (HERE.parent / "pom.xml").read_text()
    return re.search(r"<jvm.opens>(.*?)</jvm.opens>", text).group(1).split()


def named(suite: str, provider: str) -> str:
    """The class of a suite for a provider."""
    if suite in OURS and provider == "forebay":
        return f"dev.forebay.spark.{OURS[suite]}"
    return suite if "." in suite else f"org.apache.spark.sql.streaming.{suite}"


def run(name: str, minor: str, suites: list[str], work: Path) -> dict[str, bool]:
    """Runs the suites on a provider. Returns whether each test has passed."""
    paths = class_path(minor, work)
    tests = unpacked_tests(minor, paths, work)
    ours = [JAVA / "spark" / f"spark-{minor}" / "target" / "classes", JAVA / "core" / "target" / "classes"]
    home = work / name
    shutil.rmtree(home, ignore_errors=True)
    (home / "tmp").mkdir(parents=True)
    command = ["java", "-Xmx3g", "-Xss4m", *opens(), "-Dspark.testing=1", f"-Dspark.test.home={home}"]
    command += [f"-Djava.io.tmpdir={home / 'tmp'}", "-Dspark.ui.enabled=false"]
    command += [f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"]
    command += [f"-Dspark.sql.streaming.stateStore.providerClass={PROVIDERS[name]}"]
    paths = ":".join([str(tests), *map(str, ours), paths])
    if any(suite in OURS for suite in suites):
        paths = f"{compiled(paths, work)}:{paths}"
    command += ["-cp", paths, "org.scalatest.tools.Runner", "-R", str(tests), "-oW"]
    for suite in suites:
        if suite == ALONE and name != "forebay":
            continue
        command += ["-s", named(suite, name)]
    log = work / f"{name}.log"
    print(f"{name}: {len(suites)} suites of Spark {VERSIONS[minor]}; {log} has what they say", flush=True)
    with log.open("w") as out:
        subprocess.run(command, cwd=home, stdout=out, stderr=subprocess.STDOUT, check=False)
    shutil.rmtree(home, ignore_errors=True)
    text = log.read_text()
    if "*** ABORTED ***" in text or "Run completed in" not in text:
        sys.exit(f"a suite has ended before its tests: {log} says why")
    return parsed(text)


def parsed(text: str) -> dict[str, bool]:
    """The tests that ScalaTest tells of."""
    passed = {}
    suite = ""
    for line in text.splitlines():
        if re.fullmatch(r"\w+Suite:", line):
            suite = line[:-1].removeprefix("Forebay")
        elif line.startswith("- ") and not line.endswith("!!! IGNORED !!!"):
            name = f"{suite}: {line[2:].removesuffix(' *** FAILED ***')}"
            passed[name] = not line.endswith("*** FAILED ***")
    return passed


def alone(test: str) -> bool:
    """Whether a test is of the suite that runs on Forebay alone, and must pass."""
    return test.startswith("StateStoreSuite: ")


def compare(found: dict[str, dict[str, bool]]) -> int:
    """Tells what differs. Returns how many tests are worse."""
    ours, theirs = found["forebay"], found["rocksdb"]
    worse = [name for name, passed in theirs.items() if passed and not ours.get(name, False)]
    worse += [name for name, passed in ours.items() if not passed and alone(name)]
    worse += [f"{name}, which RocksDB has not run" for name in ours if name not in theirs and not alone(name)]
    worse += [f"{name}, which has not run" for name in theirs if name not in ours and not theirs[name]]
    for name, tests in found.items():
        failed = sorted(test for test, passed in tests.items() if not passed)
        print(f"{name}: {sum(tests.values())} of {len(tests)} pass", *(f"\n  fails: {test}" for test in failed))
    for test in sorted(worse):
        print("is not as it should be with Forebay:", test)
    return len(worse)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minor", choices=VERSIONS)
    parser.add_argument("suites", nargs="*", default=SUITES)
    parser.add_argument("--work", type=Path, default=JAVA.parent / "target" / "spark-suites")
    parser.add_argument("--only", choices=PROVIDERS, help="run one provider, and compare nothing")
    arguments = parser.parse_args()
    work = arguments.work.resolve() / arguments.minor
    work.mkdir(parents=True, exist_ok=True)
    names = [arguments.only] if arguments.only else list(PROVIDERS)
    found = {name: run(name, arguments.minor, arguments.suites, work) for name in names}
    if any(not tests for tests in found.values()):
        print("no test has run: see the log")
        return 1
    if arguments.only:
        failed = [test for test, passed in found[arguments.only].items() if not passed]
        print(f"{arguments.only}: {len(found[arguments.only])} tests", *(f"\n  fails: {test}" for test in failed))
        return 1 if failed else 0
    return 1 if compare(found) else 0


if __name__ == "__main__":
    sys.exit(main())
