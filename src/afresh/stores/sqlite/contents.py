"""Contents in SQLite: each is kept once under its hash, and counted by the versions that use it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable

from afresh.stores.sql.commit import CompressedCopy
from afresh.stores.sql.statements import load_statements

_SQL = load_statements(__package__, "contents")


def keep_content(connection: sqlite3.Connection, new: CompressedCopy) -> int:
    """Count one more use of a content, write its bytes if nobody has them yet, and return its id."""
    row = connection.execute(_SQL["keep"], (new.hash, len(new.copy.content))).fetchall()
    ((content_id, refs),) = row
    if refs == 1:
        connection.execute(_SQL["keep_payload"], (content_id, new.data))
    return int(content_id)


def drop_contents(connection: sqlite3.Connection, content_ids: Iterable[int]) -> None:
    """Count one use less of each of these contents, and delete those that nobody uses."""
    for content_id, uses in Counter(content_ids).items():
        connection.execute(_SQL["drop"], (uses, content_id))
        connection.execute(_SQL["collect"], (content_id,))
