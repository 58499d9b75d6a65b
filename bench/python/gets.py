"""One key at a time out of memory: Forebay's table beside Rust's own get, lmdb, rocksdict, plyvel and a dictionary.

Keys and values have 16 bytes. The time of an empty loop over the keys is taken off. With ``--rust`` the same keys are
looked up in the same database by a program in Rust, once in each round, and what Python takes above that is told.

    cargo build --release --package forebay --example get_rate
    python bench/python/gets.py --rust target/release/examples/get_rate
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forebay as fb


def forebay(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    table = fb.open(path, memory="256MB").table("t")
    table.put_many(keys, keys)
    return table.__getitem__


def forebay_plyvel(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    from forebay import plyvel

    db = plyvel.DB(path, create_if_missing=True, memory="256MB")
    with db.write_batch() as batch:
        for key in keys:
            batch.put(key, key)
    return db.get


def plyvel(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    import plyvel

    db = plyvel.DB(str(path), create_if_missing=True, lru_cache_size=256 << 20)
    with db.write_batch() as batch:
        for key in keys:
            batch.put(key, key)
    return db.get


def rocksdict(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    import rocksdict

    db = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
    for key in keys:
        db[key] = key
    return db.__getitem__


def lmdb(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    import lmdb

    db = lmdb.open(str(path), map_size=4 << 30, sync=False)
    with db.begin(write=True) as transaction, transaction.cursor() as cursor:
        cursor.putmulti([(key, key) for key in keys])
    return db.begin().get


def dictionary(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    return dict(zip(keys, keys, strict=True)).__getitem__


STORES = {
    "forebay": forebay,
    "forebay-plyvel": forebay_plyvel,
    "plyvel": plyvel,
    "rocksdict": rocksdict,
    "lmdb": lmdb,
    "dictionary": dictionary,
}


def loop(get: Callable[[bytes], Any], keys: list[bytes]) -> float:
    begun = time.perf_counter()
    for key in keys:
        get(key)
    return time.perf_counter() - begun


def beside_rust(program: Path, path: Path, keys: list[bytes], rounds: int) -> None:
    """``t[key]`` and Rust's get by turns, each in a process that opens the database anew."""
    (path / "keys").write_bytes(b"\n".join(keys))
    with fb.open(path / "db", memory="256MB") as db:
        db.table("t").put_many(keys, keys)
        db.flush()
        db.wait_until_idle()
    python, rust = [], []
    for _ in range(rounds):
        with fb.open(path / "db", memory="256MB") as db:
            get = db.table("t").__getitem__
            for key in keys[:1000]:
                assert get(key) == key
            python.append(min(loop(get, keys) - loop(len, keys) for _ in range(3)) * 1e9 / len(keys))
        told = subprocess.run([program, path / "db", "t", path / "keys", "3"], check=True, capture_output=True, text=True)
        rust.append(min(map(float, told.stdout.split())))
    above = statistics.median(mine - other for mine, other in zip(python, rust, strict=True))
    mine, other = statistics.median(python), statistics.median(rust)
    print(f"t[key]: {mine:.0f} ns, Rust's get {other:.0f} ns, above it {above:.0f} ns", flush=True)


def imported() -> None:
    """How long the import takes, beside an interpreter that imports nothing."""
    took = {"pass": [], "import forebay": []}  # type: dict[str, list[float]]
    for _ in range(9):
        for program, seconds in took.items():
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            seconds.append(time.perf_counter() - begun)
    least, all = (statistics.median(seconds) for seconds in took.values())
    print(f"import forebay: {1e3 * (all - least):.1f} ms, beside {1e3 * least:.1f} ms of the interpreter", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--dir", default=".", help="where the stores are made, and removed")
    parser.add_argument("--stores", default=",".join(STORES), help=f"some of {', '.join(STORES)}")
    parser.add_argument("--rust", type=Path, help="the program get_rate, to be held against")
    asked = parser.parse_args()
    imported()
    keys = [b"%016d" % at for at in range(asked.records)]
    random.Random(1).shuffle(keys)
    empty = statistics.median(loop(len, keys) for _ in range(asked.rounds))
    for name in asked.stores.split(","):
        with tempfile.TemporaryDirectory(dir=asked.dir, ignore_cleanup_errors=True) as place:
            try:
                get = STORES[name](Path(place) / "store", keys)
            except ImportError as error:
                print(f"{name}: left out ({error})", flush=True)
                continue
            for key in keys[:1000]:
                assert get(key) == key
            took = statistics.median(loop(get, keys) for _ in range(asked.rounds)) - empty
            nanoseconds = 1e9 * took / len(keys)
            print(f"{name}: {nanoseconds:.0f} ns a get", flush=True)
    if asked.rust:
        with tempfile.TemporaryDirectory(dir=asked.dir) as place:
            beside_rust(asked.rust.absolute(), Path(place), keys, asked.rounds)


if __name__ == "__main__":
    main()
