"""Rates from exact counts: Gamma(a+N, b+Σt) after N changes in a time Σt.

A version number, a counter, a log or a feed says how many changes there were, several in one interval too.
Polls without a count are one bit.
"""

from __future__ import annotations

import numpy as np

from afresh.rates.estimators.gamma_filter import (
    GammaFilter,
    GammaState,
    PollEvidence,
    bit_evidence,
    carry_through_polls,
)
from afresh.rates.observations import PollTable


def count_evidence(polls: PollTable) -> PollEvidence:
    """So many events in the interval, where counted; else one bit."""
    if polls.count is None:
        return bit_evidence(polls)
    known = ~np.isnan(polls.count)
    bit = polls.changed & ~known
    return PollEvidence(np.where(known, polls.count, 0.0), np.where(bit, 0.0, polls.elapsed), bit)


class Counts(GammaFilter):
    """Gamma belief from counts, one bit where there is none.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.observations import polls_from_intervals
    >>> counts = Counts()
    >>> polls = polls_from_intervals([10.0, 10.0], [True, False], item=[0, 0], count=[4, 0])
    >>> counts.rate(counts.update(counts.start(GammaPrior.of(1.0, 5.0), 1), polls)).tolist()
    [0.2]
    """

    name = "counts"

    def update(self, state: GammaState, polls: PollTable) -> GammaState:
        """Add the counts."""
        return carry_through_polls(state, polls, count_evidence(polls), self.horizon)
