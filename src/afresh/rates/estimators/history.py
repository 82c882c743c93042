"""The polls themselves as state: for estimators that have no shorter summary of irregular intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.observations import Polls
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class History:
    """All polls so far, and the prior that answers for items without any."""

    prior: GammaPrior
    polls: Polls

    def or_prior(self, rate: Float64s) -> Float64s:
        """``rate`` where there are polls, the prior's mean elsewhere."""
        return np.where(self.polls.polls_per_item() > 0, rate, self.prior.mean())

    def or_prior_interval(self, low: Float64s, high: Float64s, level: float) -> tuple[Float64s, Float64s]:
        """The interval where there are polls, the prior's own elsewhere."""
        prior_low, prior_high = self.prior.interval(level)
        seen = self.polls.polls_per_item() > 0
        return np.where(seen, low, prior_low), np.where(seen, high, prior_high)


class HistoryEstimator:
    """What the estimators on a ``History`` share; an update is O(polls so far)."""

    order_free = True

    def start(self, prior: GammaPrior, items: int) -> History:
        """No polls yet."""
        empty = Polls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool), items)
        return History(prior.for_items(items), empty)

    def update(self, state: History, polls: Polls) -> History:
        """Append the polls; only their intervals and bits are kept."""
        before = state.polls
        item = np.concatenate((before.item, polls.item))
        order = slice(None) if before.size == 0 else np.argsort(item, kind="stable")
        elapsed = np.concatenate((before.elapsed, polls.elapsed))[order]
        changed = np.concatenate((before.changed, polls.changed))[order]
        return History(state.prior, Polls(item[order], elapsed, changed, polls.items))
