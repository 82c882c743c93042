"""Numbers in the order of commits: whoever takes some holds the next taker up until it commits."""

from __future__ import annotations

from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks

_SQL = load_blocks("counters.sql")


def take_numbers(connection: Connection, counter: str, numbers: int) -> int:
    """The last of so many numbers, all larger than any before."""
    ((last,),) = rows(connection, _SQL["take_numbers"], {"name": counter, "numbers": numbers})
    return int(last)
