"""Which request next: the page or look-up whose records are worth the most together.

A page that was read before is expected to hold what it held then, a share σ of it (learned). The pages of a
query that were not read yet hold its other records, evenly: of a query with total T and j pages read, the
next page of p brings each with probability p/(T − jp). Totals are those reported or estimated
(``search_totals``); when the estimates have moved far, the queries worth considering are found anew
(``probes.candidates``). What the pages really hold counts, not what the server claims: a page that is empty
or only repeats others ends its query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from afresh.probes.candidates import Candidates, find_candidates, requests_of
from afresh.probes.keyword_index import KeywordIndex
from afresh.sources.search.saved_state import QueryNote, ScaleNote
from afresh.sources.search.totals import LearnedTotals
from afresh.values.arrays import Bools, Float64s, Ints

_STABLE, _TRIALS = 9.0, 10.0  # what is believed of pages before any was read twice
_MOST_PAGES = 20_000  # pages whose records are remembered
_MOST_HOPED = 500  # records that one page is hoped to bring some of

Words = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """Page ``page`` of the query of these keywords; no keywords: the record ``place`` by its key."""

    words: Words = ()
    page: int = 1
    place: int = -1


@dataclass(slots=True, eq=False)
class _Query:
    """What a query was seen to hold: its pages, its total as reported, its last page if it is known."""

    total: float | None = None
    last: float = math.inf
    asked: int = 0
    asked_s: float = -math.inf
    pages: dict[int, Ints] = field(default_factory=dict)
    keys: dict[int, frozenset[str]] = field(default_factory=dict)

    @property
    def next_page(self) -> int:
        """The first page not read."""
        number = 1
        while number in self.pages:
            number += 1
        return number


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Pages read, with their records one after the other; and totals, pages read and ends of candidates."""

    asks: list[PlannedRequest]
    members: Ints
    starts: Ints
    numbers: Ints
    totals: Float64s
    read: Float64s
    ended: Bools

    def sums(self, values: Float64s) -> Float64s:
        """The sum of ``values`` over the records of each page."""
        return np.asarray(np.add.reduceat(values[self.members], self.starts))


class Planner:
    """``sample`` is a corpus like the server's under the relation's keywords; ``look_ups``: keys are found.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.splitters import parse_keywords
    >>> index = index_relation({"t": ["web crawl", "web", "rare"]}, [parse_keywords("t")])
    >>> planner = Planner(index, index, page_size=10)
    >>> ask = planner.best(np.array([1.0, 1.0, 1.5])); ask, planner.hoped(ask, np.ones(3))
    (PlannedRequest(words=(0,), page=1, place=-1), array([0, 1]))
    >>> planner.learn(ask, ["a", "b"], np.array([0, 1]), total=2); planner.best(np.array([0.0, 0.0, 1.5]))
    PlannedRequest(words=(), page=1, place=2)
    """

    def __init__(
        self,
        relation: KeywordIndex,
        sample: KeywordIndex,
        page_size: int,
        *,
        limit: int | None = None,
        look_ups: bool = True,
    ) -> None:
        self._relation, self._page_size, self._look_ups = relation, page_size, look_ups
        self._most = math.inf if limit is None else float(limit)
        self._totals = LearnedTotals(relation, sample)
        self._queries: dict[Words, _Query] = {}
        self._flat: _Seen | None = None
        self._again, self._hoped = _STABLE, _TRIALS
        self._find()

    @property
    def stale(self) -> bool:
        """Whether estimates have moved so far that ``renew`` is due."""
        return self._totals.moved_from(self._found_at)

    def renew(self) -> None:
        """Find the queries worth considering, by the totals known now."""
        self._find()

    def best(self, values: Float64s, must: int | None = None) -> PlannedRequest | None:
        """The request of the largest expected value; ``must``: of those that may bring this record."""
        chosen: tuple[float, PlannedRequest] | None = None
        for gain, ask in (self._known(values, must), self._unread(values, must), self._single(values, must)):
            if ask is not None and gain > 0 and (chosen is None or gain > chosen[0]):
                chosen = gain, ask
        return None if chosen is None else chosen[1]

    def hoped(self, ask: PlannedRequest, values: Float64s) -> Ints:
        """The records that a request may bring, the most valuable if there are very many."""
        if not ask.words:
            return np.array([ask.place], dtype=np.int64)
        query = self._queries.get(ask.words)
        if query is not None and ask.page in query.pages:
            return query.pages[ask.page]
        members = self._relation.matches(np.array([ask.words], dtype=np.int64))[1]
        if query is not None and query.pages:
            members = np.setdiff1d(members, np.concatenate(list(query.pages.values())))
        if members.size > _MOST_HOPED:
            members = members[np.argsort(-values[members], kind="stable")[:_MOST_HOPED]]
        return np.sort(members)

    def learn(
        self, ask: PlannedRequest, keys: list[str], places: Ints, total: float | None, now_s: float = 0.0
    ) -> None:
        """What a page held: all its keys, and the rows of those that are ours."""
        if not ask.words:
            return
        query = self._queries.setdefault(ask.words, _Query())
        query.asked, query.asked_s = query.asked + 1, now_s
        before = query.pages.get(ask.page)
        if before is not None:
            self._again += float(np.isin(before, places).sum())
            self._hoped += float(before.size)
        if total is not None:
            query.total = float(total)
            self._totals.reported(ask.words, query.total)
        others = [page for number, page in query.keys.items() if number != ask.page]
        repeats = bool(others) and frozenset(keys) <= frozenset().union(*others)
        if not keys or repeats:
            self._end(query, ask.page - 1)
            return
        query.pages[ask.page], query.keys[ask.page] = places, frozenset(keys)
        if len(keys) < self._page_size:
            self._end(query, ask.page)
        elif query.last <= ask.page:
            query.last = math.inf  # it has grown since
        self._flat = None
        self._forget()

    def notes(self, keys: Sequence[str]) -> Iterable[QueryNote]:
        """What was learned of queries; ``keys`` are those of the rows."""
        for words, query in self._queries.items():
            pages = {page: [keys[at] for at in places.tolist()] for page, places in query.pages.items()}
            last = None if query.last == math.inf else int(query.last)
            named = tuple(self._relation.keywords[word] for word in words)
            yield QueryNote(named, query.total, last, query.asked, query.asked_s, pages)

    def scales(self) -> Iterable[ScaleNote]:
        """How many times as many results the server has as the sample, by attribute."""
        return self._totals.notes()

    def recall(self, notes: Iterable[QueryNote], places: Mapping[str, int]) -> None:
        """What others learned of queries, where it is newer; ``places`` are the rows of the keys."""
        numbers = {keyword: number for number, keyword in enumerate(self._relation.keywords)}
        for note in notes:
            words = tuple(sorted(numbers.get(word, -1) for word in note.words))
            known = self._queries.get(words)
            if words[0] < 0 or (known is not None and known.asked_s >= note.asked_s):
                continue
            query = _Query(note.total, math.inf if note.last is None else note.last, note.asked, note.asked_s)
            for page, keys in note.pages.items():
                ours = sorted(places[key] for key in keys if key in places)
                query.pages[page], query.keys[page] = np.array(ours, dtype=np.int64), frozenset(keys)
            self._queries[words], self._flat = query, None
            if note.total is not None:
                self._totals.reported(words, note.total)
        self._forget()

    def narrow(self, place: int, most: int = 4) -> Words:
        """The rarest keywords of a record: the query that is likeliest to bring it alone."""
        words = self._relation.by_tuple.row(place)
        if not words.size:
            return ()
        expected = self._totals(words[:, None])
        return tuple(sorted(words[np.argsort(expected, kind="stable")[:most]].tolist()))

    def _end(self, query: _Query, last: int) -> None:
        query.last = max(last, 0)
        for number in [number for number in query.pages if number > last]:
            del query.pages[number], query.keys[number]
        self._flat = None

    def _find(self) -> None:
        self._found_at = self._totals.scales()
        self._candidates: Candidates = find_candidates(self._relation, self._totals, self._page_size)
        words = [tuple(word for word in row if word >= 0) for row in self._candidates.sets.tolist()]
        self._words: list[Words] = words
        self._numbers = {query: number for number, query in enumerate(words)}
        self._flat = None

    def _known(self, values: Float64s, must: int | None) -> tuple[float, PlannedRequest | None]:
        """The best of the pages read before."""
        seen = self._seen()
        if not seen.asks:
            return 0.0, None
        gains = seen.sums(values) * (self._again / self._hoped)
        if must is not None:
            gains = np.where(seen.sums((np.arange(values.size) == must).astype(np.float64)) > 0, gains, 0.0)
        best = int(gains.argmax())
        return float(gains[best]), seen.asks[best]

    def _unread(self, values: Float64s, must: int | None) -> tuple[float, PlannedRequest | None]:
        """The best of the next pages of queries not read to the end."""
        found, seen = self._candidates, self._seen()
        if not len(found):
            return 0.0, None
        totals = np.where(np.isnan(seen.totals), found.totals, seen.totals)
        gains = found.tuples.sums(values)
        if seen.asks:
            ours = seen.numbers >= 0
            np.subtract.at(gains, seen.numbers[ours], seen.sums(values)[ours])
        share = np.minimum(1.0, self._page_size / np.maximum(totals - seen.read * self._page_size, 1.0))
        more = ~seen.ended & (seen.read < requests_of(np.minimum(totals, self._most), self._page_size))
        gains = np.where(more, gains * share, 0.0)
        if must is not None:
            holds = np.zeros(len(found), dtype=np.bool_)
            holds[found.tuples.row_ids()[found.tuples.members == must]] = True
            gains = np.where(holds, gains, 0.0)
        best = int(gains.argmax())
        query = self._queries.get(self._words[best])
        return float(gains[best]), PlannedRequest(self._words[best], 1 if query is None else query.next_page)

    def _seen(self) -> _Seen:
        """What all queries were seen to hold, as arrays; made anew after each answer."""
        if self._flat is None:
            asks, parts, numbers = [], [np.empty(0, np.int64)], []
            count = len(self._candidates)
            totals, read, ended = np.full(count, np.nan), np.zeros(count), np.zeros(count, np.bool_)
            for words, query in self._queries.items():
                number = self._numbers.get(words, -1)
                if number >= 0:
                    totals[number] = math.nan if query.total is None else query.total
                    read[number], ended[number] = len(query.pages), query.next_page > query.last
                for page, places in query.pages.items():
                    if places.size:
                        asks.append(PlannedRequest(words, page))
                        parts.append(places)
                        numbers.append(number)
            sizes = np.array([part.size for part in parts[1:]], dtype=np.int64)
            members, starts = np.concatenate(parts), np.cumsum(sizes) - sizes
            self._flat = _Seen(asks, members, starts, np.array(numbers, np.int64), totals, read, ended)
        return self._flat

    def _single(self, values: Float64s, must: int | None) -> tuple[float, PlannedRequest | None]:
        """The best look-up; without keys the narrowest query of the best record stands for it."""
        place = int(values.argmax()) if must is None else must
        if self._look_ups:
            return float(values[place]), PlannedRequest(place=place)
        words = self.narrow(place)
        return (float(values[place]), PlannedRequest(words)) if words else (0.0, None)

    def _forget(self) -> None:
        """The pages of the queries known longest, where there are very many."""
        while sum(len(query.pages) for query in self._queries.values()) > _MOST_PAGES:
            del self._queries[next(iter(self._queries))]
