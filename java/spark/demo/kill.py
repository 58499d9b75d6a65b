"""Kills a stream of counts again and again, driver and executor at once, and sees that nothing is lost or counted twice.

Each run of `counts.py` does a few batches, is killed some time after one, between or during batches, and is run again with the same checkpoint; the
last one ends, and compares its counts with those of a batch.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fill(folder: Path, count: int, dice: random.Random) -> None:
    """Files of words, some of which come again and again."""
    folder.mkdir()
    for number in range(count):
        words = [f"w{'abcdefghij'[dice.randrange(10)] * dice.randrange(1, 4)}{chr(97 + dice.randrange(26))}" for _ in range(2000)]
        (folder / f"{number:05}.txt").write_text(" ".join(words))


def attempt(command: list[str], batches: int | None, seconds: float) -> int | None:
    """Runs it, and kills it with all it has started some time after so many batches. Returns its status, or None."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    said = []
    for line in child.stdout:
        said.append(line)
        if batches is not None and line.startswith("batch "):
            batches -= 1
            if batches == 0:
                time.sleep(seconds)
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                break
    rest, _ = child.communicate()
    if child.returncode != -signal.SIGKILL:
        print("".join(said[-20:]) + rest)
    return None if child.returncode == -signal.SIGKILL else child.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", nargs="+", required=True)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=1, help="the longest while behind a batch")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        fill(files, arguments.files, dice)
        command = [sys.executable, str(HERE / "counts.py"), str(files), str(Path(folder) / "state")]
        command += ["--files-per-batch", "2", "--snapshot-every", "2", "--jars", *arguments.jars]
        killed = 0
        for _ in range(arguments.kills):
            status = attempt(command, dice.randrange(1, 5), dice.uniform(0, arguments.seconds))
            if status is None:
                killed += 1
            elif status != 0:
                print(f"a run ended with status {status} after {killed} kills")
                return 1
        commits = len([name for name in (Path(folder) / "state/stream/commits").iterdir() if name.name.isdigit()])
        print(f"{killed} of {arguments.kills} runs were killed, {commits} batches were committed by then", flush=True)
        return attempt(command, None, 0)


if __name__ == "__main__":
    sys.exit(main())
