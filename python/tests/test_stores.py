"""Tables, batches, scans, snapshots, transactions, and the rest of a database."""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator, MutableMapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import forebay as fb


@pytest.mark.parametrize("layout", ["wb-tree", "wb-tree:ordered", "leveling:t=4"])
def test_a_table_is_a_mapping(db: fb.Database, layout: str) -> None:
    table = db.table("t", layout=layout)
    assert table.name == "t" and table.layout.startswith(layout.split(":")[0])
    assert isinstance(table, fb.OrderedTable) == (layout != "wb-tree")
    assert not table and b"a" not in table and table.get(b"a") is None and table.get(b"a", 7) == 7
    table[b"a"] = b"1"
    table[bytearray(b"b")] = memoryview(b"22")[1:]
    table.put(b"c", b"")
    assert table and table[b"a"] == b"1" and table[b"b"] == b"2" and table[memoryview(b"c")] == b""
    assert sorted(table) == [b"a", b"b", b"c"] == sorted(table.keys())
    assert sorted(table.values()) == [b"", b"1", b"2"]
    assert dict(table.items()) == {b"a": b"1", b"b": b"2", b"c": b""}
    assert list(table.items(reverse=True)) == list(table.items())[::-1]
    assert table.count() == 3
    del table[b"a"]
    table.delete(b"a")
    with pytest.raises(KeyError) as missing:
        table[b"a"]
    assert missing.value.args == (b"a",)
    with pytest.raises(KeyError):
        del table[b"a"]
    assert table.pop(b"b") == b"2" and table.pop(b"b", None) is None
    with pytest.raises(KeyError):
        table.pop(b"b")
    assert table.update({b"x": b"1"}) == 1 and table.update([(b"y", b"2"), (b"z", b"3")]) == 2
    assert table.get_many([b"x", b"nothing", b"z"]) == [b"1", None, b"3"]
    assert table.compare_and_swap(b"x", b"1", b"2") and not table.compare_and_swap(b"x", b"1", b"3")
    assert table.compare_and_swap(b"new", None, b"n") and table.compare_and_swap(b"new", b"n", None)
    assert b"new" not in table and table[b"x"] == b"2"
    assert isinstance(table, MutableMapping) and not hasattr(table, "__len__")
    assert table.setdefault(b"x", b"9") == b"2" and table.setdefault(b"w", memoryview(b"9")) == b"9" == table[b"w"]
    left = dict(table.items())
    key, value = table.popitem()
    assert left.pop(key) == value and dict(table.items()) == left
    assert not isinstance(table, fb.OrderedTable) or key == b"z"
    table.update((b"%d" % at, b"") for at in range(10_000))
    table.clear()
    assert not table and table.count() == 0
    with pytest.raises(KeyError):
        table.popitem()
    assert table.key_bytes_max == 1 << 16 and table.value_bytes_max >= 1 << 28


def test_text_is_no_bytes(db: fb.Database) -> None:
    table = db.table("t")
    for call in (lambda: table["a"], lambda: table.put(b"a", "1"), lambda: table.get_many(["a"])):  # type: ignore[index, arg-type, list-item]
        with pytest.raises(TypeError, match="str is none; encode it"):
            call()
    with pytest.raises(TypeError, match="int is none"):
        table[1] = b""  # type: ignore[index]


def test_many_records_at_once(db: fb.Database, rng: random.Random) -> None:
    table = db.ordered_table("t")
    model = {rng.randbytes(rng.randrange(9)): rng.randbytes(rng.randrange(200)) for _ in range(30_000)}
    assert table.put_many(list(model), model.values()) == len(model)
    keys = rng.sample(sorted(model), 3000)
    assert table.get_many(keys) == [model[key] for key in keys]
    assert table.delete_many(keys[:1000]) == 1000
    for key in keys[:1000]:
        del model[key]
    assert dict(table.items()) == model and table.count() == len(model)
    with pytest.raises(ValueError, match="more keys than values"):
        table.put_many([b"a", b"b"], [b"1"])
    with pytest.raises(ValueError, match="more values than keys"):
        table.put_many([b"a"], [b"1", b"2"])
    with pytest.raises(fb.Invalid, match="key has 70000 bytes"):
        table.put_many([bytes(70_000)], [b""])


def test_columns_of_arrow(db: fb.Database, rng: random.Random) -> None:
    table = db.ordered_table("t")
    keys = pa.array([rng.randrange(-(2**60), 2**60) for _ in range(5000)], pa.int64())
    values = pa.array([rng.randbytes(rng.randrange(30)) for _ in range(5000)], pa.binary())
    assert table.put_many(keys, values) == 5000
    # Slices, and chunks that do not begin together.
    chunked = pa.chunked_array([keys[:10], keys[10:10], keys[10:4000], keys[4000:]])
    parts = pa.chunked_array([values[:3000], values[3000:]])
    db.table("u").put_many(chunked, parts)
    model = dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))
    for source in (table, db.table("u")):
        found = pa.table(source.items())
        assert found.schema.names == ["key", "value"] and found.num_rows == len(model)
        stored = {(key + 2**63).to_bytes(8): value for key, value in model.items()}
        assert dict(zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True)) == stored
    asked = pa.concat_arrays([keys[100:200], pa.array([1, 2], pa.int64())])
    assert pa.array(table.get_many(asked)).to_pylist() == [model.get(key) for key in asked.to_pylist()]
    assert pa.array(table.get_many(pa.chunked_array([asked, asked]))).to_pylist()[102:105] == [
        model[key] for key in asked.to_pylist()[:3]
    ]
    # A null value deletes, in record batches, too.
    rows = pa.table({"id": keys[:2], "text": pa.array(["new", None])})
    assert table.put_arrow(rows, "id", "text") == 2
    assert pa.array(table.get_many(keys[:2])).to_pylist() == [b"new", None]
    assert table.delete_many(keys) == 5000 and not table
    with pytest.raises(fb.Invalid, match="key of row 1 is null"):
        table.put_many(pa.array(["a", None]), pa.array(["1", "2"]))
    with pytest.raises(fb.Invalid, match="there are 1 keys and 2 values"):
        table.put_many(pa.array(["a"]), pa.array(["1", "2"]))
    with pytest.raises(fb.Invalid, match="no column `name`; there are: id, text"):
        table.put_arrow(rows, "name", "text")
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        table.put_arrow([1, 2], "id", "text")  # type: ignore[arg-type]


def test_the_row_of_a_null_key_is_counted_from_the_first(db: fb.Database) -> None:
    """Rows are put some hundred at a time, and were counted from the first of those."""
    table = db.table("t")
    keys = pa.array([None if at == 3259 else b"%d" % at for at in range(5000)], pa.binary())
    values = pa.array([b"v"] * 5000, pa.binary())
    chunks, apart = (pa.chunked_array([column[:3000], column[3000:]]) for column in (keys, values))
    calls: list[Callable[[], object]] = [
        lambda: table.put_many(keys, apart),
        lambda: table.delete_many(pa.chunked_array([keys[:100], keys[100:]])),
        lambda: table.put_arrow(pa.table({"k": chunks, "v": apart}), "k", "v"),
    ]
    for call in calls:
        with pytest.raises(fb.Invalid, match="key of row 3259 is null"):
            call()
    assert not table


def test_a_batch_with_rows_before_a_null_key_is_not_committed(db: fb.Database) -> None:
    """They were committed without the others by whoever went on behind the error."""
    table, batch = db.table("t"), db.batch()
    rows = [pa.record_batch({"k": [key], "v": ["v"]}) for key in ("a", "b")]
    rows.append(pa.record_batch({"k": pa.array([None], pa.string()), "v": ["v"]}))
    with pytest.raises(fb.Invalid, match="key of row 2 is null"):
        batch.put_arrow(table, pa.Table.from_batches(rows), "k", "v")
    with pytest.raises(fb.Invalid, match="is null"):
        batch.commit()
    assert not table


def test_tables_are_read_on_once_their_database_is_closed(place: Path) -> None:
    """Loops over them raised Closed, where lookups did not."""
    with fb.open(place / "db") as db:
        table, ordered = db.table("t"), db.ordered_table("o")
        for each in (table, ordered):
            each.update({b"a": b"1", b"b": b"2"})
    both = [(b"a", b"1"), (b"b", b"2")]
    for each in (table, ordered):
        assert sorted(each.items()) == both and sorted(each) == sorted(each.keys()) == [b"a", b"b"]
        assert sorted(each.values()) == [b"1", b"2"] and pa.table(each.items()).num_rows == 2
    assert list(ordered.range(b"b")) == both[1:] and list(ordered.prefix(b"a")) == both[:1]
    with pytest.raises(fb.Error, match="closed"):
        table[b"a"] = b""


def test_ranges_prefixes_and_ends(db: fb.Database, rng: random.Random) -> None:
    table = db.ordered_table("t")
    model = {bytes(rng.choices(b"ab\xff\x00", k=rng.randrange(6))): b"%d" % at for at in range(900)}
    table.update(model)
    ordered = sorted(model.items())
    for _ in range(200):
        low, high = (rng.choice([None, bytes(rng.choices(b"ab\xff\x00", k=rng.randrange(4)))]) for _ in range(2))
        expected = [
            (key, value) for key, value in ordered if (low is None or key >= low) and (high is None or key < high)
        ]
        assert list(table.range(low, high)) == expected
        assert list(table.range(low, high, reverse=True)) == expected[::-1]
        backward = pa.table(table.range(low, high, reverse=True))
        assert backward["key"].to_pylist() == [key for key, _ in expected[::-1]]
        prefix = low or b""
        begun = [(key, value) for key, value in ordered if key.startswith(prefix)]
        assert list(table.prefix(prefix)) == begun and list(table.prefix(prefix, reverse=True)) == begun[::-1]
        assert pa.table(table.prefix(prefix))["value"].to_pylist() == [value for _, value in begun]
    assert table.first() == ordered[0] and table.last() == ordered[-1]
    assert table.nearest(ordered[5][0], "below") == ordered[4]
    assert table.nearest(ordered[5][0], "at_or_below") == ordered[5] == table.nearest(ordered[5][0], "at_or_above")
    assert table.nearest(ordered[-1][0], "above") is None
    with pytest.raises(fb.Invalid, match="side is `near`"):
        table.nearest(b"", "near")  # type: ignore[arg-type]
    records, size = table.approximate()
    assert records > 0 and size > 0
    table.delete_prefix(b"a")
    table.delete_range(b"b", b"c")
    left = [(key, value) for key, value in ordered if not key.startswith((b"a", b"b"))]
    assert list(table.range()) == left
    table.compact_range(b"a")
    table.compact()
    assert list(table.items()) == left


def test_a_cursor_goes_anywhere(db: fb.Database) -> None:
    table = db.ordered_table("t")
    table.update((bytes([at]), b"%d" % at) for at in range(0, 100, 2))
    cursor = table.cursor()
    assert cursor.entry is None and cursor.next() and cursor.entry == (b"\x00", b"0")
    assert cursor.seek(b"\x05") and cursor.entry == (b"\x06", b"6")
    assert cursor.prev() and cursor.entry == (b"\x04", b"4")
    assert cursor.seek_for_prev(b"\x05") and cursor.entry == (b"\x04", b"4")
    table[b"\x05"] = b"new"
    assert cursor.next() and cursor.entry == (b"\x06", b"6"), "it sees what there was"
    assert cursor.seek_to_last() and cursor.entry == (b"\x62", b"98")
    assert not cursor.next() and cursor.entry is None
    assert cursor.seek_to_first() and not cursor.prev()


def test_each_loop_and_each_stream_begins_anew(db: fb.Database) -> None:
    table = db.ordered_table("t")
    table.update((b"%06d" % at, b"v") for at in range(200_000))
    scan = table.items()
    table[b"0"] = b"later"
    for _ in range(2):
        assert sum(1 for _ in scan) == 200_000
        stream = pa.RecordBatchReader.from_stream(scan)
        sizes = [batch.num_rows for batch in stream]
        assert sum(sizes) == 200_000 and max(sizes) == 65_536
    half, other = iter(scan), iter(scan)
    assert [next(half)[0] for _ in range(3)] == [b"000000", b"000001", b"000002"]
    assert next(other)[0] == b"000000"
    # A stream that is dropped half-read, and one whose consumer fails amid it.
    reader = pa.RecordBatchReader.from_stream(scan)
    reader.read_next_batch()
    del reader
    with pytest.raises(ZeroDivisionError):
        for batch in pa.RecordBatchReader.from_stream(scan):
            batch.num_rows // 0


def test_batches_are_all_or_nothing(db: fb.Database) -> None:
    users, events = db.ordered_table("users"), db.table("events")
    with db.batch(durability="disk") as batch:
        batch.put(users, b"ada", b"1815")
        batch.put(events, b"1", b"login")
        batch.delete(events, b"2")
        assert len(batch) == 3 and batch.encoded_bytes > 20
        assert b"ada" not in users
    assert users[b"ada"] == b"1815" and events[b"1"] == b"login"
    with pytest.raises(RuntimeError, match="stop"), db.batch() as batch:
        batch.put(users, b"eve", b"")
        raise RuntimeError("stop")
    assert b"eve" not in users
    batch = db.batch()
    batch.put_many(users, [b"a", b"b"], [b"1", b"2"])
    batch.put_arrow(users, pa.table({"k": ["c"], "v": ["3"]}), "k", "v")
    batch.delete_many(users, [b"ada"])
    batch.delete_prefix(users, b"x")
    batch.delete_range(users, b"y", b"z")
    assert batch.commit() == db.last_sequence and len(batch) == 0
    assert dict(users.items()) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    batch.put(users, bytes(70_000), b"")
    with pytest.raises(fb.Invalid, match="70000 bytes"):
        batch.commit()
    batch.clear()
    assert batch.commit() >= 0
    with pytest.raises(fb.Invalid, match="hash order"):
        batch.delete_prefix(events, b"")
    with pytest.raises(fb.Invalid, match="durability is `often`"):
        db.batch(durability="often")  # type: ignore[arg-type]


def test_snapshots_and_savepoints_keep_what_there_was(db: fb.Database, place: Path) -> None:
    table = db.ordered_table("t")
    table.update({b"a": b"1", b"b": b"2"})
    with db.snapshot() as then:
        number = db.savepoint("monday")
        assert number == db.last_sequence
        table[b"a"] = b"9"
        assert then.get(table, b"a") == b"1" and then.get(table, b"z", 0) == 0
        assert then.get_many(table, [b"b", b"z"]) == [b"2", None]
        assert pa.array(then.get_many(table, pa.array([b"a"]))).to_pylist() == [b"1"]
        assert list(then.items(table)) == [(b"a", b"1"), (b"b", b"2")]
        assert list(then.range(table, b"b")) == [(b"b", b"2")] == list(then.prefix(table, b"b", reverse=True))
        assert then.count(table) == 2 and then.tables().keys() == {"t"}
        scan = then.items(table)
        db.drop_table("t")
        assert then.get(then.table("t"), b"a") == b"1"
    assert [value for _, value in scan] == [b"1", b"2"], "a scan holds what it needs"
    with pytest.raises(fb.Closed, match="the snapshot is closed"):
        then.get(table, b"a")
    assert [savepoint["name"] for savepoint in db.savepoints()] == ["monday"]
    kept = db.open_savepoint("monday")
    assert kept.get(kept.table("t"), b"b") == b"2"
    db.rollback("monday")
    assert table[b"a"] == b"1"
    db.drop_savepoint("monday")
    with pytest.raises(fb.NotFound):
        db.rollback("monday")
    copied = db.checkpoint(place / "copy")
    assert copied["last_sequence"] == db.last_sequence and copied["files"]
    with fb.open(place / "copy") as copy:
        assert copy.table("t", existing=True)[b"b"] == b"2" and copy.verify()["problems"] == []


def test_transactions(db: fb.Database) -> None:
    accounts = db.ordered_table("accounts")
    accounts.update({b"ada": b"10", b"eve": b"0"})

    def move(tx: fb.Transaction) -> str:
        ada, eve = (int(tx.get(accounts, key)) for key in (b"ada", b"eve"))
        tx.put(accounts, b"ada", b"%d" % (ada - 1))
        tx.put(accounts, b"eve", b"%d" % (eve + 1))
        assert [int(value) for _, value in tx.items(accounts)] == [ada - 1, eve + 1]
        return "moved"

    threads = [threading.Thread(target=lambda: [db.transaction(move) for _ in range(2)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert accounts.get_many([b"ada", b"eve"]) == [b"0", b"10"]

    calls = []

    def contested(tx: fb.Transaction) -> int:
        calls.append(tx.get(accounts, b"ada"))
        if len(calls) < 3:
            accounts[b"ada"] = b"%d" % len(calls)
        tx.put(accounts, b"ada", b"mine")
        return len(calls)

    assert db.transaction(contested, durability="disk") == 3 and calls == [b"0", b"1", b"2"]
    with pytest.raises(fb.Conflict), db.begin() as tx:
        assert list(tx.prefix(accounts, b"a")) == list(tx.range(accounts, None, b"b"))
        accounts[b"ab"] = b"in between"
        tx.put(accounts, b"x", b"")
    with pytest.raises(RuntimeError, match="stop"), db.begin() as tx:
        tx.put(accounts, b"x", b"")
        raise RuntimeError("stop")
    with pytest.raises(fb.Closed):
        tx.get(accounts, b"x")
    with pytest.raises(ZeroDivisionError):
        db.transaction(lambda tx: tx.put(accounts, b"x", b"%d" % (1 // 0)))
    assert b"x" not in accounts
    tx = db.begin()
    tx.put(accounts, b"x", b"")
    assert tx.get_many(accounts, [b"x", b"no"]) == [b"", None]
    tx.rollback()
    assert b"x" not in accounts


def test_the_feed_of_changes(place: Path) -> None:
    with fb.open(place / "db", memory="8MB", keep_changes="8MB") as db:
        table, log = db.ordered_table("t"), db.table("log", merge_rule="append:,")
        table[b"a"] = b"1"
        seen = db.last_sequence
        log.merge(b"l", b"x")
        table.delete(b"a")
        table.delete_range(b"b")
        told = [change for _, changes in db.changes(seen) for change in changes]
        assert [(change.table, change.operation, change.key, change.value) for change in told] == [
            ("log", "merge", b"l", b"x"),
            ("t", "delete", b"a", None),
            ("t", "delete_range", b"b", None),
        ]
        assert told[0].sequence == seen + 1 and "merge" in repr(told[0])
        assert [number for number, _ in db.changes(seen)][-1] == db.last_sequence
        with pytest.raises(fb.Invalid):
            db.changes(db.last_sequence + 1)


def test_expiry_and_merge_rules(db: fb.Database) -> None:
    sessions = db.table("sessions", ttl=timedelta(days=1))
    sessions.put(b"a", b"1")
    sessions.put(b"b", b"2", ttl=0.05)
    found = sessions.get_with_expiry(b"a")
    assert found is not None and found[0] == b"1"
    assert found[1] is not None and abs(found[1] / 1000 - time.time() - 86_400) < 60
    assert sessions.persist(b"a") and sessions.get_with_expiry(b"a") == (b"1", None)
    assert not sessions.expire(b"none", 0)
    with db.batch() as batch:
        batch.put(sessions, b"c", b"3", ttl=timedelta(hours=1))
    deadline = time.monotonic() + 30
    while b"b" in sessions and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sorted(sessions) == [b"a", b"c"]
    words = db.table("words", merge_rule="append:,")
    for word in (b"x", b"y"):
        words.merge(b"k", word)
    assert words[b"k"] == b"x,y"
    sessions.put(b"d", b"4", ttl="1h")
    found = sessions.get_with_expiry(b"d")
    assert found is not None and found[1] is not None and abs(found[1] / 1000 - time.time() - 3600) < 60
    with pytest.raises(fb.Invalid, match="seconds"):
        sessions.put(b"a", b"", ttl=-1)
    with pytest.raises(fb.Invalid, match="a whole number and a unit"):
        sessions.put(b"a", b"", ttl="soon")


def test_a_mistaken_function_is_told_where_it_is_asked_for(db: fb.Database) -> None:
    rows = pa.schema([("device", pa.string())])
    with pytest.raises(fb.Invalid, match="cuont"):
        db.aggregator("wrong", key="device", aggs={"n": "cuont"})
    counts = db.aggregator("counts", key="device", aggs={"n": "count"}, schema=rows)
    assert counts.get("a") is None and pa.table(counts.result()).num_rows == 0


def test_options_and_layouts(db: fb.Database) -> None:
    table = db.table("t", layout="wb-tree", codec="lz4", node_bytes="64K")
    table[b"a"] = b"1"
    assert db.tables() == {"t": "wb-tree"}
    with pytest.raises(fb.Invalid, match="there is no option `colour`"):
        db.table("t", colour="red")  # type: ignore[call-arg]
    with pytest.raises(fb.Invalid, match="option `codec` is `zip`"):
        db.table("t", codec="zip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="option layout is of type"):
        db.table("t", layout=["wb-tree"])  # type: ignore[arg-type]
    with pytest.raises(fb.Invalid):
        db.table("t", codec="none")
    with pytest.raises(fb.NotFound):
        db.table("other", existing=True)
    db.alter("t", codec="none", filter_bits_per_key=8)
    table.set_layout("wb-tree:ordered")
    ordered = db.ordered_table("t")
    assert isinstance(ordered, fb.OrderedTable) and ordered.first() == (b"a", b"1") and table[b"a"] == b"1"
    with pytest.raises(fb.Invalid, match="keeps no order"):
        db.ordered_table("h", layout="wb-tree")
    with pytest.raises(fb.Invalid, match="option `memory` is `much`"):
        fb.open("nowhere", memory="much")


def test_what_a_database_tells(db: fb.Database) -> None:
    table = db.table("t")
    table.update((b"%d" % at, bytes(100)) for at in range(2000))
    db.flush()
    db.wait_until_idle()
    db.sync()
    db.wait_durable(db.last_sequence)
    assert db.durable_sequence == db.last_sequence
    stats = db.stats()
    assert stats["user_records"] == 2000 and stats["tables"][0]["name"] == "t"
    assert isinstance(db.describe(), dict) and db.damage() == []
    assert db.verify()["problems"] == []
    db.set_background_rate("20M")
    db.set_background_rate(0)
    assert repr(table.items()) == "<forebay.Scan of t>"
    with pytest.raises(TypeError):
        hash(db.stats())


def test_one_pool_for_many(place: Path) -> None:
    pool = fb.Pool("16MB", threads=1)
    databases = [fb.open(place / f"{at}", pool=pool) for at in range(8)]
    for at, db in enumerate(databases):
        db.table("t")[b"k"] = b"%d" % at
    stats = pool.stats()
    assert stats["memory_bytes"] == 16 << 20 and len(stats["databases"]) == 8
    assert [db.table("t")[b"k"] for db in databases] == [b"%d" % at for at in range(8)]
    pool.set_background_rate("10M")
    for db in databases:
        db.close()
    with pytest.raises(fb.Invalid):
        fb.open(place / "0", pool=pool, memory="1MB")
    with pytest.raises(fb.Invalid):
        fb.Pool(100)


def test_readers_beside_a_writer(db: fb.Database) -> None:
    table = db.table("t")
    table[b"a"] = b"1"
    with fb.open(db.path, read_only=True) as reader:
        seen = reader.table("t", existing=True)
        assert seen[b"a"] == b"1"
        table[b"a"] = b"2"
        db.sync()
        assert reader.refresh() == db.last_sequence and seen[b"a"] == b"2"
        with pytest.raises(fb.Error):
            seen[b"a"] = b"3"
        assert reader.writer_stats(10)
    with pytest.raises(fb.Busy) as busy:
        fb.open(db.path)
    assert busy.value.path and isinstance(busy.value, RuntimeError)


def test_backups(db: fb.Database, place: Path) -> None:
    table = db.table("t")
    table[b"a"] = b"1"
    backups = fb.Backups(place / "backups")
    first = backups.take(db)
    table[b"a"] = b"2"
    second = backups.take(db)
    assert [backup["number"] for backup in backups.list()] == [first["number"], second["number"]]
    assert backups.newest() == second["number"] and backups.verify(first["number"]) == []
    backups.restore(first["number"], place / "restored")
    with fb.open(place / "restored") as restored:
        assert restored.table("t")[b"a"] == b"1"
    backups.keep(1)
    assert len(backups.list()) == 1


def test_errors_say_what_to_do(place: Path) -> None:
    with pytest.raises(fb.NotFound) as missing:
        fb.open(place / "none", create_if_missing=False)
    assert isinstance(missing.value, LookupError) and "none" in str(missing.value)
    with fb.open(place / "db", memory="1MB") as db:
        table = db.table("t")
        table.update((b"%05d" % at, bytes(50)) for at in range(20_000))
        db.flush()
    db.close()
    with pytest.raises(fb.Closed):
        db.table("t")
    with pytest.raises(ValueError):
        db.stats()
    with pytest.raises(fb.Error):
        table[b"a"] = b""
    assert "closed" in repr(db)
    lists = max(place.glob("db/*.list"), key=lambda file: file.stat().st_size, default=None)
    assert lists is not None, sorted(place.glob("db/*"))
    damaged = bytearray(lists.read_bytes())
    damaged[len(damaged) // 3] ^= 0xFF
    lists.write_bytes(damaged)
    with fb.open(place / "db") as db:
        assert len(db.verify()["problems"]) > 0
        with pytest.raises(fb.Corruption) as damage:
            list(db.table("t").items())
        assert damage.value.path == str(lists) and damage.value.offset is not None
    report = fb.rescue(place / "db", place / "rescued")
    assert isinstance(report, dict)
    fb.destroy(place / "rescued")
    assert not (place / "rescued").exists()
    with pytest.raises(OSError) as refused:
        fb.open(place / ("long" * 100))
    assert isinstance(refused.value, fb.IoError) and refused.value.path


def test_a_transaction_that_was_ended_in_its_block_stays_as_it_is(db: fb.Database) -> None:
    table = db.table("t")
    with db.begin() as transaction:
        transaction.put(table, b"a", b"1")
        transaction.commit()
    with db.begin() as transaction:
        transaction.put(table, b"b", b"1")
        transaction.rollback()
    with pytest.raises(fb.Closed):
        transaction.commit()
    assert dict(table.items()) == {b"a": b"1"}


def test_what_is_given_up_while_it_is_filled_is_not_written(db: fb.Database) -> None:
    table = db.table("t")
    transaction = db.begin()

    def keys() -> Iterator[bytes]:
        yield b"a"
        transaction.rollback()
        yield b"b"

    transaction.put_many(table, keys(), iter([b"1", b"2"]))
    with pytest.raises(fb.Closed):
        transaction.commit()
    assert dict(table.items()) == {}


def test_all_that_is_bytes_is_taken(db: fb.Database) -> None:
    table = db.table("t")
    for number, key in enumerate([
        bytearray(b"a"), memoryview(b"b"), array("b", b"c"), memoryview(b"d").cast("c"), pa.py_buffer(b"e"),
    ]):
        table[key] = b"%d" % number
    assert dict(table.items()) == {b"a": b"0", b"b": b"1", b"c": b"2", b"d": b"3", b"e": b"4"}
    released = memoryview(b"f")
    released.release()
    with pytest.raises(ValueError, match="released"):
        table[released] = b""
    for wrong in ("text", 1, array("i", [1])):
        with pytest.raises(TypeError, match="bytes-like"):
            table[wrong] = b""  # type: ignore[index]


def test_a_transaction_reads_no_further_than_its_loop(db: fb.Database) -> None:
    queue = db.ordered_table("queue")
    queue.put_many([b"%d" % at for at in range(9)], [b"v"] * 9)
    for reverse in (False, True):
        with db.begin() as transaction:
            key, _ = next(transaction.items(queue, reverse=reverse))
            transaction.delete(queue, key)
            queue[b"4"] = b"of another"
    assert list(queue.keys()) == [b"%d" % at for at in range(1, 8)]


def test_scans_are_taken_for_keys_and_values(db: fb.Database) -> None:
    table, copy = db.table("t"), db.table("copy")
    table.put_many([b"a", b"b"], [b"1", b"2"])
    copy.put_many(table.keys(), table.values())
    assert dict(copy.items()) == {b"a": b"1", b"b": b"2"}
    assert copy.get_many(table.keys()) == list(table.values())
    copy.delete_many(table.keys())
    assert not copy
