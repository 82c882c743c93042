"""What can be asked of a server: a page of a query, or one tuple by its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ReadPage:
    """Ask for page ``number`` (from 1) of candidate query ``query``."""

    query: int
    number: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask for local tuple ``tuple`` by its key."""

    tuple: int


ProbeRequest: TypeAlias = ReadPage | LookUp
