"""Rounds against a search server: every request with what was expected of it and what it brought.

A server answers a conjunctive keyword query with its total and one page of at most ``page_size`` tuples,
never more than ``limit`` for a query in all (the paper's K), and a look-up by key with one tuple or none. The
contents of pages count, not the totals that the server claims: a page that is empty, or holds only what
earlier pages of its query held, ends the query, and so does the thousandth page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from afresh.probes.campaign import Campaign, local_tuples
from afresh.probes.greedy_probes import Probe
from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.page_plan import LookUp
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

    >>> from afresh.probes.keyword_index import index_relation, parse_keywords
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
        query = tuple(keywords)
        if query not in self._results:
            self._results[query] = self._index.matches(np.array([query], dtype=np.int64))[1]
        results = self._results[query]
        start = (number - 1) * self.page_size
        shown = results[: self._limit][start : start + self.page_size]
        return ProbeAnswer(len(results), tuple(self._keys[place] for place in shown.tolist()))

    def look_up(self, key: str) -> ProbeAnswer:
        return ProbeAnswer(int(key in self._known), (key,) if key in self._known else ())


_MOST_PAGES = 1000  # of one query


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One request: ``keywords`` of a query (none: the look-up of ``key``), its ``page``, and what it brought.

    ``total`` is None where the server reported none. ``cut``: the query ended before its reported total.
    ``doubled`` are the keys of which the answer held several records.
    """

    keywords: tuple[int, ...]
    key: str
    page: int
    total: int | None
    expected: float
    new: int
    cut: bool = False
    doubled: tuple[str, ...] = ()


def run_campaign(
    campaign: Campaign,
    server: ProbeServer,
    keys: Sequence[str],
    on_step: Callable[[int], None] = lambda _: None,
) -> tuple[ProbeStep, ...]:
    """Make requests until the campaign is done; ``keys`` are those of the local tuples.

    ``on_step`` is called with the number of tuples still wanted.
    """
    places = {key: place for place, key in enumerate(keys)}
    steps: list[ProbeStep] = []
    seen = _SeenKeys(server.page_size)
    nothing: tuple[int, ...] = ()
    with suppress(ServerStoppedError):
        while (request := campaign.next_request()) is not None:
            expected = campaign.expected(request)
            if isinstance(request, LookUp):
                keywords, key, number = nothing, keys[request.tuple], 1
                answer, cut = server.look_up(key), False
                total: int | None = len(answer.keys)
                new = campaign.learn(request, local_tuples(answer.keys, places))
            else:
                keywords, key, number = campaign.words(request), "", request.number
                answer = server.page(keywords, number)
                total, over = answer.total, seen.ends(keywords, number, answer)
                new = campaign.learn(request, local_tuples(answer.keys, places), total, over=over)
                cut = over and seen.promised(answer) > number
            doubled = _doubled_keys(answer)
            steps.append(ProbeStep(keywords, key, number, total, expected, new, cut, doubled))
            on_step(int(campaign.wanted.sum()))
    return tuple(steps)


def run_probes(
    probes: Sequence[Probe], server: ProbeServer, keys: Sequence[str], *, pages: int | None = None
) -> tuple[ProbeStep, ...]:
    """Send the paper's queries: all result pages of each (Method 1), or the first ``pages`` (Method 2: 1)."""
    places = {key: place for place, key in enumerate(keys)}
    wanted = set(range(len(keys)))
    steps: list[ProbeStep] = []
    seen = _SeenKeys(server.page_size)
    with suppress(ServerStoppedError):
        for probe in probes:
            number, last = 0, 1
            while number < last:
                number += 1
                answer = server.page(probe.keywords, number)
                found = wanted.intersection(local_tuples(answer.keys, places))
                wanted -= found
                over, promised = seen.ends(probe.keywords, number, answer), seen.promised(answer)
                last = number if over else promised if pages is None else min(promised, pages)
                share = probe.expected / max(probe.requests, 1.0)
                cut, doubled = over and promised > number, _doubled_keys(answer)
                found_in = (number, answer.total, share, len(found), cut, doubled)
                steps.append(ProbeStep(probe.keywords, "", *found_in))
    return tuple(steps)


class _SeenKeys:
    """The keys that the pages of each query held so far."""

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._keys: dict[tuple[int, ...], set[str]] = {}

    def promised(self, answer: ProbeAnswer) -> int:
        """The number of pages by the reported total."""
        return max(1, -(-(answer.total or 0) // self._page_size))

    def ends(self, keywords: tuple[int, ...], number: int, answer: ProbeAnswer) -> bool:
        """Whether this page ends its query."""
        seen = self._keys.setdefault(keywords, set())
        nothing_new = seen.issuperset(answer.keys)
        seen.update(answer.keys)
        return nothing_new or number >= _MOST_PAGES


def _doubled_keys(answer: ProbeAnswer) -> tuple[str, ...]:
    if len(set(answer.keys)) == len(answer.keys):
        return ()
    return tuple(sorted({key for key in answer.keys if answer.keys.count(key) > 1}))
