"""Contents, each kept once under the hash of its bytes, compressed, counted by the versions that use it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from afresh.stores.sqlite.queries import load_blocks

_SQL = load_blocks("contents.sql")


def keep_content(connection: sqlite3.Connection, address: bytes, size: int, packed: bytes) -> int:
    """The id of a content, now used once more; its bytes are written if nobody has them yet."""
    ((content_id, refs),) = connection.execute(_SQL["keep"], (address, size)).fetchall()
    if refs == 1:
        connection.execute(_SQL["keep_payload"], (content_id, packed))
    return int(content_id)


def drop_contents(connection: sqlite3.Connection, content_ids: Iterable[int]) -> None:
    """Each of these is used once less; what nobody uses goes."""
    for content_id, uses in Counter(content_ids).items():
        connection.execute(_SQL["drop"], (uses, content_id))
        connection.execute(_SQL["collect"], (content_id,))
