"""What all tests share. Seeds are fixed, and printed where a test fails."""

from __future__ import annotations

import faulthandler
import importlib.util
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import forebay as fb

faulthandler.enable()
# What it needs is large: `make spark-groups-test`.
collect_ignore = [] if importlib.util.find_spec("pyspark") else ["test_spark.py"]
SEED = int(os.environ.get("FOREBAY_SEED", "1"))

settings.register_profile("forebay", deadline=None, derandomize=True, print_blob=True, database=None, max_examples=60)
settings.load_profile("forebay")


def pytest_report_header() -> str:
    passed_over = f"; passed over, as there is no PySpark: {collect_ignore[0]}" if collect_ignore else ""
    return f"seed: FOREBAY_SEED={SEED}{passed_over}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Of the seed and the test's name."""
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory, where there is such: syncs are not what is tested here."""
    shm = "/dev/shm"
    where = shm if os.access(shm, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="forebay-test-", dir=where) as made:
        yield Path(made)


@pytest.fixture
def db(place: Path) -> Iterator[fb.Database]:
    """A small database."""
    with fb.open(place / "db", memory="8MB") as opened:
        yield opened
