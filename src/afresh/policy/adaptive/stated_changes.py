"""What sources state about changes beyond the one bit of a poll, and how far the belief follows it.

A poll shows whether an item changed in the time τ since its previous poll. A source may state more: the time
x from the last change to the poll (Last-Modified), or the number k of changes in τ (a counter, a log). If
changes came at a constant rate λ, the exact likelihoods would be λ·e^{−λx} and λ^k·e^{−λτ}. Real changes come
in bursts. The last change of a burst is recent and a burst counts many changes, but a copy becomes stale only
once per burst, as the bit says. So statements count only where the bit said nothing new, because a change was
expected: with the likelihood L of the bit and the exact one S, the posterior is multiplied by L^{1−w}·S^w,
where w = (p/(1−ε))^``SURE``, p is the probability of a change that was expected of the poll, and 1−ε is the
highest possible p (``rate_belief.SILENT``).

``SURE`` was chosen by ``afresh replay --stamps`` on one recorded history (docs/experiments.md). The age of an
item at its first poll is used in another way (``age_priors``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.policy.adaptive.rate_belief import SILENT
from afresh.rates.poll_table import MOST_CHANGES, NOW
from afresh.values.arrays import Bools, Float64s, Ints

SURE = 30.0


@dataclass(frozen=True, slots=True)
class StatedChanges:
    """What sources stated with polls, with an entry for each poll; NaN where they stated nothing.
    ``since`` is the time from the last change to the poll, ``count`` the changes since the previous poll."""

    since: Float64s
    count: Float64s

    def take(self, which: Bools | Ints) -> StatedChanges:
        return StatedChanges(self.since[which], self.count[which])

    def evidence(
        self, elapsed: Float64s, changed: Bools, finding: Float64s, rates: Float64s, surely: Float64s
    ) -> Float64s | float:
        """Return w·ln(S/L) with a row per poll and a column per rate, or 0.0 if no statement is credible.
        ``elapsed`` is τ, ``finding`` the probability at each rate that the poll finds a change, ``surely`` is
        the probability p over all rates. A statement that contradicts the poll, or that gives the time of the
        poll itself, is not credible.

        >>> told = StatedChanges(np.array([0.2, np.nan]), np.array([np.nan, 3.0]))
        >>> rates, changed = np.array([0.3, 3.0, 30.0]), np.array([True, True])
        >>> bit = -np.expm1(-np.ones((2, 1)) * rates)      # the fastest rate is most likely by the bits
        >>> (np.log(bit) + told.evidence(np.ones(2), changed, bit, rates, np.ones(2))).argmax(axis=1).tolist()
        [1, 1]
        """
        with np.errstate(invalid="ignore"):
            counted = ((self.count > 0) == changed) & (self.count <= MOST_CHANGES)
            dated = changed & (self.since > NOW * elapsed) & (self.since <= elapsed) & ~counted
        told = np.flatnonzero(counted | dated)
        if told.size == 0:
            return 0.0
        events = np.where(dated, 1.0, self.count)[told, None]
        exposure = np.where(dated, self.since, elapsed)[told, None]
        exact = events * np.log(rates) - exposure * rates
        bit = np.where(changed[told, None], finding[told], 1.0 - finding[told])
        weight = np.minimum(surely[told, None] / (1.0 - SILENT), 1.0) ** SURE
        found = np.zeros((elapsed.size, rates.size))
        found[told] = weight * (exact - np.log(np.maximum(bit, 1e-300)))
        return found
