"""GreedyProbes, Algorithm 2 of Yang et al. 2010, as printed, with the query efficiency of Eqn. (2).

    q = argmax Σ_{uncovered r ∈ R_L(q)} w(r)·F(r;t) / |R_S(q)|

over single keywords and pairs of the k keywords most frequent among the tuples not yet covered (§5.3),
until the quota of queries is reached or every tuple that has a keyword is covered. Method 1 reads all
⌈|R_S|/p⌉ result pages of a query and covers R_L(q); Method 2 reads the first and is expected to cover
min(1, p/|R_S|) of it, though the algorithm then counts all of R_L(q) as covered. Ties go to the more
frequent keywords.
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
    """A chosen query: its keywords, its local tuples, the new ones, total, requests and expected cover."""

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
    """The queries in the order chosen; ``values`` are w(r)·F(r;t), ``pool`` the paper's k.

    >>> from afresh.probes.keyword_index import index_relation, parse_keywords
    >>> titles = {"title": ["web crawl", "web search", "deep web"]}
    >>> relation = index_relation(titles, [parse_keywords("title")])
    >>> probes = greedy_probes(relation, lambda sets: np.where(sets[:, -1] < 0, 100.0, 2.0), 10)
    >>> [(probe.keywords, probe.requests) for probe in probes]
    [((0, 1), 1.0), ((0, 2), 1.0), ((0, 3), 1.0)]
    """
    if method not in METHODS:
        raise UsageError(f"method {method}: 1 reads all result pages, 2 the first")
    worth = np.ones(relation.tuples) if values is None else np.asarray(values, dtype=np.float64)
    uncovered: Bools = relation.by_tuple.sizes > 0
    known = _TotalsCache(totals, len(relation.keywords))
    probes: list[Probe] = []
    while uncovered.any() and (quota is None or len(probes) < quota):
        held = relation.by_tuple.take(np.flatnonzero(uncovered)).members
        counts = np.bincount(held, minlength=len(relation.keywords))
        words = np.argsort(-counts, kind="stable")[:pool]
        words = words[counts[words] > 0]  # the keywords that most uncovered tuples hold
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
    """The single keyword or pair of largest efficiency, and its total."""
    holds = np.zeros((len(words), relation.tuples))
    for place, word in enumerate(words.tolist()):
        holds[place, relation.by_keyword.row(word)] = 1.0
    holds = holds[:, uncovered]
    gains = (holds * worth[uncovered]) @ holds.T
    # Singles are on the diagonal and come first, then pairs: the order settles ties.
    first, second = np.nonzero(np.triu(holds @ holds.T > 0))
    order = np.lexsort((second, first, first != second))
    first, second = first[order], second[order]
    totals = known(words[first], words[second])
    best = int(np.argmax(gains[first, second] / np.maximum(totals, 1.0)))
    one, other = int(words[first[best]]), int(words[second[best]])
    keywords = (one,) if one == other else (min(one, other), max(one, other))
    return keywords, float(totals[best])


class _TotalsCache:
    """Totals of singles and pairs, each estimated once."""

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
