"""Rates from the source's own modification times: Gamma(a+X, b+Σx), x = min(time since modification, t).

A poll that finds the last change x ago says: one event, then none for x. Unchanged: none for t. Exact and
worth several polls where rates are high. Stamps that lie were taken out before (see ``observations``);
such polls count as one bit.
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


def stamp_evidence(polls: PollTable) -> PollEvidence:
    """One event and the time since, where the stamp is credible; else one bit."""
    if polls.since is None:
        return bit_evidence(polls)
    known = ~np.isnan(polls.since)
    stamped = polls.changed & known
    exposure = np.where(polls.changed, 0.0, polls.elapsed)
    exposure[stamped] = polls.since[stamped]
    return PollEvidence(stamped.astype(np.float64), exposure, polls.changed & ~known)


class LastModified(GammaFilter):
    """Gamma belief from modification times, one bit where there is none.

    >>> from afresh.rates.priors.gamma_prior import GammaPrior
    >>> from afresh.rates.observations import polls_from_intervals
    >>> stamped = LastModified()
    >>> polls = polls_from_intervals([10.0, 10.0], [True, False], item=[0, 0], since=[3.0, np.nan])
    >>> state = stamped.update(stamped.start(GammaPrior.of(1.0, 2.0), 1), polls)
    >>> state.shape.tolist(), state.rate.tolist()
    ([2.0], [15.0])
    """

    name = "last-modified"

    def update(self, state: GammaState, polls: PollTable) -> GammaState:
        """Add what the stamps say."""
        return carry_through_polls(state, polls, stamp_evidence(polls), self.horizon)
