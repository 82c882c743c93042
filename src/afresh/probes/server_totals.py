"""How many results a query has on the server, |R_S(q)|: exactly, or estimated from a proxy and improved by
answers.

A proxy corpus is a sample of the server's records (or of others like them): where it has n matches, the
server has about c·n. The scale c has a Gamma posterior: reported totals T are taken as Poisson(c·n) each,
so that

    c ~ Gamma(a + ΣT, b + Σn),    |R_S(q)| ≈ c·(n + ½) ± sd,    sd² = c²·(n + ½) + (n + ½)²·var(c)

(½: with no match in a sample there may be some on the server; Jeffreys' prior of a Poisson count). The
paper fixes c by a few queries (§4.1). No estimate is below the local tuples that are known to match.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.postings import Integers
from afresh.values.errors import UsageError

_UNSEEN = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class ExactTotals:
    """Totals counted in the server's own records."""

    index: KeywordIndex

    def __call__(self, sets: Integers) -> npt.NDArray[np.float64]:
        """|R_S(q)| of each set of keywords."""
        return self.index.counts(sets).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ProxyTotals:
    """Totals estimated from a proxy; ``seen`` returns better ones.

    >>> from afresh.probes.keyword_index import index_relation
    >>> from afresh.probes.splitters import parse_keywords
    >>> proxy = index_relation({"title": ["web crawl", "web"]}, [parse_keywords("title")])
    >>> totals = ProxyTotals(proxy, proxy, shape=4.0, weight=1.0)  # c is about 4
    >>> better = totals.seen(reported=np.array([30.0]), matches=np.array([5]))
    >>> totals.scale, better.scale, better(np.array([[0], [1]])).round(1)
    (4.0, 5.666666666666667, array([14.2,  8.5]))
    """

    proxy: KeywordIndex
    relation: KeywordIndex
    shape: float
    weight: float

    def __post_init__(self) -> None:
        """Refuse a prior that is none."""
        if not (self.shape > 0 and self.weight > 0):
            raise UsageError(f"scale prior Gamma({self.shape}, {self.weight}): both must be above 0")

    @property
    def scale(self) -> float:
        """The mean of c."""
        return self.shape / self.weight

    def __call__(self, sets: Integers) -> npt.NDArray[np.float64]:
        """The expected |R_S(q)| of each set of keywords."""
        return self.expected(self.proxy.counts(sets), self.relation.counts(sets))

    def expected(self, matches: Integers, local: Integers) -> npt.NDArray[np.float64]:
        """The expected |R_S(q)| of queries with so many matches in the proxy and so many local tuples."""
        return np.asarray(np.maximum(self.scale * (matches + _UNSEEN), local), dtype=np.float64)

    def deviation(self, matches: Integers) -> npt.NDArray[np.float64]:
        """The standard deviation of |R_S(q)| of queries with so many matches in the proxy."""
        counts = matches + _UNSEEN
        variance = self.scale**2 * counts + np.square(counts) * self.shape / self.weight**2
        return np.asarray(np.sqrt(variance), dtype=np.float64)

    def seen(self, reported: npt.NDArray[np.float64], matches: Integers) -> ProxyTotals:
        """With totals that the server reported for queries of so many matches in the proxy."""
        return replace(
            self, shape=self.shape + float(reported.sum()), weight=self.weight + float(matches.sum())
        )
