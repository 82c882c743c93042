"""GreedyProbes, Algorithm 2 of Yang et al. 2010, as published, with the query efficiency of Eqn. (2).

Each step chooses the query

    q = argmax Σ_{uncovered r ∈ R_L(q)} w(r)·F(r;t) / |R_S(q)|

among the k keywords that are most frequent in the records (tuples) not yet covered, and the pairs of these
keywords (§5.3). R_L(q) and R_S(q) are the results of q in the local relation and on the server, w(r) is the
weight of record r, and F(r;t) its expected change in the time t since its refresh. The algorithm ends when
the quota of queries is reached or every record that has a keyword is covered. Method 1 reads all ⌈|R_S|/p⌉
pages of p results and covers R_L(q). Method 2 reads only the first page, which is expected to return the
share min(1, p/|R_S|) of R_L(q), but counts all of R_L(q) as covered. Of equally good queries the one with the
more frequent keywords is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.probes.candidates import ResultTotals, request_counts
from afresh.probes.keyword_index import KeywordIndex
from afresh.values.arrays import Bools, Float64s, Floats, Ints
from afresh.values.errors import UsageError

METHODS = (1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A chosen query.

    ``tuples`` are the local records that it matches, ``new`` those that earlier queries do not cover.
    ``total`` is the number of its results on the server, ``requests`` the number of pages to read, and
    ``expected`` the expected number of local records on these pages."""

    keywords: tuple[int, ...]
    tuples: Ints
    new: Ints
    total: float
    requests: float
    expected: float


def greedy_probes(
    relation: KeywordIndex,
    totals: ResultTotals,
    page_size: int,
    *,
    method: int = 1,
    pool: int = 10,
    quota: int | None = None,
    values: Floats | None = None,
) -> tuple[Probe, ...]:
    """Return the queries that Algorithm 2 of Yang et al. 2010 chooses, in the order of choice.
    ``values`` are the values w·F of refreshing the local records (1 by default), ``pool`` is the number of
    keywords to combine in each step, ``method`` is 1 (read all result pages) or 2 (read the first page).

    >>> from afresh.probes.keyword_index import index_relation, parse_keywords
    >>> titles = {"title": ["web crawl", "web search", "deep web"]}
    >>> relation = index_relation(titles, [parse_keywords("title")])
    >>> probes = greedy_probes(relation, lambda sets: np.where(sets[:, -1] < 0, 100.0, 2.0), 10)
    >>> [(probe.keywords, probe.requests) for probe in probes]
    [((0, 1), 1.0), ((0, 2), 1.0), ((0, 3), 1.0)]
    """
    if method not in METHODS:
        raise UsageError(f"method {method}: must be 1 (read all result pages) or 2 (read the first)")
    worth = np.ones(relation.tuples) if values is None else np.asarray(values, dtype=np.float64)
    uncovered: Bools = relation.by_tuple.sizes > 0
    known = _TotalsCache(totals, len(relation.keywords))
    probes: list[Probe] = []
    while uncovered.any() and (quota is None or len(probes) < quota):
        held = relation.by_tuple.take(np.flatnonzero(uncovered)).members
        counts = np.bincount(held, minlength=len(relation.keywords))
        words = np.argsort(-counts, kind="stable")[:pool]
        words = words[counts[words] > 0]  # the keywords that most uncovered records contain
        keywords, total = _most_efficient(relation, words, worth, uncovered, known)
        members = relation.matches(np.array([keywords]))[1]
        new = members[uncovered[members]]
        requests = 1.0 if method == 2 else float(request_counts(np.array([total]), page_size)[0])
        share = 1.0 if method == 1 or total <= page_size else page_size / total
        probes.append(Probe(keywords, members, new, total, requests, share * len(members)))
        uncovered[members] = False
    return tuple(probes)


def _most_efficient(
    relation: KeywordIndex, words: Ints, worth: Float64s, uncovered: Bools, known: _TotalsCache
) -> tuple[tuple[int, ...], float]:
    """Return a tuple (keywords, total) of the keyword, or pair of ``words``, with the largest efficiency.
    The efficiency is the value of the uncovered results, divided by the total of results on the server."""
    holds = np.zeros((len(words), relation.tuples))
    for place, word in enumerate(words.tolist()):
        holds[place, relation.by_keyword.row(word)] = 1.0
    holds = holds[:, uncovered]
    gains = (holds * worth[uncovered]) @ holds.T
    # Single keywords (the diagonal) come before pairs, because the first of equal queries is chosen.
    first, second = np.nonzero(np.triu(holds @ holds.T > 0))
    order = np.lexsort((second, first, first != second))
    first, second = first[order], second[order]
    totals = known(words[first], words[second])
    best = int(np.argmax(gains[first, second] / np.maximum(totals, 1.0)))
    one, other = int(words[first[best]]), int(words[second[best]])
    keywords = (one,) if one == other else (min(one, other), max(one, other))
    return keywords, float(totals[best])


class _TotalsCache:
    """The totals of single keywords and pairs, each estimated only once."""

    def __init__(self, totals: ResultTotals, width: int) -> None:
        self._ask, self._width = totals, width
        self._codes, self._totals = np.empty(0, np.int64), np.empty(0)

    def __call__(self, one: Ints, other: Ints) -> Float64s:
        low, high = np.minimum(one, other), np.maximum(one, other)
        codes = low * self._width + high
        new = np.setdiff1d(codes, self._codes)
        if new.size:
            sets = np.stack(np.divmod(new, self._width), axis=1)
            sets[sets[:, 0] == sets[:, 1], 1] = -1
            every = np.concatenate((self._codes, new))
            order = np.argsort(every, kind="stable")
            self._codes = every[order]
            self._totals = np.concatenate((self._totals, self._ask(sets)))[order]
        return self._totals[np.searchsorted(self._codes, codes)]
