"""Estimate how many results a query has on the server, from the totals that the server reports.

A *total* is the number of results of one query on all pages. If n records of a sample match a keyword, about
c·n records of the server match. The sample is a file, or else the relation. The relation is no random sample:
if it contains all papers of some authors, the server has no more papers of these authors, but many more with
the same words in the title. So the factor c is learned for each attribute (column of keywords), from the
logarithms of the ratios of reported totals to n. If the server searches all columns at once, a keyword counts
for the first column in which a record has it. They are taken as normally distributed,

    log c ~ N(m, s²), with a prior of c = 1 and s = 1 that weighs as much as one keyword.

The estimate of c is e^{m−s}, but at least 1. It is deliberately low. If a total is too low, one request is
wasted and shows the true total. If it is too high, the query is not sent, and the estimate is never
corrected. For a query of several keywords, c is the smallest of their attributes, and the estimate is at most
the total of each keyword alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from afresh.probes.candidates import set_codes
from afresh.probes.keyword_index import KeywordIndex
from afresh.sources.search.saved_records import ScaleNote
from afresh.values.arrays import Float64s, Ints

_UNSEEN = 0.5  # is added to the matches in a sample, which may be 0
_CHANGED = math.log(1.5)  # if c has changed by this factor, estimates are computed again

Words = tuple[int, ...]


class LearnedTotals:
    """Estimates the total of each query, and improves with every reported total (a ``LearningTotals``). A
    query is given by the numbers of its keywords.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.keyword_index import parse_keywords
    >>> index = index_relation({"t": ["web crawl", "web", "deep"]}, [parse_keywords("t")])
    >>> totals = LearnedTotals(index, index)
    >>> single = np.array([[0], [1], [2]]); totals(single)
    array([2., 1., 1.])
    >>> totals.reported((0,), 40.0); totals.reported((1,), 20.0); totals(single).round(1)
    array([40. , 20. ,  1.6])
    """

    def __init__(self, relation: KeywordIndex, sample: KeywordIndex) -> None:
        self.relation, self._sample = relation, sample
        columns = [keyword.attribute or keyword.column for keyword in relation.keywords]
        places = {name: place for place, name in enumerate(dict.fromkeys(columns))}
        self._names = list(places)
        self._attribute = np.array([places[name] for name in columns], dtype=np.int64)
        # Count, sum and sum of squares of log c for each attribute. They start with the prior, one keyword.
        self._seen = np.tile(np.array([[1.0, 0.0, 1.0]]), (len(places), 1))
        self.known: dict[Words, float] = {}
        self._most: Float64s = np.full(len(relation.keywords), np.inf)

    def scales(self) -> Float64s:
        """Return for each attribute ln c; c is the ratio of a total on the server to that in the sample."""
        mean, deviation = self._moments()
        return np.asarray(mean - deviation)

    def notes(self) -> Iterable[ScaleNote]:
        """Yield for each attribute the ratio of server to sample totals, with its range, for status pages."""
        for name, count, mean, deviation in zip(self._names, self._seen[:, 0], *self._moments(), strict=True):
            times, low, high = (round(math.exp(log), 3) for log in (mean, mean - deviation, mean + deviation))
            yield ScaleNote(name, int(count) - 1, times, low, high)

    def _moments(self) -> tuple[Float64s, Float64s]:
        count, total, squares = self._seen.T
        mean = total / count
        return mean, np.sqrt(np.maximum(squares / count - mean * mean, 0.0))

    def moved_from(self, scales: Float64s) -> bool:
        """Return whether a factor differs by more than 1.5 times from ``scales``, an earlier result."""
        return bool(np.any(np.abs(self.scales() - scales) > _CHANGED))

    def reported(self, words: Words, total: float) -> None:
        """Record the total that the server reported for the query ``words`` (see ``probes.candidates``)."""
        if len(words) == 1:
            word = words[0]
            self._most[word] = total
            if words not in self.known:
                here = self._counts(np.array([[word]], dtype=np.int64))[0]
                ratio = math.log(max(total, 1.0) / here)
                self._seen[self._attribute[word]] += (1.0, ratio, ratio * ratio)
        self.known[words] = total

    def __call__(self, sets: Ints) -> Float64s:
        """Return the estimated total of each set of keywords, which is at least its matches in the relation.
        ``sets`` has one row of keyword numbers per query; −1 fills the row."""
        none = sets < 0
        scale = np.where(none, np.inf, self.scales()[self._attribute[sets]]).min(axis=1)
        most = np.where(none, np.inf, self._most[sets]).min(axis=1)
        expected = np.minimum(np.exp(np.maximum(scale, 0.0)) * self._counts(sets), most)
        expected = np.maximum(expected, self.relation.counts(sets))
        return np.asarray(self._with_known(sets, expected))

    def _counts(self, sets: Ints) -> Float64s:
        counts = self._sample.counts(sets).astype(np.float64)
        return counts if self._sample is self.relation else counts + _UNSEEN

    def _with_known(self, sets: Ints, expected: Float64s) -> Float64s:
        """Replace the estimates of queries whose total was reported by that total."""
        known = {words: total for words, total in self.known.items() if len(words) == sets.shape[1]}
        if known and len(sets):
            width = len(self.relation.keywords)
            codes = set_codes(sets, width)
            order = np.argsort(codes, kind="stable")
            wanted = set_codes(np.array(list(known), dtype=np.int64), width)
            first, end = (np.searchsorted(codes[order], wanted, side=side) for side in ("left", "right"))
            for low, high, total in zip(first.tolist(), end.tolist(), known.values(), strict=True):
                expected[order[low:high]] = total
        return expected
