"""One key at a time out of memory: Forebay's table beside Rust's own get, lmdb, rocksdict, plyvel and a dictionary.

Keys and values have 16 bytes. The time of an empty loop over the keys is taken off. Rust's figure is that of
``forebay bench``, run by hand on the same machine: ``--rust NANOSECONDS`` prints what is above it.

    python bench/python/gets.py --records 200000
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


def forebay(path: Path, keys: list[bytes]) -> Callable[[bytes], Any]:
    import forebay

    table = forebay.open(path, memory="256MB").table("t")
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
    parser.add_argument("--rust", type=float, help="nanoseconds of Rust's get, to be taken off Forebay's")
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
            above = f", {nanoseconds - asked.rust:.0f} above Rust's" if asked.rust and name == "forebay" else ""
            print(f"{name}: {nanoseconds:.0f} ns a get{above}", flush=True)


if __name__ == "__main__":
    main()
