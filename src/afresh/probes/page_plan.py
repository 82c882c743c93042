"""Plan a given number of requests: result pages of queries and look-ups by key, chosen greedily one by one.

After j pages of p results each, a query q with n results on the server has returned each of its records with
probability π_q = min(1, j·p/n). The expected value of a set of pages and look-ups is Σ_r v_r (1 − Π_q (1 −
π_q)), where v_r is the value of record r and the product is over the queries that match it. This is
submodular, and every step costs one request, so the greedy choice reaches at least 1 − 1/e of the best value.
A gain computed earlier is an upper bound of the gain now, so most queries need not be evaluated again (CELF,
Leskovec et al. 2007).

``PagePlan.bound`` shows how good the plan is: for any set of steps, the value of the best plan of N requests
is at most the value of the set plus the N largest further gains (Nemhauser, Wolsey & Fisher 1978).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from afresh.probes.candidates import Candidates, request_counts
from afresh.values.arrays import Float64s, Floats, Ints


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A request for page ``number`` (from 1) of the candidate query at the position ``query``."""

    query: int
    number: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """A request for one local record by its key; ``tuple`` is the position of the record."""

    tuple: int


@dataclass(frozen=True, slots=True)
class BulkLookUp:
    """A request for several local records by their keys; ``tuples`` are their positions."""

    tuples: tuple[int, ...]


ProbeRequest: TypeAlias = ReadPage | LookUp | BulkLookUp


@dataclass(frozen=True, slots=True, eq=False)
class PagePlan:
    """The requests (``steps``) in the order of choice, the expected gain of each, and an upper bound: no plan
    of as many requests is expected to gain more than ``bound``."""

    steps: tuple[ProbeRequest, ...]
    gains: Float64s
    bound: float


def plan_pages(
    candidates: Candidates, page_size: int, values: Floats, quota: int, *, limit: int | None = None
) -> PagePlan:
    """Return the greedy plan of at most ``quota`` requests; ``values`` are the values of the records.
    ``limit`` is the most results that the server returns for one query, over all pages.

    >>> from afresh.probes.postings import Postings
    >>> two = Candidates(np.array([[0], [1]]), Postings.of_rows([[0, 1, 2], [2, 3]], 4), np.array([3.0, 4.0]))
    >>> plan = plan_pages(two, 2, np.ones(4), 2)
    >>> plan.steps[0], plan.gains, plan.bound
    (ReadPage(query=0, number=1), array([2., 1.]), 4.0)
    """
    state = _State(candidates, page_size, np.asarray(values, dtype=np.float64), limit)
    first = state.bound(quota)
    heap = [(-gain, 0, query) for query, gain in enumerate(state.page_gains().tolist())]
    if candidates.bulk > 1:
        heap.append((-state.gain(2, 0), 2, 0))
    else:
        heap += [(-value, 1, place) for place, value in enumerate(state.values.tolist())]
    heapq.heapify(heap)
    steps: list[ProbeRequest] = []
    gains: list[float] = []
    while heap and len(steps) < quota:
        _, kind, number = heapq.heappop(heap)
        gain = state.gain(kind, number)
        if gain <= 0:
            continue
        if heap and (-gain, kind, number) > heap[0]:
            heapq.heappush(heap, (-gain, kind, number))
            continue
        steps.append(state.add_request(kind, number))
        gains.append(gain)
        if kind != 1:
            heapq.heappush(heap, (-state.gain(kind, number), kind, number))
    last = math.fsum(gains) + state.bound(quota)
    return PagePlan(tuple(steps), np.array(gains), min(first, last, float(state.values.sum())))


class _State:
    """The pages read so far. Kind 0 is the next page of query ``number``, kind 1 the look-up of a record,
    and kind 2 the look-up of as many records as one request can name, those of the highest values left. Its
    gain falls with every request, too, so that it is evaluated as lazily as the others."""

    def __init__(self, candidates: Candidates, page_size: int, values: Float64s, limit: int | None) -> None:
        self.values, self._tuples, self._page_size = values, candidates.tuples, page_size
        most = math.inf if limit is None else limit
        self._totals = np.maximum(candidates.totals, 1.0)
        self._pages = request_counts(np.minimum(candidates.totals, most), page_size)
        self._read = np.zeros(len(candidates))
        self._bulk = candidates.bulk
        self._left = values.copy()  # value times the probability that the record was not returned yet

    def page_gains(self) -> Float64s:
        unread = self._totals - self._read * self._page_size
        share = np.minimum(1.0, self._page_size / np.maximum(unread, 1e-9))
        return np.where(self._read < self._pages, self._tuples.sums(self._left) * share, 0.0)

    def gain(self, kind: int, number: int) -> float:
        if kind == 1:
            return float(self._left[number])
        if kind == 2:
            return float(self._left[self._best_bulk()].sum())
        if self._read[number] >= self._pages[number]:
            return 0.0
        return float(self._left[self._tuples.row(number)].sum()) * self._share(number)

    def add_request(self, kind: int, number: int) -> ProbeRequest:
        if kind == 1:
            self._left[number] = 0.0
            return LookUp(number)
        if kind == 2:
            named = self._best_bulk()
            named = named[self._left[named] > 0]
            self._left[named] = 0.0
            return BulkLookUp(tuple(named.tolist()))
        self._left[self._tuples.row(number)] *= 1.0 - self._share(number)
        self._read[number] += 1
        return ReadPage(number, int(self._read[number]))

    def bound(self, quota: int) -> float:
        """Return an upper bound on the gain of ``quota`` further requests: the sum of the largest gains now.
        Every unread page of a query counts like the next page, because later pages gain no more."""
        # k look-ups of B records each gain no more than the k·B largest values that are left.
        ordered = -np.sort(-self._left)
        alone = np.add.reduceat(ordered, np.arange(0, ordered.size, self._bulk)) if ordered.size else ordered
        gains = np.concatenate((self.page_gains(), alone))
        times = np.concatenate((self._pages - self._read, np.ones(len(alone))))
        order = np.argsort(-gains, kind="stable")
        before = np.cumsum(times[order]) - times[order]
        return float((gains[order] * np.clip(quota - before, 0.0, times[order])).sum())

    def _best_bulk(self) -> Ints:
        return np.argsort(-self._left, kind="stable")[: self._bulk]

    def _share(self, query: int) -> float:
        unread = self._totals[query] - self._read[query] * self._page_size
        return 1.0 if unread <= self._page_size else self._page_size / unread
