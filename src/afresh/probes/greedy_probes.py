"""GreedyProbes of Yang et al. 2010, exactly: Algorithm 2 with the query efficiency of Eqn. (2).

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
import numpy.typing as npt

from afresh.probes.candidates import Totals, requests_of
from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.postings import Bools, Integers
from afresh.values.arrays import Floats
from afresh.values.errors import UsageError

METHODS = (1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A query chosen: its keywords, its local tuples and those new, its cost and expected cover."""

    keywords: tuple[int, ...]
    tuples: Integers
    new: Integers
    total: float
    requests: float
    expected: float


def greedy_probes(
    relation: KeywordIndex,
    totals: Totals,
    page_size: int,
    *,
    method: int = 1,
    pool: int = 10,
    quota: int | None = None,
    values: Floats | None = None,
) -> tuple[Probe, ...]:
    """The queries in the order chosen; ``values`` are w(r)·F(r;t), ``pool`` the paper's k.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.splitters import parse_keywords
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
    known: dict[tuple[int, ...], float] = {}
    probes: list[Probe] = []
    while uncovered.any() and (quota is None or len(probes) < quota):
        words = _frequent(relation, uncovered, pool)
        keywords = _most_efficient(relation, words, worth * uncovered, uncovered, totals, known)
        members = _holding(relation, keywords)
        new = members[uncovered[members]]
        total = known[keywords]
        requests = 1.0 if method == 2 else float(requests_of(np.array([total]), page_size)[0])
        share = 1.0 if method == 1 or total <= page_size else page_size / total
        probes.append(Probe(keywords, members, new, total, requests, share * len(members)))
        uncovered[members] = False
    return tuple(probes)


def _frequent(relation: KeywordIndex, uncovered: Bools, pool: int) -> Integers:
    """The ``pool`` keywords that most uncovered tuples hold."""
    held = relation.by_tuple.take(np.flatnonzero(uncovered)).members
    counts = np.bincount(held, minlength=len(relation.keywords))
    order = np.argsort(-counts, kind="stable")[:pool]
    return order[counts[order] > 0]


def _most_efficient(
    relation: KeywordIndex,
    words: Integers,
    worth: npt.NDArray[np.float64],
    uncovered: Bools,
    totals: Totals,
    known: dict[tuple[int, ...], float],
) -> tuple[int, ...]:
    holds = np.zeros((len(words), relation.tuples))
    for place, word in enumerate(words.tolist()):
        holds[place, relation.by_keyword.row(word)] = 1.0
    holds = holds[:, uncovered]
    gains = (holds * worth[uncovered]) @ holds.T
    shared = holds @ holds.T
    # Singles on the diagonal, pairs above it; the order of the sets settles ties.
    first, second = np.nonzero(np.triu(shared > 0))
    single = first == second
    order = np.lexsort((second, first, ~single))
    first, second = first[order], second[order]
    sets = [_ordered(words[one], words[other]) for one, other in zip(first, second, strict=True)]
    _learn_totals(sets, totals, known)
    efficiency = gains[first, second] / np.maximum([known[keywords] for keywords in sets], 1.0)
    return sets[int(np.argmax(efficiency))]


def _ordered(one: np.int64, other: np.int64) -> tuple[int, ...]:
    return (int(one),) if one == other else (int(min(one, other)), int(max(one, other)))


def _learn_totals(sets: list[tuple[int, ...]], totals: Totals, known: dict[tuple[int, ...], float]) -> None:
    unknown = [keywords for keywords in dict.fromkeys(sets) if keywords not in known]
    if unknown:
        padded = np.array([(*keywords, -1)[:2] for keywords in unknown], dtype=np.int64)
        known.update(zip(unknown, totals(padded).tolist(), strict=True))


def _holding(relation: KeywordIndex, keywords: tuple[int, ...]) -> Integers:
    members = relation.by_keyword.row(keywords[0])
    for word in keywords[1:]:
        members = np.intersect1d(members, relation.by_keyword.row(word), assume_unique=True)
    return members
