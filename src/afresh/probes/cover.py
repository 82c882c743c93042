"""Find the fewest requests that return all wanted records (tuples): set covering by Lagrange multipliers.

    min Σ_q c_q x_q + Σ_r y_r   subject to   Σ_{q ∋ r} x_q + y_r ≥ 1 for every record r,   x, y ∈ {0, 1}

Query q takes c_q requests and is used if x_q = 1. If y_r = 1, record r is looked up by its key for one
request, so a cover always exists. If one request can look up B records (a bulk), the second sum is
⌈Σ_r y_r / B⌉, and the bound holds with prices of at most 1/B. If c_q is the number of results of q on the
server and there are no look-ups, this is the covering program of Yang et al. 2010, §3.3.

A greedy choice needs a few per cent more requests, and more if there are more candidate queries. Here
multipliers u_r, the prices of covering the records, are found by subgradient steps (Held & Karp 1971;
Caprara, Fischetti & Toth 1999). They prove that every plan needs at least Σ u_r + Σ_q min(0, c_q − Σ_{r∈q}
u_r) requests. The integer program is solved over the queries with the lowest reduced cost c_q − Σ_{r∈q} u_r.

The greedy cover is computed lazily. The gain of a query only falls as others are chosen, because coverage is
submodular, so a gain computed earlier is an upper bound. The best query of a heap is evaluated again, and
chosen if it is still the best (CELF, Leskovec et al. 2007). The result is that of the plain greedy algorithm,
with the lower number first among equals, at a fraction of the evaluations.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.probes.postings import Postings
from afresh.values.arrays import Bools, Float64s, Floats, Ints

_STEPS = 400  # the most subgradient steps; fewer steps only make the bound weaker
_PATIENCE = 10  # steps without a better bound before steps are shortened
_SHORTER = 0.6
_NEAR = 1e-6
_MOST_NODES = 1_000  # after this many nodes the integer program returns the best cover found
_CORE_SHARE = 0.5  # queries in the integer program, per record
_FEWEST_CORE = 2_000
_MOST_BRANCHED = 50_000  # for more records the integer program would take too long


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """The ``queries`` to read to the end, the records to look up by key, and the number of all requests.
    No choice of whole queries and look-ups covers all records with fewer than ``bound`` requests."""

    queries: Ints
    look_ups: Ints
    requests: float
    bound: float


def best_cover(
    tuples: Postings, costs: Floats, wanted: Bools, *, branch: bool = True, bulk: int = 1
) -> Cover:
    """Return the cheapest cover of the ``wanted`` records that was found, by queries and look-ups.

    Row q of ``tuples`` holds the records that query q returns; ``costs`` are the requests that each query
    takes. With ``branch`` an integer program is solved too, which takes longer; use it if the costs are
    exact. ``bulk`` is the number of records that one look-up can name.

    >>> queries = Postings.of_rows([[0, 1, 2, 3], [0, 1, 4], [2, 3, 5]], width=6)
    >>> cover = best_cover(queries, np.ones(3), np.ones(6, dtype=bool))  # greedy needs 3
    >>> cover.queries, cover.requests, cover.bound
    (array([1, 2]), 2.0, 2.0)
    >>> best_cover(queries, np.ones(3), np.ones(6, dtype=bool), bulk=5).requests  # no query is better
    2.0
    """
    price: Float64s = np.array(costs, dtype=np.float64)
    left = tuples if wanted.all() else tuples.keep(wanted)
    rows = np.flatnonzero(wanted)
    useful = np.flatnonzero(left.sizes > price * bulk)  # other queries are no better than look-ups
    if not useful.size:
        fewest = math.ceil(rows.size / bulk)
        return Cover(np.empty(0, np.int64), rows, float(fewest), float(fewest))
    place = np.cumsum(wanted) - 1
    kept = left.take(useful)
    problem = _CoveringProblem(Postings(kept.starts, place[kept.members], rows.size), price[useful], bulk)
    solution, bound = problem.solve(branch=branch)
    covered = np.zeros(rows.size, dtype=np.bool_)
    covered[problem.tuples.take(solution).members] = True
    whole = bool(np.all(problem.costs == np.floor(problem.costs)))
    sure = math.ceil(bound - _NEAR * max(1.0, bound)) if whole else bound
    requests = problem.requests(solution)
    return Cover(useful[solution], rows[~covered], requests, float(min(sure, requests)))


class _CoveringProblem:
    """A covering problem in which every record is wanted and every query is cheaper than look-ups, of which
    one names up to ``bulk`` records."""

    def __init__(self, tuples: Postings, costs: Float64s, bulk: int = 1) -> None:
        from scipy.sparse import csr_array

        self.tuples, self.costs, self._bulk = tuples, costs, bulk
        shape = (tuples.height, tuples.width)
        self._matrix = csr_array((np.ones(tuples.members.size), tuples.members, tuples.starts), shape=shape)
        self._turned = self._matrix.T.tocsr()

    def solve(self, *, branch: bool) -> tuple[Ints, float]:
        """Return a tuple (queries of the best cover found, lower bound on the requests of any cover)."""
        start = self._greedy(self._cheapest())
        prices, bound = self._prices(self.requests(start))
        if self.requests(start) < bound + 1 - _NEAR:
            return start, bound
        reduced = self.costs - self._matrix @ prices
        count = max(int(_CORE_SHARE * self.tuples.width), _FEWEST_CORE)
        core = np.sort(np.argsort(reduced, kind="stable")[:count])
        found = [start, self._greedy(core)]
        if branch and self.tuples.width <= _MOST_BRANCHED:
            found.append(self._integer_program(np.union1d(core, min(found, key=self.requests))))
        return min(found, key=self.requests), bound

    def requests(self, solution: Ints) -> float:
        """Return the requests of these queries and of look-ups for the records that they do not cover."""
        covered = np.unique(self.tuples.take(solution).members).size
        return float(self.costs[solution].sum()) + math.ceil((self.tuples.width - covered) / self._bulk)

    def _greedy(self, among: Ints) -> Ints:
        return among[greedy_cover(self.tuples.take(among), self.costs[among], self._bulk)]

    def _cheapest(self) -> Ints:
        """Return the queries that have the least cost per record among all queries for some record."""
        price = np.repeat(self.costs / self.tuples.sizes, self.tuples.sizes)
        order = np.lexsort((price, self.tuples.members))
        first = np.diff(self.tuples.members[order], prepend=-1) > 0
        return np.unique(self.tuples.row_ids()[order[first]])

    def _prices(self, requests: float) -> tuple[Float64s, float]:
        """Return a tuple (multipliers, bound): the price of each record, and the best bound that they prove.
        Prices are from 0 to the cost of a look-up. ``requests`` is the cost of the best cover so far."""
        highest = 1.0 / self._bulk
        prices = np.full(self.tuples.width, highest)
        share = np.repeat(self.costs / self.tuples.sizes, self.tuples.sizes)
        np.minimum.at(prices, self.tuples.members, share)
        best, bound, length, idle = prices, -math.inf, 1.0, 0
        for _ in range(_STEPS):
            reduced = self.costs - self._matrix @ prices
            taken = reduced < 0
            value = float(prices.sum() + reduced[taken].sum())
            if value > bound + _NEAR:
                best, bound, idle = prices, value, 0
            else:
                idle += 1
            if requests < bound + 1 - _NEAR:
                break  # this proves that no plan of whole requests is better
            if idle >= _PATIENCE:
                prices, length, idle = best, length * _SHORTER, 0
                continue
            slope = 1.0 - self._turned @ taken.astype(np.float64)
            slope[(prices <= 0) & (slope < 0) | (prices >= highest) & (slope > 0)] = 0.0
            steepness = float(slope @ slope)
            if steepness == 0:
                break
            prices = np.clip(prices + length * (requests - value) / steepness * slope, 0.0, highest)
        return best, bound

    def _integer_program(self, among: Ints) -> Ints:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array, eye_array, hstack, vstack

        width, bulk = self.tuples.width, self._bulk
        columns: Any = hstack((self._turned[:, among], eye_array(width)), format="csr")
        costs = np.concatenate((self.costs[among], np.ones(width)))
        most, lowest = np.ones(len(costs)), np.ones(width)
        if bulk > 1:  # one more variable, the number of look-ups z, with bulk·z ≥ Σ y
            used = np.concatenate((np.zeros(among.size), -np.ones(width), [float(bulk)]))
            columns = vstack(
                (hstack((columns, csr_array((width, 1)))), csr_array(used[None, :])), format="csr"
            )
            costs = np.concatenate((self.costs[among], np.zeros(width), [1.0]))
            most, lowest = np.append(most, float(width)), np.append(lowest, 0.0)
        found = milp(
            costs,
            constraints=LinearConstraint(columns, lowest, np.inf),
            integrality=np.ones(len(costs), dtype=np.int64),
            bounds=Bounds(0, most),
            options={"node_limit": _MOST_NODES},
        )
        return among[:0] if found.x is None else among[found.x[: len(among)] > 0.5]


def greedy_cover(tuples: Postings, costs: Floats, bulk: int = 1) -> Ints:
    """Return queries chosen greedily, in the order of choice, while one covers more than as many look-ups.
    Row q of ``tuples`` holds the records that query q returns. A look-up covers ``bulk`` records for one
    request.

    >>> greedy_cover(Postings.of_rows([[0, 1], [1, 2, 3], [3]], width=4), np.ones(3))
    array([1])
    """
    is_left = np.ones(tuples.width, dtype=np.bool_)
    members = [tuples.row(query) for query in range(tuples.height)]
    heap = [(-size / cost, query) for query, (size, cost) in enumerate(zip(tuples.sizes, costs, strict=True))]
    heapq.heapify(heap)
    chosen = []
    while heap:
        _, query = heapq.heappop(heap)
        new = int(np.count_nonzero(is_left[members[query]]))
        if new <= costs[query] * bulk:
            continue
        score = -new / costs[query]
        if heap and (score, query) > heap[0]:
            heapq.heappush(heap, (score, query))
            continue
        chosen.append(query)
        is_left[members[query]] = False
    return np.array(chosen, dtype=np.int64)
