"""The notebooks run, in a kernel as a person's would, and show what they promise."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
SECONDS_MAX = 120


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_they_are_kept_without_outputs() -> None:
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert outputs(notebook) == [], f"clear the outputs of {path.name}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    begun = time.monotonic()
    NotebookClient(notebook, timeout=SECONDS_MAX, resources={"metadata": {"path": str(tmp_path)}}).execute()
    print(f"{path.stem}: {time.monotonic() - begun:.1f} s")
    shown = [kind for output in outputs(notebook) for kind in output.get("data", {})]
    assert "image/png" in shown, "there is a plot"
    assert "text/html" in shown, "databases, tables and aggregators are shown"
    assert list(tmp_path.iterdir()) == [], "it clears away what it made"
