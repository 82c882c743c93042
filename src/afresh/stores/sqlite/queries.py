"""SQL of this package, block by block and statement by statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from afresh.stores import blocks


def load_blocks(file: str) -> dict[str, str]:
    """The blocks of a file of this package."""
    return blocks.load_blocks(__package__, file)


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: unlike ``executescript`` this leaves transactions alone.

    >>> [text.split()[0] for text in statements("CREATE TABLE a (b);\\nINSERT INTO a VALUES (';');")]
    ['CREATE', 'INSERT']
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        if not statement and (not line.strip() or line.startswith("--")):
            continue
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
