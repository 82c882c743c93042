"""The interface of a search server, and a server over records at hand, for planning and simulation.

A server answers a conjunctive keyword query with its total and one page of at most ``page_size`` tuples,
never more than ``limit`` for a query in all (the paper's K), and a look-up by key with one tuple or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from afresh.probes.keyword_index import KeywordIndex
from afresh.values.arrays import Ints
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A page: how many tuples match in all (None if the server does not say), and the keys on the page."""

    total: int | None
    keys: tuple[str, ...]


class ServerStoppedError(Exception):
    """The server stops answering; what it answered so far stays valid."""


class ProbeServer(Protocol):
    """Answers one request at a time. Keywords are numbers in the local relation's vocabulary.

    A request that raises ``ServerStoppedError`` ends the round.
    """

    page_size: int

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        """Page ``number``, from 1, of the tuples that hold all ``keywords``."""
        ...

    def look_up(self, key: str) -> ProbeAnswer:
        """The tuple of this key: a page of one, or empty."""
        ...


class IndexServer:
    """A server over records at hand: results stand in the order of the records.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.splitters import parse_keywords
    >>> index = index_relation({"title": ["web crawl", "web", "web"]}, [parse_keywords("title")])
    >>> server = IndexServer(index, ["a", "b", "c"], page_size=2, limit=2)
    >>> server.page([0], 1), server.page([0], 2).keys, server.look_up("c").keys
    (ProbeAnswer(total=3, keys=('a', 'b')), (), ('c',))
    """

    def __init__(
        self, index: KeywordIndex, keys: Sequence[str], page_size: int, limit: int | None = None
    ) -> None:
        if page_size < 1:
            raise UsageError(f"page size {page_size}: must be 1 or more")
        self.page_size = page_size
        self._index, self._keys, self._limit = index, keys, limit
        self._known = frozenset(keys)
        self._results: dict[tuple[int, ...], Ints] = {}

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        """See ``ProbeServer``."""
        query = tuple(keywords)
        if query not in self._results:
            self._results[query] = self._index.matches(np.array([query], dtype=np.int64))[1]
        results = self._results[query]
        start = (number - 1) * self.page_size
        shown = results[: self._limit][start : start + self.page_size]
        return ProbeAnswer(len(results), tuple(self._keys[place] for place in shown.tolist()))

    def look_up(self, key: str) -> ProbeAnswer:
        """See ``ProbeServer``."""
        return ProbeAnswer(int(key in self._known), (key,) if key in self._known else ())
