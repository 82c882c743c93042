"""The polls themselves as state: for estimators that have no shorter summary of irregular intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.observations import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class HistoryState:
    """All polls so far, and the prior that answers for items without any."""

    prior: GammaPrior
    polls: PollTable

    def rate_or_prior(self, rate: Float64s) -> Float64s:
        """``rate`` where there are polls, the prior's mean elsewhere."""
        return np.where(self.polls.polls_per_item() > 0, rate, self.prior.mean())

    def interval_or_prior(self, low: Float64s, high: Float64s, level: float) -> tuple[Float64s, Float64s]:
        """The interval where there are polls, the prior's own elsewhere."""
        prior_low, prior_high = self.prior.interval(level)
        seen = self.polls.polls_per_item() > 0
        return np.where(seen, low, prior_low), np.where(seen, high, prior_high)


class HistoryEstimator:
    """What the estimators on a ``HistoryState`` share; an update is O(polls so far)."""

    order_free = True

    def start(self, prior: GammaPrior, items: int) -> HistoryState:
        """No polls yet."""
        empty = PollTable(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool), items)
        return HistoryState(prior.for_items(items), empty)

    def update(self, state: HistoryState, polls: PollTable) -> HistoryState:
        """Append the polls; only their intervals and bits are kept."""
        before = state.polls
        item = np.concatenate((before.item, polls.item))
        order = slice(None) if before.size == 0 else np.argsort(item, kind="stable")
        elapsed = np.concatenate((before.elapsed, polls.elapsed))[order]
        changed = np.concatenate((before.changed, polls.changed))[order]
        return HistoryState(state.prior, PollTable(item[order], elapsed, changed, polls.items))
