"""Kills a stream of counts again and again, and sees that nothing is lost or counted twice.

`counts.py` runs with two executors, each a process. Some time after a few batches, between batches or during one, an
executor is killed, or all there is: driver and executors. Then it is run again with the same checkpoint. The last run
ends, and compares its counts with those of a batch.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLUSTER = "local-cluster[2,1,600]"
RUN_SECONDS_MAX = 1800


def fill(folder: Path, count: int, dice: random.Random) -> None:
    """Files of words, some of which come again and again."""
    folder.mkdir()
    for number in range(count):
        words = [f"w{'abcdefghij'[dice.randrange(10)] * dice.randrange(1, 4)}{chr(97 + dice.randrange(26))}" for _ in range(2000)]
        (folder / f"{number:05}.txt").write_text(" ".join(words))


def executors(group: int) -> list[int]:
    """The executors of a process group."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if os.getpgid(int(folder.name)) == group and b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (ValueError, OSError):
            pass
    return sorted(found)


class Stream:
    """Runs of `counts.py` with one checkpoint."""

    def __init__(self, folder: Path, jars: list[str], dice: random.Random, seconds: float) -> None:
        self.dice, self.seconds, self.local = dice, seconds, folder / "local"
        self.killed, self.has_hung = {"executor": 0, "all": 0}, False
        self.command = [sys.executable, str(HERE / "counts.py"), str(folder / "files"), str(folder / "state"), "--master", CLUSTER]
        self.command += ["--files-per-batch", "2", "--snapshot-every", "2", "--jars", *jars]

    def run(self, kills: int) -> int | None:
        """Runs it, and kills executors of it, and at last all of it. Returns its status where it has ended before."""
        shutil.rmtree(self.local, ignore_errors=True)
        self.local.mkdir()
        places = {"SPARK_LOCAL_DIRS": str(self.local), "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={self.local}"}
        child = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, env=os.environ | places
        )
        # One that hangs is to be seen, and not waited for.
        timer = threading.Timer(RUN_SECONDS_MAX, self.give_up, [child])
        timer.start()
        said, wait = [], self.dice.randrange(1, 5)
        for line in child.stdout:
            said.append(line)
            if line.startswith("batch ") and sum(self.killed.values()) < kills:
                wait -= 1
                if wait == 0:
                    wait = self.dice.randrange(1, 5)
                    time.sleep(self.dice.uniform(0, self.seconds))
                    if self.kill(child):
                        break
        timer.cancel()
        rest, _ = child.communicate()
        if child.returncode != -signal.SIGKILL:
            print("".join(said[-20:]) + rest)
        if self.has_hung:
            print(f"a run took more than {RUN_SECONDS_MAX} seconds")
            return 1
        return None if child.returncode == -signal.SIGKILL else child.returncode

    def give_up(self, child: subprocess.Popen[str]) -> None:
        """Ends a run that takes too long; that is a failure."""
        self.has_hung = True
        os.killpg(child.pid, signal.SIGKILL)

    def kill(self, child: subprocess.Popen[str]) -> bool:
        """Kills something. Returns whether it was all there is."""
        some = executors(child.pid)
        if self.dice.random() < 0.5 and some:
            os.kill(self.dice.choice(some), signal.SIGKILL)
            self.killed["executor"] += 1
            return False
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            self.killed["all"] += 1
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", nargs="+", required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--files", type=int, default=0, help="12 a kill and 8 more, where it is not given")
    parser.add_argument("--seconds", type=float, default=1, help="the longest while behind a batch")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "files", arguments.files or 12 * arguments.kills + 8, dice)
        stream = Stream(Path(folder), arguments.jars, dice, arguments.seconds)
        status = None
        while status is None:
            status = stream.run(arguments.kills)
            commits = len([name for name in (Path(folder) / "state/stream/commits").iterdir() if name.name.isdigit()])
            print(f"killed by now: {stream.killed}; {commits} batches were committed", flush=True)
        if not status and sum(stream.killed.values()) < arguments.kills:
            print(f"the stream had ended before {arguments.kills} kills: give it more --files")
            return 1
        return status


if __name__ == "__main__":
    sys.exit(main())
