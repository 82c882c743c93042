"""How many items have each status, kept while writing so that nobody has to count millions."""

from __future__ import annotations

import sqlite3

from afresh.stores.polls import Tally
from afresh.stores.sqlite.queries import load_blocks

_SQL = load_blocks("tally.sql")


def add_to_tally(connection: sqlite3.Connection, tally: Tally) -> None:
    """Add gains and losses; what comes to nothing goes."""
    connection.executemany(_SQL["add"], [(*key, items) for key, items in tally.items() if items])
    connection.executemany(_SQL["drop_empty"], [key for key, items in tally.items() if items < 0])
