"""Records of 16 bytes into a new store, in batches: Forebay beside plyvel, rocksdict and lmdb.

Keys and values are 8 random bytes each. Every store is told to survive the end of the process, and not a power loss: what
each does by default, but for lmdb, which is told not to sync. A batch has so many records for all of them; Forebay cuts its
own. What is timed is the load and the close, which leaves what background work there is to the next opening.

    python bench/python/puts.py --records 2000000
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MEMORY = 256 << 20


def batches(keys: list[bytes], size: int) -> Iterator[list[bytes]]:
    for at in range(0, len(keys), size):
        yield keys[at : at + size]


def forebay_lists(path: Path, keys: list[bytes], size: int) -> None:
    import forebay

    with forebay.open(path, memory=MEMORY) as db:
        db.table("t").put_many(keys, keys)


def forebay_arrow(path: Path, keys: list[bytes], size: int) -> Callable[[], None]:
    import forebay
    import pyarrow

    column = pyarrow.array(keys, pyarrow.binary(8))

    def run() -> None:
        with forebay.open(path, memory=MEMORY) as db:
            db.table("t").put_many(column, column)

    return run


def forebay_ordered(path: Path, keys: list[bytes], size: int) -> None:
    import forebay

    with forebay.open(path, memory=MEMORY) as db:
        db.ordered_table("t").put_many(keys, keys)


def forebay_plyvel(path: Path, keys: list[bytes], size: int) -> None:
    from forebay import plyvel

    with plyvel.DB(path, create_if_missing=True, memory=MEMORY) as db:
        for some in batches(keys, size):
            with db.write_batch() as batch:
                for key in some:
                    batch.put(key, key)


def plyvel(path: Path, keys: list[bytes], size: int) -> None:
    import plyvel

    # A third of the memory for two write buffers each.
    db = plyvel.DB(str(path), create_if_missing=True, write_buffer_size=MEMORY // 3, lru_cache_size=MEMORY // 3)
    for some in batches(keys, size):
        with db.write_batch() as batch:
            for key in some:
                batch.put(key, key)
    db.close()


def rocksdict(path: Path, keys: list[bytes], size: int) -> None:
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(MEMORY // 4)
    db = rocksdict.Rdict(str(path), options)
    for some in batches(keys, size):
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key in some:
            batch.put(key, key)
        db.write(batch)
    db.close()


def lmdb(path: Path, keys: list[bytes], size: int) -> None:
    import lmdb

    db = lmdb.open(str(path), map_size=16 << 30, sync=False, metasync=False, writemap=False)
    for some in batches(keys, size):
        with db.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti([(key, key) for key in some])
    db.close()


STORES = {
    "forebay": forebay_lists,
    "forebay-arrow": forebay_arrow,
    "forebay-ordered": forebay_ordered,
    "forebay-plyvel": forebay_plyvel,
    "plyvel": plyvel,
    "rocksdict": rocksdict,
    "lmdb": lmdb,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=10_000, help="records a batch")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--dir", default=".", help="where the stores are made, and removed")
    parser.add_argument("--stores", default=",".join(STORES), help=f"some of {', '.join(STORES)}")
    asked = parser.parse_args()
    data = random.Random(1).randbytes(8 * asked.records)
    keys = [data[at : at + 8] for at in range(0, len(data), 8)]
    for name in asked.stores.split(","):
        package = "forebay" if name.startswith("forebay") else name
        try:
            importlib.import_module(package)
        except ImportError as error:
            print(f"{name}: left out ({error})", flush=True)
            continue
        seconds = []
        for _ in range(asked.rounds):
            with tempfile.TemporaryDirectory(dir=asked.dir) as place:
                path = Path(place) / "store"
                run = forebay_arrow(path, keys, asked.batch) if name == "forebay-arrow" else None
                begun = time.perf_counter()
                run() if run else STORES[name](path, keys, asked.batch)
                seconds.append(time.perf_counter() - begun)
        print(f"{name}: {asked.records / statistics.median(seconds) / 1e6:.2f} million records/s", flush=True)


if __name__ == "__main__":
    main()
