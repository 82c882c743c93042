"""How many results a query has on the server, |R_S(q)|: counted, or estimated and improved by answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from afresh.probes.candidates import ResultTotals
from afresh.probes.keyword_index import KeywordIndex
from afresh.values.arrays import Float64s, Ints


@dataclass(frozen=True, slots=True, eq=False)
class ExactTotals:
    """Totals counted in the server's own records."""

    index: KeywordIndex

    def __call__(self, sets: Ints) -> Float64s:
        """|R_S(q)| of each set of keywords."""
        return self.index.counts(sets).astype(np.float64)


class LearningTotals(ResultTotals, Protocol):
    """Estimates for the queries of ``relation``, which every total that the server reports improves."""

    relation: KeywordIndex

    def reported(self, words: tuple[int, ...], total: float) -> None:
        """The server said how many results a query has."""

    def scales(self) -> Float64s:
        """What all estimates are multiplied by, as logarithms."""

    def moved_from(self, scales: Float64s) -> bool:
        """Whether estimates have become others since the scales were these."""
