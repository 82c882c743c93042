"""How many items have each status, kept while writing so that nobody has to count millions."""

from __future__ import annotations

from afresh.stores.polls import Tally
from afresh.stores.postgres.arrays import arrays
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks

_SQL = load_blocks("tally.sql")


def add_to_tally(connection: Connection, tally: Tally) -> None:
    """Add gains and losses, in one order for all: nobody waits in a circle. What comes to nothing goes."""
    moved = sorted((*key, items) for key, items in tally.items() if items)
    if moved:
        given = arrays(("sources", "groups", "statuses", "items"), moved)
        rows(connection, _SQL["add"], given)
        rows(connection, _SQL["drop_empty"], given)
