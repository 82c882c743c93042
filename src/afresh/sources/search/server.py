"""A server with a search box, as the ``search`` source asks it: pages of queries, and single records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from afresh.probes.keyword_index import Keyword
from afresh.sources.remembering import Rest


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """One record of an answer: its key as text, and its fields by name."""

    key: str
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Results:
    """One answer. With a ``problem``, in words, it tells nothing; ``requests`` counts what was sent.

    ``total`` is how many records match in all, None where the server does not say. ``refused``: we may not
    ask. ``retry_after_s``: the server is to be left alone so long; ``busy``: it says so itself.
    """

    records: tuple[SearchRecord, ...] = ()
    total: int | None = None
    requests: int = 1
    bytes: int = 0
    seconds: float = 0.0
    problem: str = ""
    refused: bool = False
    retry_after_s: float | None = None
    busy: bool = False


class SearchServer(Protocol):
    """Answers one request at a time, each admitted once; raises nothing for what the outside does."""

    def wait_s(self) -> float:
        """How long until the next request may start."""

    async def page(self, keywords: Sequence[Keyword], number: int) -> Results:
        """Page ``number``, from 1, of the records that hold all ``keywords``."""

    async def look_up(self, key: str) -> Results:
        """The record of this key: one, or none."""

    def rests(self) -> tuple[Rest, ...]:
        """Why it is left alone, if it is."""

    def recall(self, rests: Sequence[Rest]) -> None:
        """Rests of an earlier process."""

    async def close(self) -> None:
        """Let go of connections."""
