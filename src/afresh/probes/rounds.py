"""Run rounds of requests against a search server, and note what each request was expected to return and did.

The server answers a query, a set of keywords, with the total number of records that contain all of them and
one page of at most ``page_size`` records. Over all pages of a query it returns at most ``limit`` records (K
in Yang et al. 2010). It answers a look-up by key with one record or none. A query ends with a page without
new records, or with its thousandth page, whatever total the server reported.
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
from afresh.probes.page_plan import BulkLookUp, LookUp
from afresh.values.arrays import Ints
from afresh.values.errors import UsageError


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """One page of results: the keys of its records, and the total of all results (None if not reported).
    ``is_last`` is True if the server says that no page follows."""

    total: int | None
    keys: tuple[str, ...]
    is_last: bool = False


class ServerStoppedError(Exception):
    """The server does not answer any more; its earlier answers stay valid."""


class ProbeServer(Protocol):
    """A search server that answers one request at a time.
    Keywords are given as numbers of the local ``KeywordIndex``. A ``ServerStoppedError`` ends the round."""

    @property
    def page_size(self) -> int:
        """The number of results on a full page. It may change when an answer shows another one."""

    def page(self, keywords: Sequence[int], number: int) -> ProbeAnswer:
        """Return page ``number``, from 1, of the records that contain all ``keywords``."""

    def look_up(self, key: str) -> ProbeAnswer:
        """Return a page with the record of this key, or an empty page."""

    def look_up_many(self, keys: Sequence[str]) -> ProbeAnswer:
        """Return the records with these keys, as far as the server has them. It is called only if the
        candidates of the campaign have a ``bulk`` of more than 1."""


class IndexServer:
    """A simulated server with records in memory; results have the same sequence as the records.

    >>> from afresh.probes.keyword_index import index_relation, parse_keywords
    >>> index = index_relation({"title": ["web crawl", "web", "web"]}, [parse_keywords("title")])
    >>> server = IndexServer(index, ["a", "b", "c"], page_size=2, limit=2)
    >>> server.page([0], 1), server.page([0], 2).keys, server.look_up("c").keys
    (ProbeAnswer(total=3, keys=('a', 'b'), is_last=False), (), ('c',))
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
        return self.look_up_many([key])

    def look_up_many(self, keys: Sequence[str]) -> ProbeAnswer:
        found = tuple(key for key in keys if key in self._known)
        return ProbeAnswer(len(found), found)


_MOST_PAGES = 1000  # the most pages that are read of one query


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One request and its result: a ``page`` of the query for ``keywords``, or a look-up of ``key``, or of
    ``named`` keys of which ``key`` is the first.

    ``total`` is None if the server reported none. ``expected`` is what the request was expected to return,
    ``new`` the number of wanted records that it returned. ``cut`` says that the query ended before its
    reported total. ``doubled`` are keys that occurred twice on the page."""

    keywords: tuple[int, ...]
    key: str
    page: int
    total: int | None
    expected: float
    new: int
    cut: bool = False
    doubled: tuple[str, ...] = ()
    named: int = 1


def run_campaign(
    campaign: Campaign,
    server: ProbeServer,
    keys: Sequence[str],
    on_step: Callable[[int], None] = lambda _: None,
) -> tuple[ProbeStep, ...]:
    """Make requests until the campaign is done, and return them; ``keys`` are the keys of the local records.
    ``on_step`` is called after each request with the number of records still wanted."""
    places = {key: place for place, key in enumerate(keys)}
    steps: list[ProbeStep] = []
    seen = _SeenKeys(server)
    nothing: tuple[int, ...] = ()
    with suppress(ServerStoppedError):
        while (request := campaign.next_request()) is not None:
            expected, named = campaign.expected(request), 1
            if isinstance(request, BulkLookUp):
                wanted = [keys[place] for place in request.tuples]
                keywords, key, number, named = nothing, wanted[0], 1, len(wanted)
                answer, cut = server.look_up_many(wanted), False
                total: int | None = answer.total
                new = campaign.learn(request, local_tuples(answer.keys, places), total)
            elif isinstance(request, LookUp):
                keywords, key, number = nothing, keys[request.tuple], 1
                answer, cut = server.look_up(key), False
                total = len(answer.keys)
                new = campaign.learn(request, local_tuples(answer.keys, places))
            else:
                keywords, key, number = campaign.words(request), "", request.number
                answer = server.page(keywords, number)
                campaign.set_page_size(server.page_size)
                total, over = answer.total, seen.ends(keywords, number, answer)
                new = campaign.learn(request, local_tuples(answer.keys, places), total, over=over)
                cut = over and seen.promised(answer) > number
            doubled = _doubled_keys(answer)
            steps.append(ProbeStep(keywords, key, number, total, expected, new, cut, doubled, named))
            on_step(int(campaign.wanted.sum()))
    return tuple(steps)


def run_probes(
    probes: Sequence[Probe], server: ProbeServer, keys: Sequence[str], *, pages: int | None = None
) -> tuple[ProbeStep, ...]:
    """Read the result pages of each of the ``probes``, all or only the first ``pages``; return the requests.
    ``keys`` are the keys of the local records."""
    places = {key: place for place, key in enumerate(keys)}
    wanted = set(range(len(keys)))
    steps: list[ProbeStep] = []
    seen = _SeenKeys(server)
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
    """The keys that each query has returned so far."""

    def __init__(self, server: ProbeServer) -> None:
        self._server = server
        self._keys: dict[tuple[int, ...], set[str]] = {}

    def promised(self, answer: ProbeAnswer) -> int:
        """Return the number of pages that the query has according to the reported total."""
        return max(1, -(-(answer.total or 0) // self._server.page_size))

    def ends(self, keywords: tuple[int, ...], number: int, answer: ProbeAnswer) -> bool:
        """Add the keys of a page to those seen; return whether the query ends with this page."""
        seen = self._keys.setdefault(keywords, set())
        nothing_new = seen.issuperset(answer.keys)
        seen.update(answer.keys)
        return nothing_new or answer.is_last or number >= _MOST_PAGES


def _doubled_keys(answer: ProbeAnswer) -> tuple[str, ...]:
    if len(set(answer.keys)) == len(answer.keys):
        return ()
    return tuple(sorted({key for key in answer.keys if answer.keys.count(key) > 1}))
