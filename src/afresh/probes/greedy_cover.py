"""Greedy covering, lazily: the query with the most new tuples per request, again and again.

A query's gain only falls as others are chosen (the coverage is submodular), so a stale gain is an upper
bound: the best of a heap is looked at again, and taken if it still is the best (CELF, Leskovec et al.
2007). The choice is that of the plain greedy, ties to the lower number, at a fraction of the evaluations.
"""

from __future__ import annotations

import heapq

import numpy as np

from afresh.probes.postings import Postings
from afresh.values.arrays import Float64s, Floats, Ints


def greedy_cover(tuples: Postings, costs: Floats, values: Floats | None = None) -> Ints:
    """Queries in the order chosen, while one is worth more per request than a look-up.

    ``values`` are the tuples' worths (all 1 by default); the look-up of a tuple gains its value for one
    request.

    >>> greedy_cover(Postings.of_rows([[0, 1], [1, 2, 3], [3]], width=4), np.ones(3))
    array([1])
    """
    worth: Float64s = np.ones(tuples.width) if values is None else np.array(values, dtype=np.float64)
    members = [tuples.row(query) for query in range(tuples.height)]
    heap = [
        (-gain / cost, query)
        for query, (gain, cost) in enumerate(zip(tuples.sums(worth), costs, strict=True))
    ]
    heapq.heapify(heap)
    chosen = []
    while heap:
        _, query = heapq.heappop(heap)
        left = worth[members[query]]
        gain = float(left.sum())
        if gain <= _by_look_up(left, costs[query]):
            continue
        score = -gain / costs[query]
        if heap and (score, query) > heap[0]:
            heapq.heappush(heap, (score, query))
            continue
        chosen.append(query)
        worth[members[query]] = 0.0
    return np.array(chosen, dtype=np.int64)


def _by_look_up(left: Float64s, cost: float) -> float:
    """What as many look-ups would gain as the query costs: the most valuable of its tuples."""
    count = int(cost)
    if count >= len(left):
        return float(left.sum())
    return float(left.max(initial=0.0)) if count == 1 else float(np.sort(left)[-count:].sum())
