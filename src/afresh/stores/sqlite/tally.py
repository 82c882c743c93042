"""How many items have each status, kept while writing so that nobody has to count millions."""

from __future__ import annotations

import sqlite3
from collections import Counter

from afresh.stores.sqlite.queries import load_blocks

_SQL = load_blocks("tally.sql")
Tally = Counter[tuple[int, int, int]]
"""Items gained or lost by (source id, group id, status code)."""


def add_to_tally(connection: sqlite3.Connection, tally: Tally) -> None:
    """Add gains and losses; what comes to nothing goes."""
    connection.executemany(_SQL["add"], [(*key, items) for key, items in tally.items() if items])
    connection.executemany(_SQL["drop_empty"], [key for key, items in tally.items() if items < 0])
