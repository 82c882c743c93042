"""Find the candidate queries: sets of one to three keywords, with their local results and expected totals.

A total is the number of results on the server. A query that costs one request (one page of results) is better
than any query with more keywords. So keywords are combined only if each query with one keyword less has more
than one page. A query that costs as many requests as it has local results is no better than looking up these
records by key. So queries with ⌈total/page size⌉ ≥ local results are left out. Of queries with equal local
results only the cheapest is kept. At least two local records contain each set of keywords that remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.postings import Postings, SortedSet
from afresh.values.arrays import Bools, Float64s, Ints

MOST_COMBINED = 16  # the most keywords of one record that are combined: the rarest on the server
_SEED = 0x5EED  # for the random fingerprints by which equal results are found


class ResultTotals(Protocol):
    """A function that estimates the number of results on the server of each query.
    A query is a row of ``sets``, with the numbers of its keywords; −1 stands for no keyword."""

    def __call__(self, sets: Ints) -> Float64s: ...


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Queries, one per row: the ``sets`` of their keywords, their local results (positions of records, in
    ``tuples``), and the expected number of their results on the server (``totals``). ``bulk`` is the number
    of records that one look-up by key can name: the queries can be better than such look-ups."""

    sets: Ints
    tuples: Postings
    totals: Float64s
    bulk: int = 1

    def __len__(self) -> int:
        return len(self.sets)

    def take(self, wanted: Ints) -> Candidates:
        """Return the queries at the positions ``wanted``, in this order."""
        return Candidates(self.sets[wanted], self.tuples.take(wanted), self.totals[wanted], self.bulk)


def request_counts(totals: Float64s, page_size: int) -> Float64s:
    """Return the requests that each query takes, ⌈total/page_size⌉, but at least one.

    >>> request_counts(np.array([0.0, 10.0, 10.5]), 10)
    array([1., 1., 2.])
    """
    return np.maximum(np.ceil(totals / page_size - 1e-9), 1.0)


def find_candidates(
    relation: KeywordIndex, totals: ResultTotals, page_size: int, *, most_keywords: int = 3, bulk: int = 1
) -> Candidates:
    """Return all queries of up to ``most_keywords`` keywords that can be better than looking up records, of
    which one request names up to ``bulk``."""
    singles = np.arange(len(relation.keywords))[:, None]
    expected = totals(singles)
    support = relation.by_keyword.sizes
    parts = [_padded(singles, most_keywords)]
    estimates = [expected]
    # Keywords with at most one page, or with one local record, are not combined with others.
    combinable = (expected > page_size) & (support >= 2)
    rows = relation.by_tuple.keep(combinable)
    # Keep at most ``MOST_COMBINED`` keywords of each record, the rarest on the server.
    owner = rows.row_ids()
    order = np.lexsort((rows.members, expected[rows.members], owner))
    good = order[np.arange(len(order)) - np.repeat(rows.starts[:-1], rows.sizes) < MOST_COMBINED]
    rows = Postings.of_pairs(owner[good], rows.members[good], rows.height, rows.width)
    broader = np.flatnonzero(combinable)
    for size in range(2, most_keywords + 1):
        sets = _combined(rows, size, relation, broader)
        expected = totals(sets)
        parts.append(_padded(sets, most_keywords))
        estimates.append(expected)
        broader = set_codes(sets[expected > page_size], len(relation.keywords))
    return _without_dominated(relation, np.concatenate(parts), np.concatenate(estimates), (page_size, bulk))


def _combined(rows: Postings, size: int, relation: KeywordIndex, broader: Ints) -> Ints:
    """Return the sets of ``size`` keywords that at least two records contain and that may be candidates.
    All subsets of such a set with one keyword less must be in ``broader`` (as codes of ``set_codes``)."""
    width = len(relation.keywords)
    known = SortedSet(broader)
    found: list[Ints] = [np.empty(0, np.int64)]
    sizes = rows.sizes
    for degree in np.unique(sizes[sizes >= size]).tolist():
        block = rows.members[rows.starts[:-1][sizes == degree][:, None] + np.arange(degree)]
        chosen = np.array(list(combinations(range(degree), size)))
        sets = block[:, chosen].reshape(-1, size)
        for left_out in range(size if size > 2 else 0):  # the keywords of pairs were checked by the caller
            sets = sets[known(set_codes(np.delete(sets, left_out, axis=1), width))]
        found.append(set_codes(sets, width))
    codes = np.sort(np.concatenate(found))
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    counts = np.diff(np.append(first, len(codes)))
    shared = codes[first[counts >= 2]]
    sets = np.empty((len(shared), size), dtype=np.int64)
    for column in range(size - 1, -1, -1):
        shared, sets[:, column] = np.divmod(shared, width)
    return sets


def set_codes(sets: Ints, width: int) -> Ints:
    """Return one integer for each set of keywords, which are numbers below ``width``."""
    codes = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        codes = codes * width + column
    return codes


def _padded(sets: Ints, width: int) -> Ints:
    return np.pad(sets, ((0, 0), (0, width - sets.shape[1])), constant_values=-1)


def _without_dominated(
    relation: KeywordIndex, sets: Ints, totals: Float64s, sizes: tuple[int, int]
) -> Candidates:
    """Return the queries without those that look-ups or a cheaper query with equal results can replace.
    ``sizes`` is a tuple (results on a page, records of a look-up)."""
    page_size, bulk = sizes
    owner, tuples = relation.matches(sets)
    local = Postings.of_pairs(owner, tuples, len(sets), relation.tuples)
    cost = request_counts(totals, page_size)
    good = np.flatnonzero(cost * bulk < local.sizes)
    local, cost = local.take(good), cost[good]
    marks = np.random.default_rng(_SEED).integers(1 << 63, size=relation.tuples, dtype=np.int64)
    running = np.concatenate(([0], np.cumsum(marks[local.members])))  # overflow does no harm
    fingerprint = running[local.starts[1:]] - running[local.starts[:-1]]
    used = (sets[good] >= 0).sum(axis=1)
    order = np.lexsort((good, used, totals[good], cost, fingerprint))
    first: Bools = np.ones(len(order), dtype=np.bool_)
    first[1:] = np.diff(fingerprint[order]) != 0
    kept = np.sort(order[first])
    return Candidates(sets[good][kept], local.take(kept), totals[good][kept], bulk)


@dataclass(frozen=True, slots=True, eq=False)
class ExactTotals:
    """Exact totals of queries, counted in an index of the server's own records."""

    index: KeywordIndex

    def __call__(self, sets: Ints) -> Float64s:
        return self.index.counts(sets).astype(np.float64)


class LearningTotals(ResultTotals, Protocol):
    """Estimated totals of queries, which improve with every total that the server reports."""

    relation: KeywordIndex

    def reported(self, words: tuple[int, ...], total: float) -> None:
        """Learn the total that the server reported for the query with these keyword numbers."""

    def scales(self) -> Float64s:
        """Return the logarithms of the learned factors by which estimates are multiplied."""

    def moved_from(self, scales: Float64s) -> bool:
        """Return whether the estimates have changed much since ``scales()`` returned ``scales``."""
