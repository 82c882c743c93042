"""Rows turned into one array per column: how PostgreSQL takes many rows in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def arrays(names: Sequence[str], table: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The columns by name.

    >>> arrays(("a", "b"), [(1, "x"), (2, "y")]), arrays(("a", "b"), [])
    ({'a': [1, 2], 'b': ['x', 'y']}, {'a': [], 'b': []})
    """
    columns = zip(*table, strict=True) if table else [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}
