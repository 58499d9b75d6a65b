"""How databases, tables and aggregators look: a line of text, and HTML for notebooks.

What is shown costs no read of a device. Nothing here raises: of what is closed, or was opened before a fork, a line of text
says so.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from forebay._errors import Error
from forebay._forebay import Aggregator, Database, StoredAggregator, Table

_WIDTH = 480
"""Of a picture of a tree, in pixels."""
_CELL = 3.0
"""The narrowest cell of it: nodes that would be narrower share one."""
_TABLES = 20
"""So many tables of a database are shown with their trees."""


def size(count: float) -> str:
    """A number of bytes for people, in powers of 1024, such as ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes all")


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _records(table: dict[str, Any]) -> int:
    return sum(int(level["records"]) for level in table["levels"])


def database_text(db: Database) -> str:
    """A line about a database."""
    try:
        stats = db.stats()
    except Error as error:
        return f"<forebay.Database {db.path}: {error}>"
    memory = stats["memory"]
    return (
        f"<forebay.Database {db.path}: {_several(len(stats['tables']), 'table')}, {size(stats['disk_bytes'])} on disk, "
        f"{size(memory['total'])} of {size(memory['limit'])} of memory>"
    )


def table_text(table: Table) -> str:
    """A line about a table."""
    name = type(table).__name__
    try:
        stats = table.stats()
        return (
            f"<forebay.{name} {table.name}: {stats['layout']}, {_several(_records(stats), 'record')} in lists, "
            f"{size(stats['space']['disk_bytes'])}>"
        )
    except Error as error:
        try:
            return f"<forebay.{name} {table.name}: {error}>"
        except Error:
            return f"<forebay.{name}: {error}>"


def aggregator_text(groups: Aggregator | StoredAggregator, told: str) -> str:
    """A line about an aggregator, with what its native half tells."""
    if isinstance(groups, StoredAggregator):
        return told
    try:
        return f"{told[:-1]}, {size(groups.memory_bytes)} of memory>"
    except Error as error:
        return f"{told[:-1]}, {error}>"


def tree(described: dict[str, Any]) -> str:
    """The picture of a table's tree, as inline SVG: a row for each level, a cell for each node, or for several narrow ones.

    A cell stands above those that it spills to. The darker it is, the more bytes it has, beside the others of its level.
    """
    nodes, levels = described["nodes"], described["levels"]
    if not nodes:
        return ""
    lows = sorted({node["low"] for node in nodes})
    places = {low: at * _WIDTH / len(lows) for at, low in enumerate(lows)}
    rows = []
    for row, level in enumerate(levels):
        here = [node for node in nodes if node["level"] == level["level"]]
        starts = [places[node["low"]] for node in here]
        if starts != sorted(set(starts)):
            # Runs lie one upon the other: each has a share of the row.
            starts = [at * _WIDTH / len(here) for at in range(len(here))]
        cells = _cells(here, [*starts, float(_WIDTH)])
        most = max((bytes_ for *_, bytes_, _, _ in cells), default=0) or 1
        top = 18 * row + 1
        for left, right, bytes_, records, count in cells:
            told = f"{_several(count, 'node')}, {_several(records, 'record')}, {size(bytes_)}"
            rows.append(
                f'<rect x="{left:.1f}" y="{top}" width="{max(right - left - 1, 1):.1f}" height="14" rx="1" '
                f'fill="#2f6fb7" fill-opacity="{0.15 + 0.85 * bytes_ / most:.2f}"><title>{told}</title></rect>'
            )
        told = f"{level['level']}: {_several(level['nodes'], 'node')}, {_several(level['lists'], 'list')}, {size(level['bytes'])}"
        rows.append(f'<text x="{_WIDTH + 8}" y="{top + 11}" font-size="11" fill="currentColor">{told}</text>')
    height = 18 * len(levels) + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH + 260}" height="{height}" '
        f'viewBox="0 0 {_WIDTH + 260} {height}" font-family="sans-serif">{"".join(rows)}</svg>'
    )


def _cells(nodes: list[dict[str, Any]], edges: list[float]) -> list[tuple[float, float, int, int, int]]:
    """From where, to where, bytes, records and nodes of each cell of a row."""
    cells: list[tuple[float, float, int, int, int]] = []
    for node, left, right in zip(nodes, edges[:-1], edges[1:], strict=True):
        if cells and cells[-1][1] - cells[-1][0] < _CELL:
            begun, _, bytes_, records, count = cells.pop()
            cells.append((begun, right, bytes_ + node["bytes"], records + node["records"], count + 1))
        else:
            cells.append((left, right, node["bytes"], node["records"], 1))
    return cells


def _cell(text: object) -> str:
    return f"<td>{escape(str(text))}</td>"


def _section(table: dict[str, Any], described: dict[str, Any] | None) -> str:
    space = table["space"]
    return (
        f"<details><summary><b>{escape(table['name'])}</b> {escape(table['layout'])}, "
        f"{_several(_records(table), 'record')} in lists, {size(space['disk_bytes'])}</summary>"
        f"{tree(described) if described else ''}</details>"
    )


def database_html(db: Database) -> str | None:
    """A database with its tables, each with the picture of its tree; None of one that is closed."""
    try:
        stats, described = db.stats(), db.describe()
    except Error:
        return None
    memory = stats["memory"]
    rows = [
        ("on disk", f"{size(stats['disk_bytes'])}, {stats['space_amplification']:.2f} times what lists hold"),
        ("memory", f"{size(memory['total'])} of {size(memory['limit'])}"),
        ("in the log alone", f"{_several(stats['unlisted_records'], 'record')}, {size(stats['unlisted_bytes'])}"),
        ("written", f"{stats['write_amplification']:.2f} times what was put, since it was opened"),
        ("writers waited", f"{stats['stall_seconds']:.2f} s"),
    ]
    head = "".join(f"<tr>{_cell(name)}{_cell(value)}</tr>" for name, value in rows)
    trees = {table["name"]: table for table in described["tables"]}
    tables = stats["tables"]
    shown = "".join(_section(table, trees.get(table["name"])) for table in tables[:_TABLES])
    more = f"<p>and {_several(len(tables) - _TABLES, 'table')} more</p>" if len(tables) > _TABLES else ""
    return f"<div><b>forebay.Database</b> {escape(str(db.path))}<table>{head}</table>{shown}{more}</div>"


def table_html(table: Table) -> str | None:
    """A table with the picture of its tree; None of one whose database is closed."""
    try:
        stats, described = table.stats(), table.describe()
        name = table.name
    except Error:
        return None
    space = stats["space"]
    rows = [
        ("layout", stats["layout"]),
        ("records in lists, every version counted", f"{_records(stats):,}"),
        ("on disk", f"{size(space['disk_bytes'])}, {space['space_amplification']:.2f} times what is live"),
    ]
    head = "".join(f"<tr>{_cell(name)}{_cell(value)}</tr>" for name, value in rows)
    kind = type(table).__name__
    return f"<div><b>forebay.{kind}</b> {escape(name)}<table>{head}</table>{tree(described)}</div>"


def aggregator_html(groups: Aggregator | StoredAggregator) -> str | None:
    """An aggregator and its columns; None of one that is closed, or that knows no columns yet."""
    try:
        columns = groups.result().columns
        told = groups.name if isinstance(groups, StoredAggregator) else f"{size(groups.memory_bytes)} of memory"
    except Error:
        return None
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    return f"<div><b>forebay.{type(groups).__name__}</b> {escape(told)}<table><tr>{head}</tr></table></div>"


def text(thing: Database | Table | Aggregator | StoredAggregator, native: Callable[[Any], str]) -> str:
    """A line about a thing; ``native`` is what its native half tells."""
    if isinstance(thing, Database):
        return database_text(thing)
    if isinstance(thing, Table):
        return table_text(thing)
    try:
        return aggregator_text(thing, native(thing))
    except Error as error:
        return f"<forebay.{type(thing).__name__}: {error}>"


def html(thing: Database | Table | Aggregator | StoredAggregator) -> str | None:
    """What a notebook shows of a thing; None where that is its line of text."""
    if isinstance(thing, Database):
        return database_html(thing)
    return table_html(thing) if isinstance(thing, Table) else aggregator_html(thing)
