"""Short ids for texts that repeat: sources, groups, media types."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import md5

from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks

_SQL = load_blocks("names.sql")


def name_ids(connection: Connection, texts: Collection[str]) -> dict[str, int]:
    """The ids of these texts, new ones made. Inside a writing transaction."""
    if not texts:
        return {}
    given = {
        "texts": sorted(texts),
        "hashes": [md5(text.encode(), usedforsecurity=False).hexdigest() for text in texts],
    }
    known: dict[str, int] = dict(rows(connection, _SQL["name_ids"], given))
    if len(known) < len(texts):
        rows(connection, _SQL["add_names"], given)
        known = dict(rows(connection, _SQL["name_ids"], given))
    return known
