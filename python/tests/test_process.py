"""Forks, threads, signals, pickles, and the ends of processes."""

from __future__ import annotations

import copy
import os
import gc
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import forebay as fb
from forebay import plyvel


# What the C++ library says where a thread is ended, as the interpreter does with it at its own end, in code that must not
# end so: pyarrow's, as the package has none.
ENDED_IN_CPP = ("exception not rethrown", "terminate called without an active exception")


def run(program: str, *args: object, expect: int = 0, tries: int = 1) -> str:
    """Runs a program in an interpreter of its own, and gives what it wrote. One that ends inside of pyarrow is tried again."""
    for _ in range(tries):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program), *map(str, args)],
            capture_output=True,
            text=True,
            timeout=100,
        )
        if not any(said in done.stderr for said in ENDED_IN_CPP):
            break
    assert done.returncode == expect, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_child_of_a_fork_reads_by_itself_what_its_parent_reads(place: Path) -> None:
    told = run(
        """
        import os, random, sys
        import forebay as fb

        KEYS = 30_000

        def read(table, seed, rounds):
            draw = random.Random(seed)
            for _ in range(rounds):
                keys = [b"%08d" % draw.randrange(KEYS) for _ in range(100)]
                assert table.get_many(keys) == [key * 20 for key in keys]

        db = fb.open(sys.argv[1] + "/db", memory="4MB")
        table = db.table("t")
        table.put_many([b"%08d" % key for key in range(KEYS)], [b"%08d" % key * 20 for key in range(KEYS)])
        db.flush()
        db.sync()
        read(table, 0, 20)
        children = []
        for seed in (1, 2):
            children.append(os.fork())
            if children[-1] == 0:
                read(fb.open(sys.argv[1] + "/db", read_only=True, memory="4MB").table("t"), seed, 100)
                sys.exit(3)
        read(table, 3, 100)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [3, 3]
        print("all are well")
        """,
        place,
    )
    assert told == "all are well\n"


def test_databases_of_children_of_forks_differ(place: Path) -> None:
    run(
        """
        import os, sys
        import forebay as fb

        fb.open(sys.argv[1] + "/first").close()
        for name in ("second", "third"):
            if os.fork() == 0:
                fb.open(sys.argv[1] + "/" + name).close()
                os._exit(0)
        for _ in range(2):
            os.wait()
        fb.open(sys.argv[1] + "/fourth").close()
        """,
        place,
    )
    databases = [(path / "FOREBAY").read_bytes() for path in place.iterdir()]
    assert len(set(databases)) == len(databases) == 4


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_multiprocessing_close_what_is_open(place: Path, method: str) -> None:
    program = place / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys
            import forebay as fb

            def work(path):
                global db  # Nobody else closes it.
                db = fb.open(path, log=False)
                db.table("t").put_many([b"%d" % at for at in range(1000)], [b"v"] * 1000)

            if __name__ == "__main__":
                path, method = sys.argv[1:]
                fb.open(path, log=False).close()
                child = multiprocessing.get_context(method).Process(target=work, args=(path,))
                child.start()
                child.join()
                with fb.open(path, log=False) as db:
                    print(child.exitcode, db.table("t").count())
            """
        )
    )
    done = subprocess.run(
        [sys.executable, program, place / "db", method], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout == "0 1000\n"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_multiprocessing_close_behind_their_threads(place: Path, method: str) -> None:
    """As programs do; a thread of an executor ends only when it is told to, which is behind all that."""
    program = place / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys, threading, time
            from concurrent.futures import ThreadPoolExecutor
            import forebay as fb

            def put(table):
                for at in range(10):
                    time.sleep(0.02)
                    table.put(b"%d" % at, b"v")

            def work(path):
                global db, pool
                db, pool = fb.open(path, log=False), ThreadPoolExecutor(1)
                assert pool.submit(int, "7").result() == 7
                threading.Thread(target=put, args=(db.table("t"),)).start()

            if __name__ == "__main__":
                path, method = sys.argv[1:]
                fb.open(path, log=False).close()
                child = multiprocessing.get_context(method).Process(target=work, args=(path,))
                child.start()
                child.join()
                with fb.open(path, log=False) as db:
                    print(child.exitcode, db.table("t").count())
            """
        )
    )
    done = subprocess.run(
        [sys.executable, program, place / "db", method], capture_output=True, text=True, timeout=100, check=True
    )
    assert (done.stdout, done.stderr) == ("0 10\n", "")


def test_a_child_of_a_fork_holds_no_lock_that_its_parent_gave_up(place: Path) -> None:
    told = run(
        """
        import os, sys
        import forebay as fb

        db = fb.open(sys.argv[1] + "/db")
        db.table("t")[b"a"] = b"1"
        gone, end = os.pipe()
        if os.fork() == 0:
            os.close(end)
            os.read(gone, 1)
            os._exit(0)
        db.close()
        with fb.open(sys.argv[1] + "/db") as again:
            assert again.table("t")[b"a"] == b"1"
        os.close(end)
        os.wait()
        print("opened again")
        """,
        place,
    )
    assert told == "opened again\n"


def test_a_child_of_a_fork_leaves_all_alone(place: Path) -> None:
    told = run(
        """
        import os, sys
        import pyarrow as pa
        import forebay as fb

        db = fb.open(sys.argv[1] + "/db")
        table = db.ordered_table("t")
        table[b"a"] = b"1"
        groups = fb.Aggregator(key="k", aggs={"n": fb.count()}, spill=sys.argv[1])
        groups.update(pa.table({"k": [1, 2]}))
        held = [db.snapshot(), db.batch(), db.begin(), table.cursor(), table.items(), iter(table), groups.result()]
        stream = pa.RecordBatchReader.from_stream(table.items())
        child = os.fork()
        if child == 0:
            for call in (
                lambda: table[b"a"], lambda: table.put(b"a", b"2"), lambda: db.stats(), lambda: db.close(),
                lambda: held[0].get(table, b"a"), lambda: held[1].commit(), lambda: held[2].commit(),
                lambda: held[3].next(), lambda: list(held[4]), lambda: next(held[5]), lambda: pa.table(held[6]),
                lambda: groups.get(1), lambda: groups.close(),
            ):
                try:
                    call()
                except fb.Forked as error:
                    assert "before a fork" in str(error)
                else:
                    print("was not refused", flush=True)
            try:
                stream.read_next_batch()
            except pa.ArrowInvalid as error:
                assert "before a fork" in str(error)
            # What was held goes, and the child has databases of its own.
            del held, stream, table, db, groups
            with fb.open(sys.argv[1] + "/child") as own:
                own.table("t")[b"c"] = b"1"
            last = fb.open(sys.argv[1] + "/child")
            assert last.table("t")[b"c"] == b"1"
            sys.exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert table[b"a"] == b"1" and groups.get(1) == {"n": 1}
        print("parent is well")
        """,
        place,
    )
    assert told == "parent is well\n"
    assert sorted(path.name for path in place.iterdir()) == ["child", "db"]


def test_nothing_is_pickled_or_copied(db: fb.Database, place: Path) -> None:
    table = db.ordered_table("t")
    table[b"k"] = b"v"
    groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
    groups.update(pa.table({"k": [1]}))
    (_, (change,)) = next(db.changes())
    held = [
        db, table, table.items(), iter(table), db.snapshot(), db.batch(), db.begin(), table.cursor(), db.changes(), change,
        groups, groups.result(), groups.result().batches(), next(groups.result().batches()), fb.Pool("8MB"),
        fb.Backups(place / "backups"), db.aggregator("g", aggs={"n": fb.count()}), db.watch(every=1000), fb.progress(),
        fb.Shelf(place / "shelf"), plyvel.DB(str(place / "level"), create_if_missing=True),
    ]  # fmt: skip
    calls: tuple[Callable[[Any], Any], ...] = (pickle.dumps, copy.copy, copy.deepcopy)
    for thing in held:
        for call in calls:
            if call is copy.copy and type(thing).__module__ != "forebay":
                continue
            with pytest.raises(TypeError, match="pickle"):
                call(thing)
    for thing in held:
        if isinstance(thing, fb.Shelf | plyvel.DB):
            thing.close()
    error = pickle.loads(pickle.dumps(fb.Corruption("damaged")))
    assert isinstance(error, fb.Corruption)


def test_what_is_open_is_closed_at_exit(place: Path) -> None:
    for ending in ("", "raise SystemExit(0)", "db.close()", "threading.Thread(target=loop, daemon=True).start()"):
        run(
            f"""
            import sys, threading
            import pyarrow as pa
            import forebay as fb

            db = fb.open(sys.argv[1] + "/db", memory="8MB")
            table = db.table("t")
            table.update((b"%d" % at, b"v") for at in range(1000))
            scan = iter(table.items())
            next(scan)
            groups = fb.Aggregator(key="k", aggs={{"n": fb.count()}}, memory="4MB", spill=sys.argv[1])
            groups.update(pa.table({{"k": range(300_000)}}))
            batches = pa.RecordBatchReader.from_stream(groups.result())
            batches.read_next_batch()

            def loop():
                try:
                    while True:
                        table[b"x"] = b"y"
                except fb.Error:
                    pass

            {ending}
            """,
            place,
        )
        with fb.open(place / "db", memory="8MB") as db:
            assert db.table("t").count() >= 1000 and db.verify()["problems"] == []


def test_daemon_threads_amid_calls_let_the_interpreter_end(place: Path) -> None:
    """They are in calls that let go of the interpreter's lock, and come back when there is no interpreter any more."""
    for _ in range(3):
        told = run(
            """
            import itertools, sys, threading, time
            import pyarrow as pa
            import forebay as fb

            db = fb.open(sys.argv[1] + "/db", memory="8MB")
            table, ordered = db.table("t"), db.ordered_table("o")
            groups = db.aggregator("g", key="k", aggs={"n": fb.count()})
            cube = db.cube("c", key=["k", "v"], aggs={"n": fb.count()})
            memory = fb.Aggregator(key="k", aggs={"n": fb.count()}, memory="4MB", spill=sys.argv[1])
            rows = pa.table({"k": range(20_000), "v": [at % 7 for at in range(20_000)]})
            for each in (groups, cube, memory):
                each.update(rows)
            keys = [b"%05d" % at for at in range(5_000)]
            rounds = [0] * 8

            def loop(at, act):
                while True:
                    act()
                    rounds[at] += 1

            acts = [
                lambda: table.put_many(keys, keys, durability="disk"),
                lambda: table.get_many(keys),
                lambda: ordered.update((key, key) for key in keys),
                lambda: [key for key, _ in ordered.items()],
                lambda: groups.update(rows),
                lambda: pa.table(groups.result()),
                lambda: cube.commit(rows, metadata=b"m"),
                lambda: memory.update(rows),
            ]
            for at, act in enumerate(acts):
                threading.Thread(target=loop, args=(at, act), daemon=True).start()
            while not all(rounds):
                time.sleep(0.001)
            print("end")
            """,
            place,
            tries=5,
        )
        assert told == "end\n"
        with fb.open(place / "db", memory="8MB") as db:
            assert db.verify()["problems"] == []
            assert db.cube("c").metadata == b"m", "each thread had gone round once"
            finest = sum(group["n"] for group in pa.table(db.cube("c").by("k", "v").result()).to_pylist())
            assert db.cube("c").get() == {"n": finest}


def test_a_killed_process_keeps_groups_and_offset_together(place: Path) -> None:
    program = textwrap.dedent(
        """
        import sys
        import pyarrow as pa
        import forebay as fb

        with fb.open(sys.argv[1] + "/db", memory="1MB", write_buffer="64K") as db:
            hits = db.aggregator("hits", key="page", aggs={"n": fb.count()})
            done = int(hits.metadata or b"0")
            print(done, flush=True)
            for at in range(done, done + 100_000, 50):
                pages = pa.table({"page": [page % 97 for page in range(at, at + 50)]})
                hits.commit(pages, metadata=b"%d" % (at + 50))
                print(at + 50, flush=True)
        """
    )
    last = 0
    for round in range(4):
        process = subprocess.Popen([sys.executable, "-c", program, str(place)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            begun, last = last, int(line)
            assert last >= begun, "what was committed is there"
            if last >= 2000 * (round + 1):
                break
        process.kill()
        for line in process.stdout:
            last = int(line) if line.endswith("\n") else last
        process.wait()
        process.stdout.close()
        with fb.open(place / "db") as db:
            hits = db.aggregator("hits")
            assert hits.metadata is not None
            done = int(hits.metadata)
            assert done >= last, "it survives the process"
            counts = pa.table(hits.result()).to_pydict()
            assert sum(counts["n"]) == done
            assert all(n == len(range(page, done, 97)) for page, n in zip(counts["page"], counts["n"], strict=True))
            last = done


def test_ctrl_c_ends_a_long_call(place: Path) -> None:
    told = run(
        """
        import itertools, signal, sys, threading
        import pyarrow as pa
        import forebay as fb

        batch = pa.record_batch({"k": pa.array(range(1000))})

        def endless():
            threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
            while True:
                yield batch

        groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
        db = fb.open(sys.argv[1] + "/db", memory="8MB")
        table = db.table("t")
        table.update((b"%d" % at, b"v") for at in range(5000))

        def forever():
            threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
            while True:
                yield b"key"

        stored = db.aggregator("g", key="k", aggs={"n": fb.count()})
        stream = lambda: pa.RecordBatchReader.from_batches(batch.schema, endless())
        for call in (
            lambda: groups.update(stream()),
            lambda: stored.update(stream()),
            lambda: table.put_many(forever(), itertools.repeat(b"value")),
        ):
            try:
                call()
            except KeyboardInterrupt:
                print("interrupted")
        assert groups.get(1)["n"] > 0 and b"key" in table
        db.close()
        """,
        place,
    )
    assert told == "interrupted\n" * 3


def test_threads_go_on_while_one_waits(db: fb.Database) -> None:
    table = db.ordered_table("t")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for at in range(300):
                key = b"%d-%d" % (number, at)
                table[key] = key
                assert table[key] == key and key in table
                with db.batch() as batch:
                    batch.put(table, key + b"b", key)
                if at % 50 == 0:
                    assert sum(1 for _ in table.prefix(b"%d-" % number)) == 2 * (at + 1)
                    assert pa.table(table.items()).num_rows > 0
                    db.flush()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and table.count() == 6 * 600


def test_threads_add_to_one_aggregator(db: fb.Database) -> None:
    data = pa.table({"k": [at % 1000 for at in range(20_000)], "v": [1] * 20_000})
    memory = fb.Aggregator(key="k", aggs={"n": fb.count(), "s": fb.sum("v")})
    stored = db.aggregator("g", key="k", aggs={"n": fb.count(), "s": fb.sum("v")})
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for groups in (memory, stored):
                groups.update(data)
                assert pa.table(groups.result()).num_rows == 1000
                assert groups.get(7) is not None
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for groups in (memory, stored):
        found = pa.table(groups.result())
        assert set(found["n"].to_pylist()) == {80}


def test_one_thread_closes_while_others_work(place: Path) -> None:
    for _ in range(5):
        db = fb.open(place / "db", memory="8MB")
        table = db.table("t")
        failures: list[BaseException] = []

        def work(db: fb.Database = db, table: fb.Table = table, failures: list[BaseException] = failures) -> None:
            try:
                while True:
                    table[b"k"] = b"v"
                    with db.batch() as batch:
                        batch.put(table, b"l", b"w")
                    sum(1 for _ in table.items())
            except fb.Error:
                pass
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while b"l" not in table:
            pass
        db.close()
        for thread in threads:
            thread.join()
        assert not failures
    with fb.open(place / "db") as db:
        assert db.verify()["problems"] == []


def test_a_signal_handler_may_use_the_database(db: fb.Database) -> None:
    table = db.table("t")
    before = signal.signal(signal.SIGUSR1, lambda *_: table.put(b"told", b"1"))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        table.update((b"%d" % at, b"v") for at in range(1000))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert table[b"told"] == b"1"


def test_weak_references(db: fb.Database) -> None:
    groups = fb.Aggregator(aggs={"n": fb.count()})
    kept = db.aggregator("g", aggs={"n": fb.count()})
    table = db.table("t")
    for held in (db, table, groups, kept):
        assert weakref.ref(held)() is held
    watched: list[weakref.ref[Any]] = [weakref.ref(table), weakref.ref(groups)]
    del table, groups, held
    assert [reference() for reference in watched] == [None, None]
    for other in (db.snapshot(), db.batch(), db.table("t").items()):
        with pytest.raises(TypeError, match="weak reference"):
            weakref.ref(other)


def test_collections_of_garbage_amid_streams(db: fb.Database) -> None:
    """Handles in cycles go whenever the collector likes: amid a loop, amid a call that takes a stream, amid a callback."""
    table = db.ordered_table("t")
    table.update((b"%05d" % at, b"v") for at in range(3000))

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.held = [table.items(), iter(table), db.snapshot(), table.cursor(), db.begin(), db.batch()]
            self.groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
            self.groups.update(pa.table({"k": [1, 2]}))
            self.stream = pa.RecordBatchReader.from_stream(self.groups.result())

    def producing(count: int) -> Iterator[pa.RecordBatch]:
        for at in range(count):
            Cycle()
            gc.collect()
            yield pa.record_batch({"k": [at], "v": [b"%d" % at]})

    schema = pa.schema([("k", pa.int64()), ("v", pa.binary())])
    groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
    stored = db.aggregator("g", key="k", aggs={"n": fb.count()})
    calls: list[Callable[[Any], int]] = [groups.update, stored.update]
    calls.append(lambda stream: db.table("other").put_arrow(stream, "k", "v"))
    for call in calls:
        assert call(pa.RecordBatchReader.from_batches(schema, producing(20))) == 20
    for at, (key, _) in enumerate(table.items()):
        if at % 500 == 0:
            Cycle()
            gc.collect()
        assert key == b"%05d" % at

    def acting(tx: fb.Transaction) -> int:
        Cycle()
        gc.collect()
        tx.put(table, b"x", b"y")
        return gc.collect()

    db.transaction(acting)
    assert table[b"x"] == b"y"


def test_a_producer_that_fails_ends_the_call(db: fb.Database) -> None:
    """What was committed by then stays, and the rest of what the call had is gone."""
    table = db.table("t")

    def failing() -> Iterator[tuple[bytes, bytes]]:
        for at in range(30_000):
            yield b"%d" % at, bytes(100)
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        table.update(failing())
    count = table.count()
    assert 0 < count < 30_000 and all(b"%d" % at in table for at in range(0, count, 100))
    with pytest.raises(LookupError, match="no more"), db.batch() as batch:
        batch.put_many(table, (key for key, _ in failing()), (value for _, value in failing()))
    assert table.count() == count


def test_a_child_of_a_fork_has_no_watch_and_no_bars(place: Path) -> None:
    told = run(
        """
        import os, sys, time
        import forebay as fb
        from forebay import _forebay

        db = fb.open(sys.argv[1] + "/db")
        watch = db.watch(every=0.001)
        shown = fb.progress(every=0.001)
        shown.__enter__()

        def forking():
            yield b"key"
            assert [call[1] for call in _forebay._running()] == ["put"]
            if os.fork() == 0:
                assert _forebay._running() == [] and not watch.is_running
                watch.stop()
                shown.__exit__(None, None, None)
                with fb.open(sys.argv[1] + "/child") as own, own.watch(every=0.001) as other:
                    own.table("t").put_many([b"a"] * 1000, [b"b"] * 1000)
                assert other.samples[-1]["user_records"] == 1000
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 7

        db.table("t").put_many(forking(), [b"value"])
        watch.stop()
        shown.__exit__(None, None, None)
        print(len(watch.samples) > 1)
        """,
        place,
    )
    assert told == "True\n"


def test_other_interpreters_of_a_process_are_refused() -> None:
    told = run(
        """
        import faulthandler, sys
        faulthandler.dump_traceback_later(50, exit=True)
        try:
            import _interpreters as interpreters
            run = interpreters.exec
        except ImportError:
            import _xxsubinterpreters as interpreters
            run = interpreters.run_string
        import forebay

        other = interpreters.create()
        program = (
            "try:\\n import forebay\\nexcept ImportError as error:\\n told = str(error)\\n"
            "assert 'main interpreter' in told or 'subinterpreters' in told, told"
        )
        print(run(other, program))
        """
    )
    assert told == "None\n"


def test_ctrl_c_ends_a_loop_over_batches_and_leaves_bars_whole(place: Path) -> None:
    told = run(
        """
        import itertools, signal, sys, threading
        import forebay as fb

        with fb.open(sys.argv[1] + "/db", memory="8MB") as db:
            table = db.table("t")
            table.update((b"%d" % at, b"v") for at in range(1000))
            for call in (
                lambda: [len(batch) for _ in itertools.count() for batch in table.items().batches()],
                lambda: table.put_many(itertools.repeat(b"k"), itertools.repeat(b"v")),
            ):
                threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
                try:
                    with fb.progress(every=0.01):
                        call()
                except KeyboardInterrupt:
                    print("interrupted")
        """,
        place,
    )
    assert told == "interrupted\n" * 2
