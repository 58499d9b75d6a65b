"""The package itself: what it needs, and that its documentation is one."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import weakref
from importlib import resources

import pyarrow as pa
import pytest

import forebay as fb
from forebay import _forebay, functions


def documented() -> list[tuple[str, str]]:
    """Each name of the stub that has a text, and the text."""
    stub = ast.parse(resources.files("forebay").joinpath("_forebay.pyi").read_text())
    found = []
    for node in stub.body:
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
            found.append((node.name, text))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            if text := ast.get_docstring(node):
                found.append((node.name, text))
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and (text := ast.get_docstring(inner)):
                    found.append((f"{node.name}.{inner.name}", text))
    return found


@pytest.mark.parametrize(("name", "text"), documented(), ids=lambda value: value if "." in value else "")
def test_help_shows_what_the_stub_says(name: str, text: str) -> None:
    shown: object = _forebay
    for part in name.split("."):
        shown = getattr(shown, part)
    assert shown.__doc__ is not None and " ".join(shown.__doc__.split()) == " ".join(text.split())


def test_nothing_else_is_needed() -> None:
    program = (
        "import sys; before = set(sys.modules); import forebay; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names); print(sorted(new))"
    )
    told = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "['forebay']\n"


def test_all_names_are_there_and_documented() -> None:
    assert len(set(fb.__all__)) == len(fb.__all__)
    for name in fb.__all__:
        thing = getattr(fb, name)
        assert name == "__version__" or thing.__doc__, name
    for name in functions.__all__:
        assert getattr(fb, name) is getattr(functions, name)
    for cls in vars(fb).values():
        if isinstance(cls, type) and issubclass(cls, Exception):
            assert issubclass(cls, fb.Error)


def test_each_function_is_one_of_the_engine() -> None:
    texts = [
        fb.count(), fb.count("a"), fb.count_if("a"), fb.sum("a"), fb.isum("a"), fb.fsum("a"), fb.mean("a"), fb.min("a"),
        fb.max("a"), fb.min_text("a"), fb.max_text("a"), fb.any("a"), fb.var("a"), fb.stddev("a", ddof=0), fb.corr("a", "b"),
        fb.bool_and("a"), fb.bool_or("a"), fb.bit_and("a"), fb.bit_or("a"), fb.bit_xor("a"), fb.first("a", "b"),
        fb.last("a", "b"), fb.top("a", 3), fb.top_k("a", 3, "b"), fb.distinct("a"), fb.hll("a"), fb.theta("a"),
        fb.quantile("a", 0.5), fb.median("a"), fb.frequent("a"), fb.list("a"), fb.set("a", 5), fb.string_agg("a", ","),
        fb.histogram("a", [0, 1.5]), fb.sample("a", 2, "b"),
    ]  # fmt: skip
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    for text in texts:
        assert fb.Aggregator(aggs={"x": text}, schema=schema).result().columns == ["x"]
    with pytest.raises(ValueError, match="ddof"):
        fb.var("a", ddof=2)


def test_what_is_dropped_goes() -> None:
    """Streams that are dropped half-read, and arrays whose consumer failed, are released."""
    groups = fb.Aggregator(key="k", aggs={"n": fb.count()})
    before = pa.total_allocated_bytes()
    table = pa.table({"k": pa.array(range(100_000))})
    groups.update(table)
    with pytest.raises(fb.Invalid):
        fb.Aggregator(key="other", aggs={"n": fb.count()}).update(table)
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(1000))
    with pytest.raises(fb.Invalid):
        fb.Aggregator(aggs={"n": fb.bool_and("k")}).update(stream)
    del table, stream
    gc.collect()
    assert pa.total_allocated_bytes() == before
    reader = pa.RecordBatchReader.from_stream(groups.result())
    reader.read_next_batch()
    del reader
    rows = groups.result()
    watched = weakref.ref(groups)
    del groups
    gc.collect()
    assert watched() is None and pa.table(rows).num_rows == 100_000
