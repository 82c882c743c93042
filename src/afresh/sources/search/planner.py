"""Choose the next request: the page or look-up with the highest sum of the poll values of its records.

If the server can look up several records by their keys at once, a look-up is for those of the highest values.

A page that was read before is expected to contain a share σ of its records again; σ is learned. The other
records of a query are expected on its unread pages, with equal probability. If j pages of a query with total
T (its number of results) were read, the next page of size p contains each of them with probability p/(T −
jp). Totals are reported by the server, or estimated (``totals``). When the estimates have changed much, the
candidate queries are computed again (``probes.candidates``). A page that is empty, or repeats only records of
other pages, is the end of its query, whatever total the server reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from afresh.probes.candidates import Candidates, find_candidates, request_counts
from afresh.probes.keyword_index import KeywordIndex
from afresh.sources.search.fill_limit import FillLimit
from afresh.sources.search.own_queries import OwnQueries
from afresh.sources.search.saved_records import QueryNote, ScaleNote
from afresh.sources.search.totals import LearnedTotals
from afresh.values.arrays import Bools, Float64s, Ints

_STABLE, _TRIALS = 9.0, 10.0  # the prior for σ is 9/10 with the weight of ten records
_MOST_PAGES = 20_000  # pages whose records are stored
_MOST_EXPECTED = 500  # records that a batch contains at most

Words = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request for one page of the query ``words`` (numbers of keywords). If there is a row in ``rows``, the
    query is the own query of that record. Without words, the request is a look-up by key of the records in
    ``rows`` of the relation."""

    words: Words = ()
    page: int = 1
    rows: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class _Query:
    """What is known of one query: its reported total, its last page, and the pages that were read. ``pages``
    has the rows of the relation on each page, ``keys`` all keys on it. ``last`` is infinite while unknown.
    ``asked`` counts the requests; the last one was at ``asked_s`` (Unix seconds)."""

    total: float | None = None
    last: float = math.inf
    asked: int = 0
    asked_s: float = -math.inf
    pages: dict[int, Ints] = field(default_factory=dict)
    keys: dict[int, frozenset[str]] = field(default_factory=dict)

    @property
    def next_page(self) -> int:
        number = 1
        while number in self.pages:
            number += 1
        return number


@dataclass(frozen=True, slots=True, eq=False)
class _ReadPages:
    """All pages that were read, and facts about each candidate query, as arrays.

    Page i has the rows ``members[starts[i]:starts[i+1]]`` and belongs to the candidate query ``numbers[i]``
    (−1: none). For each candidate query, ``totals`` is its reported total (NaN if unknown), ``read`` the
    number of pages that were read, and ``ended`` whether no page is left."""

    asks: list[PlannedRequest]
    members: Ints
    starts: Ints
    numbers: Ints
    totals: Float64s
    read: Float64s
    ended: Bools

    def sums(self, values: Float64s) -> Float64s:
        """Return for each page the sum of ``values`` over its records."""
        return np.asarray(np.add.reduceat(values[self.members], self.starts))


class Planner:
    """Chooses requests that refresh the records of ``relation``. ``sample`` is an index of records like those
    of the server; the totals of queries are estimated from it. ``limit`` is the most results that the server
    returns for a query. One request can look up ``keys_at_once`` records by key, none if it is 0.
    ``can_ask(words, page)`` returns whether a page of a query can be requested now.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.keyword_index import parse_keywords
    >>> index = index_relation({"t": ["web crawl", "web", "rare"]}, [parse_keywords("t")])
    >>> planner = Planner(index, index, page_size=10)
    >>> ask = planner.best(np.array([1.0, 1.0, 1.5])); ask, planner.expected_rows(ask, np.ones(3))
    (PlannedRequest(words=(0,), page=1, rows=()), array([0, 1]))
    >>> planner.learn(ask, ["a", "b"], np.array([0, 1]), total=2); planner.best(np.array([0.0, 0.0, 1.5]))
    PlannedRequest(words=(), page=1, rows=(2,))
    """

    def __init__(
        self,
        relation: KeywordIndex,
        sample: KeywordIndex,
        page_size: int,
        *,
        limit: int | None = None,
        keys_at_once: int = 1,
        can_ask: Callable[[Words, int], bool] = lambda words, page: True,  # noqa: ARG005
    ) -> None:
        self._relation, self._page_size, self._can_ask = relation, page_size, can_ask
        self.keys_at_once = keys_at_once
        self._alone: set[int] = set()  # rows that an answer for several keys lacked, without saying why
        self._most = math.inf if limit is None else float(limit)
        self._totals = LearnedTotals(relation, sample)
        self._fill = FillLimit(relation.tuples, keys_at_once)
        self._own_queries = OwnQueries()
        self._queries: dict[Words, _Query] = {}
        self._flat: _ReadPages | None = None
        self._stayed, self._expected = _STABLE, _TRIALS
        self.search_candidates()

    @property
    def is_outdated(self) -> bool:
        """Whether the page size or the estimated totals have changed so much that ``search_candidates``
        should be called."""
        return self._page_size != self._candidates_size or self._totals.moved_from(self._scales)

    def set_page_size(self, page_size: int) -> None:
        """Use another number of results on a page: the one that the server's answers show."""
        self._page_size = page_size

    def best(self, values: Float64s, must: int | None = None) -> PlannedRequest | None:
        """Return the request with the highest expected sum of ``values``, the poll values of the records.
        With ``must``, only requests that may find that row are considered. The result is None if no request
        has a value."""
        chosen: tuple[float, PlannedRequest] | None = None
        ways = [self._best_look_up]
        if not self._fill.is_reached:
            ways = [self._best_read, self._best_unread, self._best_look_up]
        for gain, ask in (way(values, must) for way in ways):
            if ask is not None and gain > 0 and (chosen is None or gain > chosen[0]):
                chosen = gain, ask
        return None if chosen is None else chosen[1]

    def expected_rows(self, ask: PlannedRequest, values: Float64s) -> Ints:
        """Return the rows that a request may find: at most 500, those with the highest poll ``values``."""
        if not ask.words:
            return np.array(ask.rows, dtype=np.int64)
        query = self._queries.get(ask.words)
        if query is not None and ask.page in query.pages:
            return np.union1d(query.pages[ask.page], np.array(ask.rows, dtype=np.int64))
        members = self._relation.matches(np.array([ask.words], dtype=np.int64))[1]
        if query is not None and query.pages:
            members = np.setdiff1d(members, np.concatenate(list(query.pages.values())))
        if members.size > _MOST_EXPECTED:
            members = members[np.argsort(-values[members], kind="stable")[:_MOST_EXPECTED]]
        return np.union1d(members, np.array(ask.rows, dtype=np.int64))

    def learn(
        self,
        ask: PlannedRequest,
        keys: list[str],
        rows: Ints,
        total: float | None,
        now_s: float = 0.0,
        *,
        has_more: bool | None = None,
    ) -> None:
        """Record the answer to a request: the ``keys`` on the page, and the reported total. ``rows`` are the
        rows of those keys that are in the relation. ``has_more`` says whether a next page exists, None if
        the answer does not tell."""
        if not ask.words:
            self._fill.mark_seen(np.array(ask.rows, dtype=np.int64))
            self._alone.difference_update(rows.tolist() if len(ask.rows) > 1 else ask.rows)
            return
        self._fill.record_query(rows)
        self._own_queries.end(rows.tolist())
        query = self._queries.setdefault(ask.words, _Query())
        query.asked, query.asked_s = query.asked + 1, now_s
        before = query.pages.get(ask.page)
        if before is not None:
            self._stayed += float(np.isin(before, rows).sum())
            self._expected += float(before.size)
        if total is not None:
            query.total = float(total)
            self._totals.reported(ask.words, query.total)
        others = [page for number, page in query.keys.items() if number != ask.page]
        repeats = bool(others) and frozenset(keys) <= frozenset().union(*others)
        if not keys or repeats:
            self._end(query, ask.page - 1)
            return
        query.pages[ask.page], query.keys[ask.page] = rows, frozenset(keys)
        is_last = self._is_last(ask.page, len(keys), query.total)
        if has_more is not None:  # some servers name a next page for ever
            is_last = not has_more or (is_last and query.total is not None)
        if is_last:
            self._end(query, ask.page)
        elif query.last <= ask.page:
            query.last = math.inf  # the query has more results now
        self._flat = None
        self._forget()

    def mark_seen(self, rows: Ints) -> None:
        """Record that these records were seen before, in an earlier run."""
        self._fill.mark_seen(rows)

    def save(self, keys: Sequence[str], adopted: Collection[str] = ()) -> Iterable[QueryNote]:
        """Yield what is saved of each query. ``keys`` are the keys of the relation, by row; those ``adopted``
        are about to join it."""
        for words, query in self._queries.items():
            pages = {page: [keys[row] for row in rows.tolist()] for page, rows in query.pages.items()}
            for page, found in query.keys.items() if adopted else ():
                pages[page] = list(dict.fromkeys([*pages[page], *found.intersection(adopted)]))
            last = None if query.last == math.inf else int(query.last)
            named = tuple(self._relation.keywords[word] for word in words)
            yield QueryNote(named, query.total, last, query.asked, query.asked_s, pages)

    def scales(self) -> Iterable[ScaleNote]:
        """Return for each column of keywords how many times as many results the server has as the sample."""
        return self._totals.notes()

    def load(self, notes: Iterable[QueryNote], rows: Mapping[str, int]) -> None:
        """Load saved queries that are newer than the known ones. ``rows`` maps keys to rows."""
        numbers = {keyword: number for number, keyword in enumerate(self._relation.keywords)}
        for note in notes:
            words = tuple(sorted(numbers.get(word, -1) for word in note.words))
            known = self._queries.get(words)
            if words[0] < 0 or (known is not None and known.asked_s >= note.asked_s):
                continue
            query = _Query(note.total, math.inf if note.last is None else note.last, note.asked, note.asked_s)
            for page, keys in note.pages.items():
                ours = sorted(rows[key] for key in keys if key in rows)
                query.pages[page], query.keys[page] = np.array(ours, dtype=np.int64), frozenset(keys)
            self._queries[words], self._flat = query, None
            if note.total is not None:
                self._totals.reported(words, note.total)
        self._forget()

    def narrowest_query(self, row: int, most: int = 4) -> Words:
        """Return the ``most`` rarest keywords of a record: the query with the fewest other results."""
        words = self._relation.by_tuple.row(row)
        if not words.size:
            return ()
        expected = self._totals(words[:, None])
        return tuple(sorted(words[np.argsort(expected, kind="stable")[:most]].tolist()))

    def own_query(self, row: int) -> PlannedRequest | None:
        """Return the request that searches for one record without a look-up: the page of its own query that
        showed it before, or else the first page that was not yet read for it. None without keywords."""
        words, page = self._own_queries.words(row), self._own_queries.next_page(row)
        if not words:  # the search for it begins
            words = self.narrowest_query(row)
            query = self._queries.get(words, _Query())
            page = next((number for number, rows in query.pages.items() if row in rows), 1)
        if not words:
            return None
        return PlannedRequest(words, page if self._can_ask(words, page) else 1, (row,))

    def is_absent(self, ask: PlannedRequest) -> bool | None:
        """Return what the answer to ``ask``, an own query, says of its record, which was not on the page.
        True: the server does not have it, because all results were read. None: the next page may show it.
        False: it was not found, but not all results can be read now."""
        (row,), searches = ask.rows, self._own_queries
        searches.not_on(row, ask.words, ask.page)
        query, following = self._queries.get(ask.words), searches.next_page(row)
        if query is None:
            return False
        readable = math.inf if query.total is None else min(query.total, self._most)
        if following > query.last or (following - 1) * self._page_size >= readable:
            searches.end([row])
            return query.total is None or len(frozenset().union(*query.keys.values())) == query.total
        if not self._can_ask(ask.words, following):
            searches.end([row])
            return False
        return False if searches.must_pause(row) else None

    def _is_last(self, page: int, rows: int, total: float | None) -> bool:
        """Return whether a page with ``rows`` results is the last one. A short page is not if the reported
        total says that more follow: the server may leave out results, or give smaller pages than asked."""
        before = (page - 1) * self._page_size
        return rows < self._page_size and (total is None or before + rows >= min(total, self._most))

    def _end(self, query: _Query, last: int) -> None:
        query.last = max(last, 0)
        for number in [number for number in query.pages if number > last]:
            del query.pages[number], query.keys[number]
        self._flat = None

    def search_candidates(self) -> None:
        """Compute the candidate queries again, with the totals that are estimated now."""
        self._scales, self._candidates_size = self._totals.scales(), self._page_size
        self._candidates: Candidates = find_candidates(self._relation, self._totals, self._page_size)
        words = [tuple(word for word in row if word >= 0) for row in self._candidates.sets.tolist()]
        self._words: list[Words] = words
        self._numbers = {query: number for number, query in enumerate(words)}
        self._flat = None

    def _best_read(self, values: Float64s, must: int | None) -> tuple[float, PlannedRequest | None]:
        """Return a tuple (expected value, request) for the best page among those that were read before."""
        seen = self._read_pages()
        if not seen.asks:
            return 0.0, None
        can_ask = np.array([self._can_ask(ask.words, ask.page) for ask in seen.asks])
        gains = np.where(can_ask, seen.sums(values) * (self._stayed / self._expected), 0.0)
        if must is not None:
            gains = np.where(seen.sums((np.arange(values.size) == must).astype(np.float64)) > 0, gains, 0.0)
        best = int(gains.argmax())
        return float(gains[best]), seen.asks[best]

    def _best_unread(self, values: Float64s, must: int | None) -> tuple[float, PlannedRequest | None]:
        """Return a tuple (expected value, request) for the best unread page of the candidate queries."""
        found, seen = self._candidates, self._read_pages()
        if not len(found):
            return 0.0, None
        totals = np.where(np.isnan(seen.totals), found.totals, seen.totals)
        gains = found.tuples.sums(values)
        if seen.asks:
            ours = seen.numbers >= 0
            np.subtract.at(gains, seen.numbers[ours], seen.sums(values)[ours])
        # The probability p/(T − jp) that an unread record is on the next page (see the top of this file).
        share = self._share(totals, seen.read)
        more = ~seen.ended & (seen.read < request_counts(np.minimum(totals, self._most), self._page_size))
        gains = np.where(more, gains * share, 0.0)
        if must is not None:
            holds = np.zeros(len(found), dtype=np.bool_)
            holds[found.tuples.row_ids()[found.tuples.members == must]] = True
            gains = np.where(holds, gains, 0.0)
        best = int(gains.argmax())
        query = self._queries.get(self._words[best])
        return float(gains[best]), PlannedRequest(self._words[best], 1 if query is None else query.next_page)

    def _read_pages(self) -> _ReadPages:
        """Return the arrays of all pages that were read. They are built again after each answer."""
        if self._flat is None:
            asks, parts, numbers = [], [np.empty(0, np.int64)], []
            count = len(self._candidates)
            totals, read, ended = np.full(count, np.nan), np.zeros(count), np.zeros(count, np.bool_)
            for words, query in self._queries.items():
                number = self._numbers.get(words, -1)
                if number >= 0:
                    totals[number] = math.nan if query.total is None else query.total
                    read[number] = len(query.pages)
                    is_over = query.next_page > query.last
                    ended[number] = is_over or not self._can_ask(words, query.next_page)
                for page, rows in query.pages.items():
                    if rows.size:
                        asks.append(PlannedRequest(words, page))
                        parts.append(rows)
                        numbers.append(number)
            sizes = np.array([part.size for part in parts[1:]], dtype=np.int64)
            members, starts = np.concatenate(parts), np.cumsum(sizes) - sizes
            self._flat = _ReadPages(asks, members, starts, np.array(numbers, np.int64), totals, read, ended)
        return self._flat

    def ask_alone(self, row: int) -> None:
        """Look this record up in a request of its own, because an answer for several keys did not show
        whether it exists."""
        self._alone.add(row)

    def _best_look_up(self, values: Float64s, must: int | None) -> tuple[float, PlannedRequest | None]:
        """Return a tuple (value, request) for the look-up by key of the best records, as many as one request
        may name. Without look-ups, the request is the own query of the best record."""
        row = int(values.argmax()) if must is None else must
        if self.keys_at_once == 0:
            ask, read = self.own_query(row), self._own_queries.pages_read(row)
            if ask is None or read == 0:
                return float(values[row]), ask
            total = self._totals(np.array([ask.words], dtype=np.int64))
            return float(values[row] * self._share(total, np.array([read]))[0]), ask
        single = float(values[row]), PlannedRequest(rows=(row,))
        if self.keys_at_once == 1 or (must is not None and row in self._alone):
            return single
        together = values.copy()
        together[list(self._alone)] = 0.0
        best = np.argsort(-together, kind="stable")[: self.keys_at_once]
        best = best[together[best] > 0]
        if must is not None and must not in best:
            best = np.append(best[: self.keys_at_once - 1], must)
        gain = float(together[best].sum())
        return single if single[0] > gain else (gain, PlannedRequest(rows=tuple(best.tolist())))

    def _share(self, totals: Float64s, read: Float64s | Ints) -> Float64s:
        """Return the probability that an unread record is on the next page, after ``read`` pages."""
        unread = np.maximum(totals - read * self._page_size, 1.0)
        return np.asarray(np.minimum(1.0, self._page_size / unread))

    def _forget(self) -> None:
        """Delete the oldest queries while more than 20,000 pages are stored."""
        while sum(len(query.pages) for query in self._queries.values()) > _MOST_PAGES:
            del self._queries[next(iter(self._queries))]
