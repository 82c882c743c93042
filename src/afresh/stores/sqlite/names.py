"""Short ids for texts that repeat: sources, groups, media types."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list

_SQL = load_blocks("names.sql")


def name_ids(connection: sqlite3.Connection, texts: Collection[str]) -> dict[str, int]:
    """The ids of these texts, new ones made. Inside a writing transaction."""
    wanted = json_list(sorted(texts))
    known = dict(connection.execute(_SQL["name_ids"], (wanted,)).fetchall())
    if len(known) < len(texts):
        connection.execute(_SQL["add_names"], (wanted,))
        known = dict(connection.execute(_SQL["name_ids"], (wanted,)).fetchall())
    return known
