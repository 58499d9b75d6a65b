"""plyvel's face: what its user guide shows, what its reference promises, and iterators against a model."""

from __future__ import annotations

import bisect
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from forebay import plyvel


@pytest.fixture
def level(place: Path) -> Iterator[plyvel.DB]:
    with plyvel.DB(str(place / "level"), create_if_missing=True, error_if_exists=True) as opened:
        yield opened


def keys_of(level: Any, **options: Any) -> list[Any]:
    return list(level.iterator(include_value=False, **options))


def test_the_guide(level: plyvel.DB) -> None:
    level.put(b"key", b"value")
    level.put(b"another-key", b"another-value", sync=True)
    assert level.get(b"key") == b"value" and level.get(b"yet-another-key") is None
    assert level.get(b"yet-another-key", b"default-value") == b"default-value"
    level.delete(b"key")
    level.delete(b"another-key", sync=True)
    assert keys_of(level) == []

    batch = level.write_batch()
    for at in range(1000):
        batch.put(str(at).encode(), str(at).encode() * 10)
    assert level.get(b"7") is None
    batch.write()
    assert level.get(b"7") == b"7" * 10
    with pytest.raises(ValueError, match="went wrong"), level.write_batch() as batch:
        batch.put(b"key-1", b"value-1")
        raise ValueError("Something went wrong!")
    with pytest.raises(ValueError, match="went wrong"), level.write_batch(transaction=True) as batch:
        batch.put(b"key-3", b"value-3")
        raise ValueError("Something went wrong!")
    assert level.get(b"key-1") == b"value-1" and level.get(b"key-3") is None

    level.put(b"key", b"first-value")
    snapshot = level.snapshot()
    level.put(b"key", b"second-value")
    assert snapshot.get(b"key") == b"first-value" and level.get(b"key") == b"second-value"
    snapshot.close()
    with level.snapshot() as snapshot:
        assert snapshot.get(b"key") == b"second-value"


def test_the_guide_on_iterators(level: plyvel.DB) -> None:
    for at in (1, 5, 3, 2, 4):
        level.put(b"key-%d" % at, b"value-%d" % at)
    assert list(level) == [(b"key-%d" % at, b"value-%d" % at) for at in range(1, 6)]
    assert keys_of(level, start=b"key-2", stop=b"key-4") == [b"key-2", b"key-3"]
    assert keys_of(level, start=b"key-3") == [b"key-3", b"key-4", b"key-5"]
    inclusive = keys_of(level, start=b"key-2", include_start=False, stop=b"key-5", include_stop=True)
    assert inclusive == [b"key-3", b"key-4", b"key-5"]
    assert len(keys_of(level, prefix=b"ke")) == 5 and keys_of(level, prefix=b"key-4") == [b"key-4"]
    assert list(level.iterator(start=b"key-4", include_key=False)) == [b"value-4", b"value-5"]
    assert list(level.iterator(start=b"key-4", include_key=False, include_value=False)) == [None, None]
    assert keys_of(level, start=b"key-2", stop=b"key-4", reverse=True) == [b"key-3", b"key-2"]

    walk = level.iterator(include_value=False)
    assert [next(walk), next(walk), next(walk), walk.prev(), next(walk)] == [
        b"key-1", b"key-2", b"key-3", b"key-3", b"key-3",
    ]  # fmt: skip
    assert [next(walk), next(walk)] == [b"key-4", b"key-5"]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(walk)
    assert walk.prev() == b"key-5"
    walk.seek(b"key-3")
    assert next(walk) == b"key-3"
    walk.seek_to_start()
    assert next(walk) == b"key-1"
    with level.iterator() as walk:
        next(walk)
    for call in (lambda: next(walk), walk.prev, walk.seek_to_start, walk.seek_to_stop, lambda: walk.seek(b"")):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    with pytest.raises(TypeError, match="either a prefix"):
        level.iterator(prefix=b"a", start=b"b")


def test_the_guide_on_prefixes(level: plyvel.DB) -> None:
    for prefix in (b"a", b"b", b"\xff", b"\xff\xff"):
        for at in range(20):
            level.put(prefix + b"%02d" % at, prefix)
    of_a, of_end = level.prefixed_db(b"a"), level.prefixed_db(b"\xff")
    assert of_a.db is level and of_a.prefix == b"a"
    assert of_a.get(b"07") == b"a" and of_a.get(b"77", b"x") == b"x"
    of_a.put(b"07", b"new")
    assert level.get(b"a07") == b"new"
    of_a.delete(b"07")
    assert level.get(b"a07") is None and len(list(of_a)) == 19
    assert len(list(of_end)) == 40 and keys_of(of_end, stop=b"01", include_stop=True) == [b"00", b"01"]
    assert keys_of(of_a, prefix=b"1", reverse=True) == [b"%02d" % at for at in range(19, 9, -1)]
    walk = of_a.iterator(include_value=False)
    walk.seek(b"15")
    assert next(walk) == b"15"
    walk.seek(b"99")
    assert walk.prev() == b"19"
    with pytest.raises(StopIteration):
        level.prefixed_db(b"b").iterator().prev()
    nested = of_a.prefixed_db(b"1")
    assert nested.prefix == b"a1" and keys_of(nested) == [b"%d" % at for at in range(10)]
    with of_a.snapshot() as snapshot, of_a.write_batch() as batch:
        batch.put(b"00", b"changed")
        batch.delete(b"01")
        batch.write()
        assert snapshot.get(b"00") == b"a" and of_a.get(b"00") == b"changed" and of_a.get(b"01") is None
        assert keys_of(snapshot, start=b"18") == [b"18", b"19"] and next(iter(snapshot)) == (b"00", b"a")
    assert level.get(b"b00") == b"b"


def test_batches(level: plyvel.DB) -> None:
    batch, other = level.write_batch(), level.write_batch(sync=True)
    empty = batch.approximate_size()
    batch.put(b"a", bytearray(b"1"))
    batch.put(b"b", memoryview(b"2"))
    batch.delete(b"a")
    assert batch.approximate_size() > empty
    other.put(b"b", b"3")
    other.put(b"c", b"4")
    batch.append(other)
    batch.write()
    assert list(level) == [(b"b", b"3"), (b"c", b"4")]
    level.delete(b"c")
    batch.write()
    assert level.get(b"c") == b"4", "a batch keeps its writes"
    batch.clear()
    level.delete(b"c")
    batch.write()
    assert level.get(b"c") is None
    for wrong in ((b"k", "text"), ("text", b"v"), (b"k", 12), (None, b"v")):
        with pytest.raises(TypeError):
            batch.put(*wrong)
        with pytest.raises(TypeError):
            level.put(*wrong)
    with pytest.raises(TypeError):
        level.get(b"k", b"default", True)  # type: ignore[call-arg]
    with pytest.raises(plyvel.Error, match="65536"), level.write_batch(transaction=True) as batch:
        batch.put(bytes(70_000), b"")


def test_raw_iterators(level: plyvel.DB) -> None:
    empty = level.raw_iterator()
    empty.seek_to_first()
    assert not empty.valid()
    for call in (empty.key, empty.value, empty.item, empty.next, empty.prev):
        with pytest.raises(plyvel.IteratorInvalidError):
            call()
    for at in range(100):
        level.put(b"%03d" % at, b"v%d" % at)
    raw = level.raw_iterator()
    assert not raw.valid()
    raw.seek_to_first()
    assert raw.item() == (b"000", b"v0") == (raw.key(), raw.value())
    raw.next()
    raw.next()
    raw.prev()
    assert raw.key() == b"001"
    raw.seek(b"006a")
    assert raw.key() == b"007"
    raw.seek_to_last()
    assert raw.key() == b"099"
    raw.next()
    assert not raw.valid()
    with level.snapshot() as snapshot:
        level.put(b"999", b"")
        with snapshot.raw_iterator() as raw:
            raw.seek_to_last()
            assert raw.key() == b"099"
        with pytest.raises(RuntimeError, match="closed"):
            raw.valid()


def test_closing(place: Path) -> None:
    level = plyvel.DB(str(place / "level"), create_if_missing=True, lru_cache_size=1 << 20)
    level.put(b"k", b"v")
    batch, snapshot, walk, raw = level.write_batch(), level.snapshot(), level.iterator(), level.raw_iterator()
    walk_of_snapshot = snapshot.iterator()
    assert next(walk) == (b"k", b"v") and not level.closed
    level.close()
    level.close()
    assert level.closed
    for call in (
        lambda: level.get(b"k"), lambda: level.put(b"k", b""), lambda: level.delete(b"k"), level.snapshot, level.iterator,
        level.write_batch, lambda: batch.put(b"k", b""), batch.write, lambda: snapshot.get(b"k"), lambda: next(walk),
        lambda: next(walk_of_snapshot), walk.prev, raw.valid, level.raw_iterator, level.compact_range,
        lambda: level.get_property(b"leveldb.stats"), lambda: level.prefixed_db(b"a").get(b"k"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="closed"):
            call()
    snapshot.release()


def test_opening(place: Path) -> None:
    path = str(place / "level")
    with pytest.raises(plyvel.Error):
        plyvel.DB(path)
    many = {
        "paranoid_checks": True, "write_buffer_size": 1 << 20, "max_open_files": 5, "lru_cache_size": 1 << 20,
        "block_size": 2048, "block_restart_interval": 32, "max_file_size": 1 << 21, "bloom_filter_bits": 10,
    }  # fmt: skip
    with plyvel.DB(path, create_if_missing=True, compression=None, **many) as level:  # type: ignore[arg-type]
        assert level.name == path and level.forebay.stats()["memory"]["limit"] == 16 << 20
        assert level.forebay.table("leveldb").describe()["codec"] == "none"
        with pytest.raises(AttributeError):
            level.name = "other"  # type: ignore[misc]
        with pytest.raises(plyvel.Error) as busy:
            plyvel.DB(path)
        assert isinstance(busy.value, fb.Busy)
    with pytest.raises(plyvel.Error, match="error_if_exists"):
        plyvel.DB(path, error_if_exists=True)
    with plyvel.DB(Path(path), memory="32MB") as level:
        assert level.forebay.stats()["memory"]["limit"] == 32 << 20 and level.name == path
    for wrong in ({"write_buffer_size": "x"}, {"lru_cache_size": "x"}, {"block_size": 1.5}, {"max_open_files": "5"}):
        with pytest.raises(TypeError):
            plyvel.DB(path, **wrong)
    for name in (123, b"bytes"):
        with pytest.raises(TypeError):
            plyvel.DB(name)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="compression"):
        plyvel.DB(path, compression="invalid")
    with pytest.raises(ValueError, match="belong together"):
        plyvel.DB(path, comparator_name=b"alone")
    with pytest.raises(TypeError):
        plyvel.DB(path, comparator=b"no callable", comparator_name=b"name")
    with pytest.raises(ValueError, match="order of their bytes"):
        plyvel.DB(path, comparator=lambda a, b: 0, comparator_name=b"name")


def test_properties_sizes_and_upkeep(place: Path) -> None:
    path = str(place / "level")
    with plyvel.DB(path, create_if_missing=True, write_buffer_size=1 << 16) as level:
        with level.write_batch() as batch:
            for at in range(20_000):
                batch.put(b"%06d" % at, bytes(50))
        level.forebay.flush()
        for name in (b"leveldb.stats", b"leveldb.sstables", b"leveldb.approximate-memory-usage"):
            assert isinstance(level.get_property(name), bytes)
        levels = [int(level.get_property(b"leveldb.num-files-at-level%d" % at) or b"-1") for at in range(7)]
        assert sum(levels) > 0 and min(levels) == 0
        assert level.get_property(b"does-not-exist") is None
        with pytest.raises(TypeError):
            level.get_property(42)  # type: ignore[arg-type]
        half = level.approximate_size(b"000000", b"010000")
        assert level.approximate_sizes((b"000000", b"010000"), (b"5", b"6")) == [half, 0] and half > 100_000
        assert level.approximate_sizes() == []
        with pytest.raises(TypeError):
            level.approximate_size(1, 2)  # type: ignore[arg-type]
        level.compact_range()
        level.compact_range(start=b"000100", stop=b"000200")
        assert level.get(b"000150") == bytes(50)
        for absent in (level, level.snapshot(), level.prefixed_db(b"0"), level.iterator()):
            with pytest.raises(TypeError, match="__contains__ is not supported"):
                b"000150" in absent
        assert "plyvel.DB" in repr(level) and "b'0'" in repr(level.prefixed_db(b"0"))
    plyvel.repair_db(path)
    damaged = max(Path(path).glob("*.list"), key=lambda file: file.stat().st_size)
    bytes_ = bytearray(damaged.read_bytes())
    bytes_[len(bytes_) // 3] ^= 0xFF
    damaged.write_bytes(bytes_)
    with pytest.raises(plyvel.CorruptionError, match="rescue") as told:
        plyvel.repair_db(path)
    assert told.value.path == path
    plyvel.destroy_db(path)
    plyvel.destroy_db(path)
    assert not Path(path).exists()
    with pytest.raises(plyvel.IOError) as refused:
        plyvel.DB("x" * 600, create_if_missing=True)
    assert isinstance(refused.value, OSError)


class Model:
    """An iterator as its documentation says: it stands between two of the keys in its range."""

    def __init__(self, keys: list[bytes], low: bytes, high: bytes | None, reverse: bool) -> None:
        self.keys = [key for key in keys if key >= low and (high is None or key < high)]
        self.reverse = reverse
        self.place = len(self.keys) if reverse else 0

    def step(self, ahead: bool) -> bytes | None:
        up = ahead != self.reverse
        if up and self.place < len(self.keys):
            self.place += 1
            return self.keys[self.place - 1]
        if not up and self.place > 0:
            self.place -= 1
            return self.keys[self.place]
        return None


def test_iterators_against_a_model(level: plyvel.DB, rng: random.Random) -> None:
    def some() -> bytes:
        return bytes(rng.choice(b"\x00ab\xff") for _ in range(rng.randrange(4)))

    for _ in range(60):
        held = {some(): b"" for _ in range(rng.randrange(25))}
        with level.write_batch() as batch:
            for key in keys_of(level):
                batch.delete(key)
            for key in held:
                batch.put(key, key)
        keys = sorted(held)
        for _ in range(10):
            within = some()[: rng.randrange(2)]
            opened: Any = level.prefixed_db(within) if within else level
            inside = [key[len(within) :] for key in keys if key.startswith(within)]
            options: dict[str, Any] = {"reverse": rng.random() < 0.5}
            low, high = b"", None
            if rng.random() < 0.3:
                low = options["prefix"] = some()
                inside = [key for key in inside if key.startswith(low)]
            else:
                if rng.random() < 0.6:
                    options |= {"start": some(), "include_start": rng.random() < 0.5}
                    low = options["start"] + (b"" if options["include_start"] else b"\0")
                if rng.random() < 0.6:
                    options |= {"stop": some(), "include_stop": rng.random() < 0.5}
                    high = options["stop"] + (b"\0" if options["include_stop"] else b"")
            model, walk = Model(inside, low, high, options["reverse"]), opened.iterator(include_value=False, **options)
            for _ in range(rng.randrange(30)):
                act = rng.randrange(8)
                if act < 6:
                    ahead = act < 4
                    try:
                        got = next(walk) if ahead else walk.prev()
                    except StopIteration:
                        got = None
                    assert got == model.step(ahead), (keys, options)
                elif act == 6:
                    target = some()
                    walk.seek(target)
                    model.place = bisect.bisect_left(model.keys, target)
                else:
                    at_start = rng.random() < 0.5
                    (walk.seek_to_start if at_start else walk.seek_to_stop)()
                    model.place = 0 if at_start else len(model.keys)


def test_threads_share_a_database(level: plyvel.DB) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for at in range(200):
                level.put(b"%d-%d" % (number, at), b"v")
            assert len(keys_of(level, prefix=b"%d-" % number)) == 200
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(list(level)) == 1000


def test_it_needs_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import forebay.plyvel; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names); print(sorted(new))"
    )
    told = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "['forebay']\n"
