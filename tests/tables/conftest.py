"""Files to read, and the columns they should have."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from afresh.tables import backend
from afresh.tables.columns import Column

MakeFile: TypeAlias = Callable[[str, bytes], str]

ITEMS = (
    Column("item", "text", required=True),
    Column("rate", "number", required=True, minimum=0, what="changes per day"),
    Column("weight", "number", default=1, minimum=0),
    Column("max_frequency", "number", default=math.inf, finite=False),
    Column("size", "count", default=1, minimum=1),
    Column("changed", "flag"),
    Column("time", "time"),
    Column("group", "text", default="none"),
)


@pytest.fixture(scope="session")
def items() -> tuple[Column, ...]:
    """The columns that these tests read."""
    return ITEMS


@pytest.fixture
def make_file(tmp_path: Path) -> MakeFile:
    """Writes bytes to a file of the given name and returns its path."""

    def make(name: str, data: bytes) -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return make


@pytest.fixture(params=["pyarrow", "plain"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test twice: with pyarrow, and as where it is not installed."""
    way: str = request.param
    if way == "plain":
        monkeypatch.setattr(backend, "has_extra", lambda _: False)
    return way
