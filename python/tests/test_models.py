"""Histories drawn by Hypothesis, held against dictionaries."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import forebay as fb

KEYS = st.binary(max_size=3) | st.sampled_from([b"\xff" * 9, b"a" * 40])
VALUES = st.binary(max_size=20) | st.sampled_from([bytes(5000)])
LAYOUTS = st.sampled_from(["wb-tree", "wb-tree:ordered", "leveling:t=4", "tiering:t=4"])


class Stores(RuleBasedStateMachine):
    """A database of two tables, closed and opened amid its history."""

    @initialize(layout=LAYOUTS)
    def begin(self, layout: str) -> None:
        shm = Path("/dev/shm")
        self.place = Path(tempfile.mkdtemp(prefix="forebay-model-", dir=shm if shm.is_dir() else None))
        self.layout = layout
        self.model: dict[str, dict[bytes, bytes]] = {"t": {}, "u": {}}
        self.kept: dict[str, dict[str, dict[bytes, bytes]]] = {}
        self.snapshots: list[tuple[fb.Snapshot, dict[bytes, bytes]]] = []
        self.enter()

    def enter(self) -> None:
        self.db = fb.open(self.place / "db", memory="1MB")
        self.table = self.db.table("t", layout=self.layout)
        self.other = self.db.ordered_table("u")

    @property
    def t(self) -> dict[bytes, bytes]:
        return self.model["t"]

    @property
    def u(self) -> dict[bytes, bytes]:
        return self.model["u"]

    @rule(key=KEYS, value=VALUES)
    def put(self, key: bytes, value: bytes) -> None:
        self.table[key] = value
        self.t[key] = value

    @rule(key=KEYS)
    def delete(self, key: bytes) -> None:
        assert self.table.pop(key, None) == self.t.pop(key, None)

    @rule(pairs=st.dictionaries(KEYS, VALUES, max_size=30))
    def put_many(self, pairs: dict[bytes, bytes]) -> None:
        self.other.put_many(pa.array(pairs.keys(), pa.binary()), pa.array(pairs.values(), pa.large_binary()))
        self.u.update(pairs)

    @rule(keys=st.lists(KEYS, max_size=10))
    def delete_many(self, keys: list[bytes]) -> None:
        self.other.delete_many(keys)
        for key in keys:
            self.u.pop(key, None)

    @rule(low=KEYS, high=KEYS)
    def delete_range(self, low: bytes, high: bytes) -> None:
        self.other.delete_range(low, high)
        for key in [key for key in self.u if low <= key < high]:
            del self.u[key]

    @rule(key=KEYS, value=VALUES, stop=st.booleans())
    def batch(self, key: bytes, value: bytes, stop: bool) -> None:
        try:
            with self.db.batch() as batch:
                batch.put(self.table, key, value)
                batch.delete(self.other, key)
                if stop:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            return
        self.t[key] = value
        self.u.pop(key, None)

    @rule(key=KEYS)
    def transaction(self, key: bytes) -> None:
        def swap(tx: fb.Transaction) -> None:
            one, other = tx.get(self.table, key), tx.get(self.other, key)
            for table, value in ((self.table, other), (self.other, one)):
                if value is None:
                    tx.delete(table, key)
                else:
                    tx.put(table, key, value)

        self.db.transaction(swap)
        one, other = self.t.pop(key, None), self.u.pop(key, None)
        if other is not None:
            self.t[key] = other
        if one is not None:
            self.u[key] = one

    @rule(keys=st.lists(KEYS, max_size=8))
    def look_up(self, keys: list[bytes]) -> None:
        assert self.table.get_many(keys) == [self.t.get(key) for key in keys]
        column = pa.array(self.other.get_many(pa.array(keys, pa.binary())))
        assert column.to_pylist() == [self.u.get(key) for key in keys]

    @rule(low=KEYS, high=st.none() | KEYS, reverse=st.booleans())
    def scan(self, low: bytes, high: bytes | None, reverse: bool) -> None:
        found = [entry for entry in sorted(self.u.items()) if low <= entry[0] and (high is None or entry[0] < high)]
        expected = found[::-1] if reverse else found
        scan = self.other.range(low, high, reverse=reverse)
        assert list(scan) == expected
        assert pa.table(scan)["key"].to_pylist() == [key for key, _ in expected]

    @rule()
    def snapshot(self) -> None:
        self.snapshots.append((self.db.snapshot(), dict(self.t)))
        if len(self.snapshots) > 3:
            self.snapshots.pop(0)[0].close()

    @precondition(lambda self: self.snapshots)
    @rule()
    def look_back(self) -> None:
        snapshot, then = self.snapshots[-1]
        assert dict(snapshot.items(self.table)) == then

    @rule(name=st.sampled_from(["a", "b"]))
    def savepoint(self, name: str) -> None:
        if name in self.kept:
            self.db.rollback(name)
            self.model = {table: dict(entries) for table, entries in self.kept.pop(name).items()}
            self.db.drop_savepoint(name)
        else:
            self.db.savepoint(name)
            self.kept[name] = {table: dict(entries) for table, entries in self.model.items()}

    @rule()
    def flush(self) -> None:
        self.db.flush()

    @rule()
    def reopen(self) -> None:
        self.snapshots.clear()
        self.db.close()
        self.enter()

    @invariant()
    def all_is_there(self) -> None:
        if hasattr(self, "table"):
            assert dict(self.table.items()) == self.t
            assert list(self.other.items()) == sorted(self.u.items())

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.snapshots.clear()
            self.db.close()
            shutil.rmtree(self.place)


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
