"""SQL in named blocks beside the code that runs it.

A file holds blocks that start with ``-- name: NAME``; comments before the first are for people.

>>> sorted(parse_blocks("-- Two.\\n-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n").items())
[('one', 'SELECT 1'), ('two', 'SELECT 2')]
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from importlib.resources import files

_BLOCK = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def parse_blocks(text: str) -> dict[str, str]:
    """The statements by name, without the semicolon."""
    parts = _BLOCK.split(text)
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def load_blocks(file: str) -> dict[str, str]:
    """The blocks of a file of this package."""
    return parse_blocks(files(__package__).joinpath(file).read_text(encoding="utf-8"))


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
