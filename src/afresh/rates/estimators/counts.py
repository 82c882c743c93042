"""Rates from exact counts: Gamma(a+N, b+Σt) after N changes in a time Σt.

A version number, a counter, a log or a feed says how many changes there were, several in one interval too.
Polls without a count are one bit.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.estimators.gamma_filter import Evidence, GammaFilter, GammaState, evidence_of_bits, fold
from afresh.rates.observations import Polls


def evidence_of_counts(polls: Polls) -> Evidence:
    """So many events in the interval, where counted; else one bit."""
    if polls.count is None:
        return evidence_of_bits(polls)
    known = ~np.isnan(polls.count)
    bit = polls.changed & ~known
    return Evidence(np.where(known, polls.count, 0.0), np.where(bit, 0.0, polls.elapsed), bit)


class Counts(GammaFilter):
    """Gamma belief from counts, one bit where there is none.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.observations import polls_of
    >>> counts = Counts()
    >>> polls = polls_of([10.0, 10.0], [True, False], item=[0, 0], count=[4, 0])
    >>> counts.rate(counts.update(counts.start(GammaPrior.of(1.0, 5.0), 1), polls)).tolist()
    [0.2]
    """

    name = "counts"

    def update(self, state: GammaState, polls: Polls) -> GammaState:
        """Add the counts."""
        return fold(state, polls, evidence_of_counts(polls), self.horizon)
