"""SQL in named blocks beside the code that runs it.

A file holds blocks that start with ``-- name: NAME``; comments before the first are for people.

>>> sorted(parse_blocks("-- Two.\\n-- name: one\\nSELECT 1;\\n-- name: two\\nSELECT 2;\\n").items())
[('one', 'SELECT 1'), ('two', 'SELECT 2')]
"""

from __future__ import annotations

import re
from importlib.resources import files

_BLOCK = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def parse_blocks(text: str) -> dict[str, str]:
    """The statements by name, without the semicolon."""
    parts = _BLOCK.split(text)
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def load_blocks(package: str, file: str) -> dict[str, str]:
    """The blocks of a file of a package."""
    return parse_blocks(files(package).joinpath(file).read_text(encoding="utf-8"))


def load_scripts(package: str) -> tuple[str, ...]:
    """A package's migrations in order; ``NNNN_name.sql`` counts from 0001 without gaps."""
    folder = files(package).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
