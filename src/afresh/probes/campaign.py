"""One round of refreshing records by keyword queries: choose the next request, and learn from its answer.

The records held are the local relation; a record is called a tuple in names. Without a quota of requests the
round follows a plan of whole queries and look-ups by key that covers all records (``probes.cover``). With a
quota it reads the pages that are expected to return the most value (``probes.page_plan``), or the first part
of the covering plan if that returns more. A plan is executed page by page, largest expected gain first, and
every answer is used at once. A page is not read if other requests already returned all its records, or if
look-ups cost less. Each time half of the remaining records were returned, the rest is planned again, with the
totals that the server reported. Records that no query returns are looked up by key.

A total is the number of results that a query has on the server. If totals are estimates, each reported total
improves them, and after a large change the candidate queries are searched again. A wrong estimate costs
requests, so the loss of queries compared with look-ups is limited: if N pages returned M new records, N − M
never exceeds 5 % of the records plus three. So a round takes at most 1.05·n + 3 requests for n local records.
If one request can look up B records by their keys, look-ups name B records each, and M and n are divided by
B.

No server is contacted here: ``next_request`` returns the request, and ``learn`` receives the answer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from afresh.probes.candidates import Candidates, LearningTotals, find_candidates, request_counts
from afresh.probes.cover import Cover, best_cover
from afresh.probes.page_plan import BulkLookUp, LookUp, PagePlan, ProbeRequest, ReadPage, plan_pages
from afresh.values.arrays import Bools, Float64s, Floats, Ints
from afresh.values.errors import UsageError

_REPLAN = 0.5  # the rest is planned again when this share of the planned records is left
LOST_SHARE, LOST_FEW = 0.05, 3.0
"""The most requests that wrong estimates of totals may cost: for each record, and in addition."""


class Campaign:
    """One round of requests that refresh local records (tuples): it chooses each request.

    ``candidates`` the queries to choose from.
    ``values``  what refreshing each record gains now; only records with a value above 0 are requested.
    ``limit``   the most results that the server returns for one query, over all pages.
    ``quota``   the most requests; None to continue until all records are covered.
    ``learned`` the estimator of the totals, which learns from every reported total; None if they are exact.

    >>> from afresh.probes.postings import Postings
    >>> one = Candidates(np.array([[0]]), Postings.of_rows([[0, 1, 2]], 4), np.array([3.0]))
    >>> campaign = Campaign(one, 10, np.ones(4))
    >>> campaign.next_request()
    ReadPage(query=0, number=1)
    >>> campaign.learn(ReadPage(0, 1), [0, 1, 2], total=3), campaign.next_request()
    (3, LookUp(tuple=3))
    """

    def __init__(
        self,
        candidates: Candidates,
        page_size: int,
        values: Floats,
        *,
        limit: int | None = None,
        quota: int | None = None,
        learned: LearningTotals | None = None,
    ) -> None:
        if page_size < 1:
            raise UsageError(f"page size {page_size}: must be 1 or more")
        self.candidates, self._page_size = candidates, page_size
        self._found_size = page_size
        self._limit, self._most = limit, math.inf if limit is None else limit
        self._values = np.asarray(values, dtype=np.float64)
        self._quota, self._learned = quota, learned
        self._found_at = np.zeros(0) if learned is None else learned.scales()
        self.wanted: Bools = self._values > 0
        look_ups = math.ceil(int(self.wanted.sum()) / candidates.bulk)
        most = min(look_ups, math.inf if quota is None else quota)
        self._named: Ints = np.empty(0, np.int64)  # planned for look-ups of several records, best first
        self._to_lose = math.inf if learned is None else LOST_SHARE * most + LOST_FEW
        self._asked: dict[tuple[int, ...], tuple[int, bool]] = {}  # pages read, and whether none is left
        self.missing: Bools = np.zeros(candidates.tuples.width, dtype=np.bool_)
        self.requests = 0
        self._totals = candidates.totals.copy()
        self._read = np.zeros(len(candidates), dtype=np.int64)
        self._closed = self._totals > self._most
        self._heap: list[tuple[float, int, int]] = []
        self._threshold = -1
        self.planned_requests, self.bound = self._plan()

    def set_page_size(self, page_size: int) -> None:
        """Use another number of results on a page: the one that the server's answers show."""
        self._page_size = page_size

    def next_request(self) -> ProbeRequest | None:
        """Return the planned request with the largest expected gain; None when the round is over.
        It is over if all wanted records were returned, or the quota is spent."""
        if int(self.wanted.sum()) <= self._threshold or self._has_moved():
            self._plan()
        while self.wanted.any() and (self._quota is None or self.requests < self._quota):
            while self._heap:
                _, kind, number = heapq.heappop(self._heap)
                request = self._request(kind, number)
                gain = self.expected(request)
                if gain <= 0 or (kind == 0 and not self._is_cheaper_than_look_ups(number)):
                    continue
                if self._heap and (-gain, kind, number) > self._heap[0]:
                    heapq.heappush(self._heap, (-gain, kind, number))
                    continue
                return request
            self._plan()
        return None

    def expected(self, request: ProbeRequest) -> float:
        """Return the expected value of the wanted records that the request would return."""
        if isinstance(request, LookUp):
            return float(self._values[request.tuple]) if self.wanted[request.tuple] else 0.0
        if isinstance(request, BulkLookUp):
            named = np.array(request.tuples, dtype=np.int64)
            return float(self._values[named[self.wanted[named]]].sum())
        if self._closed[request.query] or self._to_lose < 1:
            return 0.0
        unread = self._totals[request.query] - self._read[request.query] * self._page_size
        share = 1.0 if unread <= self._page_size else self._page_size / unread
        return float(self._values[self._wanted_tuples(request.query)].sum()) * share

    def learn(
        self,
        request: ProbeRequest,
        found: Sequence[int] | Ints,
        total: float | None = None,
        *,
        over: bool = False,
    ) -> int:
        """Learn from the answer to a request; return how many wanted records it returned for the first time.
        ``found`` are the local records in the answer, ``total`` is the reported total. ``over`` says that the
        query has no more results, whatever total was reported."""
        self.requests += 1
        places = np.unique(np.asarray(found, dtype=np.int64))
        new = int(self.wanted[places].sum())
        self.wanted[places] = False
        self.missing[places] = False
        if isinstance(request, LookUp):
            self.missing[request.tuple] |= self.wanted[request.tuple]
            self.wanted[request.tuple] = False
            return new
        if isinstance(request, BulkLookUp):
            self._learn_from_bulk(request, len(places), total)
            return new
        query, words = request.query, self.words(request)
        self._to_lose += new / self.candidates.bulk - 1
        if total is not None:
            self._totals[query] = total
            if self._learned is not None:
                self._learned.reported(words, total)
        self._read[query] = request.number
        self._closed[query] = over or self._pages_left(query) <= 0
        self._asked[words] = request.number, bool(self._closed[query])
        if not self._closed[query]:
            heapq.heappush(self._heap, (-self.expected(request), 0, query))
        return new

    def _learn_from_bulk(self, request: BulkLookUp, found: int, total: float | None) -> None:
        """Learn which of the named records are missing. If the server reports more results than it gave, it
        gives fewer at once, and the rest is asked for again. Without a total, they are looked up singly."""
        left = [place for place in request.tuples if self.wanted[place]]
        if total is not None and total > found > 0:
            self.candidates = replace(self.candidates, bulk=found)
            self._plan()
        elif total is None:
            for place in left:
                heapq.heappush(self._heap, _heap_entry(LookUp(place), float(self._values[place])))
            self._named = np.setdiff1d(self._named, left, assume_unique=True)
            self._push_bulk()
        else:
            self.missing[left], self.wanted[left] = True, False
            self._push_bulk()

    def _request(self, kind: int, number: int) -> ProbeRequest:
        if kind == 0:
            return ReadPage(number, int(self._read[number]) + 1)
        if kind == 1:
            return LookUp(number)
        self._named = self._named[self.wanted[self._named]]
        return BulkLookUp(tuple(self._named[: self.candidates.bulk].tolist()))

    def _push_bulk(self) -> None:
        """Plan the next look-up of several records, if there are any left to name."""
        gain = self.expected(self._request(2, 0))
        if gain > 0:
            heapq.heappush(self._heap, (-gain, 2, 0))

    def words(self, request: ReadPage) -> tuple[int, ...]:
        """Return the numbers of the keywords in the query of a request that was just made."""
        return _words(self.candidates.sets[request.query].tolist())

    def _wanted_tuples(self, query: int) -> Ints:
        members = self.candidates.tuples.row(query)
        return members[self.wanted[members]]

    def _pages_left(self, query: int) -> float:
        total = np.array([min(self._totals[query], self._most)])
        return float(request_counts(total, self._page_size)[0]) - float(self._read[query])

    def _is_cheaper_than_look_ups(self, query: int) -> bool:
        """Return whether the query's unread pages cost less than look-ups, or a quota is set."""
        wanted, bulk = len(self._wanted_tuples(query)), self.candidates.bulk
        # The last page is read even if it returns only one wanted record, unless one look-up names several.
        look_ups = max(wanted, 2) if bulk == 1 else wanted / bulk
        return self._pages_left(query) < look_ups or self._quota is not None

    def _plan(self) -> tuple[float, float]:
        """Fill the heap of planned requests; return a tuple (planned requests, bound).
        Without a quota, no plan needs fewer requests than the bound; with a quota, none gains more value."""
        if self._has_moved():
            self._find_candidates_again()
        pages = request_counts(np.minimum(self._totals, self._most), self._page_size) - self._read
        closed = self._closed | (self._to_lose < 1)
        costs = np.where(closed, np.inf, np.maximum(pages, 1.0))
        bulk = self.candidates.bulk
        branch = self._learned is None
        cover = best_cover(self.candidates.tuples, costs, self.wanted, branch=branch, bulk=bulk)
        self._threshold = int(_REPLAN * self.wanted.sum())
        left = math.inf if self._quota is None else self._quota - self.requests
        planned = min(cover.requests, left)
        pages_of = (ReadPage(query, int(self._read[query]) + 1) for query in cover.queries.tolist())
        named = self._by_value(cover.look_ups)
        requests: tuple[ReadPage | LookUp, ...] = tuple(pages_of)
        if bulk == 1:
            requests += tuple(map(LookUp, cover.look_ups.tolist()))
        bound = cover.bound if self._quota is None else float(self._values[self.wanted].sum())
        if left < cover.requests:
            pages_plan = self._best_pages(np.flatnonzero(~closed), int(left))
            bound = pages_plan.bound
            if float(pages_plan.gains.sum()) >= self._gain_of_beginning(cover, costs, left):
                requests = tuple(step for step in pages_plan.steps if not isinstance(step, BulkLookUp))
                steps = [step.tuples for step in pages_plan.steps if isinstance(step, BulkLookUp)]
                named = np.array([place for step in steps for place in step], dtype=np.int64)
        self._heap = [_heap_entry(request, self.expected(request)) for request in dict.fromkeys(requests)]
        heapq.heapify(self._heap)
        if bulk > 1:
            self._named = named
            self._push_bulk()
        return planned, bound

    def _by_value(self, places: Ints) -> Ints:
        return places[np.argsort(-self._values[places], kind="stable")]

    def _best_pages(self, among: Ints, count: int) -> PagePlan:
        """Return the plan of ``count`` requests with only the queries ``among``, which have pages left."""
        unread = self._totals[among] - self._read[among] * self._page_size
        some = self.candidates.take(among)
        now = replace(some, totals=unread)
        plan = plan_pages(now, self._page_size, self._values * self.wanted, count, limit=self._limit)
        steps = (
            ReadPage(int(among[step.query]), step.number) if isinstance(step, ReadPage) else step
            for step in plan.steps
        )
        return replace(plan, steps=tuple(steps))

    def _gain_of_beginning(self, cover: Cover, costs: Float64s, left: float) -> float:
        """Return the value that ``left`` requests of a cover return, best gain per request first."""
        taken = np.zeros(len(self._values), dtype=np.bool_)
        shares = []
        for query in cover.queries.tolist():
            new = self._wanted_tuples(query)
            new = new[~taken[new]]
            taken[new] = True
            value = float(self._values[new].sum())
            shares.append((value / costs[query], costs[query]))
        look_ups, bulk = self._by_value(cover.look_ups), self.candidates.bulk
        parts = (look_ups[start : start + bulk] for start in range(0, look_ups.size, bulk))
        shares += [(float(self._values[part].sum()), 1.0) for part in parts]
        total = 0.0
        for gain, count in sorted(shares, reverse=True):
            total += gain * min(count, left)
            left -= min(count, left)
        return total

    def _has_moved(self) -> bool:
        if self._learned is None:
            return False
        return self._page_size != self._found_size or self._learned.moved_from(self._found_at)

    def _find_candidates_again(self) -> None:
        """Search the candidate queries again with the present estimates; pages already read stay read."""
        assert self._learned is not None
        self._found_at, self._found_size = self._learned.scales(), self._page_size
        bulk = self.candidates.bulk
        self.candidates = find_candidates(self._learned.relation, self._learned, self._page_size, bulk=bulk)
        self._totals = self.candidates.totals.copy()
        self._closed = self._totals > self._most
        self._read = np.zeros(len(self.candidates), dtype=np.int64)
        for query, row in enumerate(self.candidates.sets.tolist()):
            if (known := self._asked.get(_words(row))) is not None:
                self._read[query], self._closed[query] = known


def _words(row: Iterable[int]) -> tuple[int, ...]:
    return tuple(word for word in row if word >= 0)


def _heap_entry(request: ReadPage | LookUp, gain: float) -> tuple[float, int, int]:
    return (-gain, 1, request.tuple) if isinstance(request, LookUp) else (-gain, 0, request.query)


def local_tuples(keys: Iterable[str], places: dict[str, int]) -> list[int]:
    """Return the positions of the local records whose keys are in an answer; ``places`` maps key to position.

    >>> local_tuples(["a", "z"], {"a": 3})
    [3]
    """
    return [places[key] for key in keys if key in places]
