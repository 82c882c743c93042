"""SQL statements in named blocks of ``.sql`` files, beside the code that runs them.

A block starts with a line ``-- name: NAME`` and goes on to the next one; comments before the first block are
for people.

>>> sorted(parse_statements("-- Two.\\n-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n").items())
[('one', 'SELECT 1'), ('two', 'SELECT 2')]
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_BLOCK = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def parse_statements(text: str) -> dict[str, str]:
    """Return the statements of a file by name, without their semicolons."""
    parts = _BLOCK.split(text)
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def load_statements(package: str, name: str) -> dict[str, str]:
    """Return the statements of the file ``name``.sql in a package."""
    return parse_statements(files(package).joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def load_migrations(package: str) -> tuple[str, ...]:
    """Return the migration scripts of a package in order; ``NNNN_name.sql`` counts from 0001 without gaps."""
    folder = files(package).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
