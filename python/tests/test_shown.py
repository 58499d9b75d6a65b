"""What people see: text, HTML, bars, and plots over time."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import forebay as fb
from forebay import _forebay, _shown

BAD = "<script>&\"'"


def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds; a minute at most."""
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def pictures(html: str) -> list[xml.Element]:
    """The pictures of an HTML text, all of which is well-formed."""
    return list(xml.fromstring(html.replace("xmlns=", "x=")).iter("svg"))


def test_sizes_are_for_people() -> None:
    shown = [_shown.size(count) for count in (0, 1023, 1024, 1536, 5 << 20, 3 << 40)]
    assert shown == ["0 B", "1,023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3,072.0 GiB"]


@pytest.mark.parametrize("layout", ["wb-tree", "wb-tree:ordered", "leveling:t=4", "tiering:t=4"])
def test_a_table_shows_its_tree(place: Path, layout: str) -> None:
    with fb.open(place / BAD, memory="1MB", write_buffer="64K") as db:
        table = db.table(BAD, layout=layout, node_bytes="64K")
        assert repr(table).startswith(f"<forebay.{type(table).__name__} {BAD}: {layout.split(':')[0]}")
        table.put_many((b"%07d" % at for at in range(100_000)), (bytes(20) for _ in range(100_000)))
        db.flush()
        db.wait_until_idle()
        before = db.stats()
        html = table._repr_html_()
        assert html is not None and "script>" not in html and "&lt;script&gt;" in html
        (picture,) = pictures(html)
        described = table.describe()
        assert described == db.describe()["tables"][0] and described["name"] == BAD == table.stats()["name"]
        assert len(list(picture.iter("text"))) == len(described["levels"])
        cells = [cell for cell in picture.iter("rect")]
        counted = [re.match(r"([\d,]+) nodes?, ([\d,]+) records?", str(cell.findtext("title"))) for cell in cells]
        numbers = [[int(text.replace(",", "")) for text in found.groups()] for found in counted if found]
        assert sum(nodes for nodes, _ in numbers) == len(described["nodes"])
        assert sum(records for _, records in numbers) == sum(level["records"] for level in described["levels"])
        assert all(0 <= float(cell.attrib["x"]) <= 480 for cell in cells)
        whole = db._repr_html_()
        assert whole is not None and "script>" not in whole and len(pictures(whole)) == 1
        assert "1 table," in repr(db) and "of 1.0 MiB of memory" in repr(db)
        assert db.stats()["device_reads"] == before["device_reads"], "to look costs no read"
    assert repr(db) == f"<forebay.Database {place / BAD}: the database is closed>" and db._repr_html_() is None
    assert repr(table).endswith(": the database is closed>") and table._repr_html_() is None


def test_a_picture_stays_small(db: fb.Database) -> None:
    nodes = [{"level": 1, "low": f"{at:08x}", "bytes": at, "records": 1} for at in range(5000)]
    level = {"level": 1, "nodes": 5000, "lists": 5000, "bytes": 5000, "records": 5000}
    picture = xml.fromstring(_shown.tree({"nodes": nodes, "levels": [level]}))
    assert len(list(picture)) < 200
    told = [str(cell.findtext("{http://www.w3.org/2000/svg}title")) for cell in list(picture)[:-1]]
    assert sum(int(text.split()[0]) for text in told) == 5000 == sum(int(text.split()[2]) for text in told)
    for at in range(30):
        db.table(f"t{at}")
    assert "and 10 tables more" in (db._repr_html_() or "")
    db.drop_table("t0")
    for at in range(1, 12):
        db.drop_table(f"t{at}")
    assert "more" not in (db._repr_html_() or "")


def test_a_dropped_table_is_shown(db: fb.Database) -> None:
    table = db.table("t")
    db.drop_table("t")
    assert repr(table) == "<forebay.Table t: not found: table `t` was dropped>" or "dropped" in repr(table)
    assert table._repr_html_() is None
    with pytest.raises(fb.NotFound):
        table.stats()


def test_aggregators_are_shown(db: fb.Database) -> None:
    rows = pa.table({BAD: [1, 2]})
    memory = fb.Aggregator(key=BAD, aggs={"n": fb.count()})
    stored = db.aggregator(BAD, key=BAD, aggs={"n": fb.count()})
    for groups in (memory, stored):
        assert groups._repr_html_() is None and ": count" in repr(groups)
        groups.update(rows)
        html = groups._repr_html_()
        assert html is not None and "script>" not in html and "<th>n</th>" in html
        assert pictures(html) == []
    memory.close()
    assert memory._repr_html_() is None and repr(memory).endswith(": count, the aggregator is closed>")


def test_what_was_opened_before_a_fork_is_shown(place: Path) -> None:
    program = """
        import os, sys
        import pyarrow as pa
        import forebay as fb
        db = fb.open(sys.argv[1] + "/db")
        table = db.table("t")
        groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
        groups.update(pa.table({"k": [1]}))
        held = [db, table, groups, db.aggregator("g", key="k", aggs={"n": fb.count()}), table.items(), groups.result()]
        if os.fork() == 0:
            for thing in held:
                print(repr(thing), getattr(thing, "_repr_html_", lambda: None)(), flush=True)
            os._exit(0)
        os.wait()
        """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(place)], capture_output=True, text=True, check=True
    )
    lines = told.stdout.splitlines()
    assert len(lines) == 6 and all("before a fork" in line and line.endswith(" None") for line in lines), told


class Seen:
    """In place of tqdm: what bars are told."""

    all: list[Seen] = []

    def __init__(self, *, desc: str, unit: str, initial: int, **_: object) -> None:
        self.desc, self.unit, self.n, self.total = desc, unit, initial, None
        self.shown: list[tuple[int, int | None]] = []
        self.is_closed = False
        Seen.all.append(self)

    def refresh(self) -> None:
        self.shown.append((self.n, self.total))

    def close(self) -> None:
        self.is_closed = True


def slowly(batches: int, rows: int) -> pa.RecordBatchReader:
    schema = pa.schema([("k", pa.int64()), ("v", pa.binary())])

    def made() -> Iterator[pa.RecordBatch]:
        for at in range(batches):
            time.sleep(0.02)
            keys = pa.array(range(at * rows, (at + 1) * rows), pa.int64())
            yield pa.record_batch([keys, pa.array([b"v"] * rows)], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, made())


def test_bars_of_long_calls(db: fb.Database, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay._progress._tqdm", lambda: Seen)
    Seen.all.clear()
    table = db.table("t")
    memory = fb.Aggregator(key="k", aggs={"n": fb.count()})
    stored = db.aggregator("g", key="k", aggs={"n": fb.count()})

    def slow(count: int) -> Iterator[bytes]:
        for at in range(count):
            if at % 256 == 0:
                time.sleep(0.01)
            yield b"%d" % at

    with fb.progress(every=0.01):
        table.put_many(slow(3000), [b"v"] * 3000)
        until(lambda: [bar.is_closed for bar in Seen.all] == [True])
        table.put_arrow(slowly(8, 100), "k", "v")
        memory.update(slowly(8, 100))
        stored.update(slowly(8, 100))
        with pytest.raises(KeyboardInterrupt):
            table.update((key, value) for key, value in interrupted())
        db.verify()
        table.compact()
        fb.Backups(place / "backups").take(db)
    assert _forebay._running() == [] and all(bar.is_closed for bar in Seen.all)
    seen = {bar.desc: bar for bar in Seen.all}
    assert seen["put"].unit == "record" and seen["rows"].unit == "row"
    counts = [count for count, _ in seen["rows"].shown]
    assert counts == sorted(counts) and len(set(counts)) > 1 and max(counts) <= 800


def interrupted() -> Iterator[tuple[bytes, bytes]]:
    for at in range(10):
        time.sleep(0.01)
        yield b"%d" % at, b"v"
    raise KeyboardInterrupt


def test_what_a_call_counts(db: fb.Database, place: Path) -> None:
    """Seen from inside it: a producer looks how far the call is that asks it."""
    table, seen = db.table("t"), []

    def told(count: int) -> Iterator[bytes]:
        for at in range(count):
            seen.append(_forebay._running())
            yield b"%d" % at

    table.put_many(told(1000), [b"v"] * 1000)
    ((_, what, unit, done, whole),) = seen[-1]
    assert (what, unit, done, whole) == ("put", "record", 768, 0)
    table.update((key, b"") for key in told(300))
    assert seen[-1][0][3] == 256 and seen[-1][0][0] > seen[0][0][0]
    schema = pa.schema([("k", pa.int64())])
    batches = (pa.record_batch([pa.array(range(10), pa.int64())], schema=schema) for _ in told(3))
    fb.Aggregator(key="k", aggs={"n": fb.count()}, threads=1).update(pa.RecordBatchReader.from_batches(schema, batches))
    assert [running[0][1] for running in seen[-3:]] == ["rows"] * 3
    assert _forebay._running() == []
    over = threading.Event()
    calls: set[tuple[str, str, bool]] = set()

    def look() -> None:
        while not over.is_set():
            calls.update((what, unit, done <= whole or whole == 0) for _, what, unit, done, whole in _forebay._running())

    looker = threading.Thread(target=look)
    looker.start()
    keys = pa.array([b"%d" % at for at in range(100_000)])
    wanted = {("put", "record", True), ("verify", "B", True), ("compact", "B", True), ("backup", "B", True)}
    for _ in range(50):
        table.put_many(keys, keys)
        table.compact()
        db.verify()
        fb.Backups(place / "backups").take(db)
        if wanted <= calls:
            break
    over.set()
    looker.join()
    assert wanted <= calls
    assert all(fits for _, _, fits in calls)


def test_a_line_of_text_where_there_is_no_tqdm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
    with fb.progress(every=0.01):
        groups.update(slowly(4, 10))
    assert capsys.readouterr().err == "", "nobody sees it"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with fb.progress(every=0.01) as shown:
        groups.update(slowly(4, 10))
    told = capsys.readouterr().err
    assert told.startswith("\rrows: ") and "rows" in told and told.endswith("\n")
    with pytest.raises(RuntimeError, match="entered before"):
        shown.__enter__()
    with pytest.raises(ValueError, match="above 0"):
        fb.progress(every=0)


def test_samples_over_time(place: Path) -> None:
    db = fb.open(place / "db", memory="8MB")
    table = db.table("t")
    with pytest.raises(fb.Invalid, match="call watch"):
        db.plot()
    with db.watch(every=0.01, keep=50) as watch:
        for at in range(20):
            table.put_many((b"%d" % key for key in range(1000)), (bytes(20) for _ in range(1000)))
            table.get(b"%d" % at)
            time.sleep(0.01)
        until(lambda: len(watch.samples) > 5)
        assert watch.is_running
    samples = watch.samples
    assert not watch.is_running and "stopped" in repr(watch) and len(samples) <= 50
    watch.stop()
    assert watch.samples == samples, "to stop again does nothing"
    assert samples[-1]["user_records"] == 20_000 == db.stats()["user_records"]
    assert samples[-1]["written_bytes"] == pytest.approx(
        db.stats()["write_amplification"] * samples[-1]["user_bytes"], rel=0.5
    )
    for before, after in zip(samples[:-1], samples[1:], strict=True):
        assert all(before[name] <= after[name] for name in ("seconds", "user_records", "written_bytes", "stall_seconds"))
    figure = db.plot()
    assert isinstance(figure, Figure) and len(figure.axes) == 4
    assert [axes.get_title() for axes in figure.axes][:3] == ["Rates", "Amplification", "Stalls"]
    assert getattr(figure, "_repr_png_")().startswith(b"\x89PNG")
    last = db.watch(every=0.01)
    until(lambda: len(last.samples) > 1)
    db.close()
    until(lambda: not last.is_running)
    assert last.plot() is not None and db.plot() is not None, "what was seen stays"
    last.stop()
    with pytest.raises(fb.Closed):
        db.watch()


def test_a_watch_keeps_nothing_open(place: Path) -> None:
    watch = fb.open(place / "db").watch(every=0.01)
    gc.collect()
    until(lambda: not watch.is_running)
    watch.stop()
    with fb.open(place / "db") as db:
        for wrong in ({"every": 0.0}, {"every": float("nan")}, {"keep": 1}):
            with pytest.raises(fb.Invalid, match="give"):
                db.watch(**wrong)
        with pytest.raises(fb.Invalid, match="1 sample"):
            db.watch(every=1000).plot()


def test_a_plot_without_matplotlib_is_told(db: fb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "forebay._plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with db.watch(every=1000) as watch:
        pass
    with pytest.raises(ImportError, match="pip install matplotlib"):
        watch.plot()


def test_watches_and_bars_end_with_the_interpreter(place: Path) -> None:
    program = """
        import sys
        import forebay as fb
        db = fb.open(sys.argv[1] + "/db")
        watch = db.watch(every=0.001)
        shown = fb.progress(every=0.001).__enter__()
        db.table("t").put_many([b"a"] * 10000, [b"b"] * 10000)
        """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(place)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            timeout=60,
        )
        assert done.returncode == 0 and "rror" not in done.stderr, done
