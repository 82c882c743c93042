"""How many results a query has on the server, |R_S(q)|: counted, or estimated and improved by answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.probes.candidates import Totals
from afresh.probes.keyword_index import KeywordIndex
from afresh.probes.postings import Integers


@dataclass(frozen=True, slots=True, eq=False)
class ExactTotals:
    """Totals counted in the server's own records."""

    index: KeywordIndex

    def __call__(self, sets: Integers) -> npt.NDArray[np.float64]:
        """|R_S(q)| of each set of keywords."""
        return self.index.counts(sets).astype(np.float64)


class LearningTotals(Totals, Protocol):
    """Estimates for the queries of ``relation``, which every total that the server reports improves."""

    relation: KeywordIndex

    def reported(self, words: tuple[int, ...], total: float) -> None:
        """The server said how many results a query has."""

    def scales(self) -> npt.NDArray[np.float64]:
        """What all estimates are multiplied by, as logarithms."""

    def moved_from(self, scales: npt.NDArray[np.float64]) -> bool:
        """Whether estimates have become others since the scales were these."""
