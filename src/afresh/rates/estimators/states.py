"""The two states that the simpler estimators keep: three numbers per item, or all of its polls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior, check_level
from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class _StateWithPrior:
    """A state whose prior answers for the items without polls."""

    prior: GammaPrior

    def has_polls(self) -> Bools:
        """Which items have been polled."""
        raise NotImplementedError

    def rate_or_prior(self, rate: Float64s) -> Float64s:
        """``rate`` where there are polls, the prior's mean elsewhere."""
        return np.where(self.has_polls(), rate, self.prior.mean())

    def interval_or_prior(self, low: Float64s, high: Float64s, level: float) -> tuple[Float64s, Float64s]:
        """The interval where there are polls, the prior's own elsewhere."""
        prior_low, prior_high = self.prior.interval(level)
        polled = self.has_polls()
        return np.where(polled, low, prior_low), np.where(polled, high, prior_high)


@dataclass(frozen=True, slots=True)
class TallyState(_StateWithPrior):
    """n polls, X of which found a change, over a time Σt, for every item."""

    polls: Float64s
    changes: Float64s
    time: Float64s

    def has_polls(self) -> Bools:
        """Which items have been polled."""
        return np.asarray(self.polls > 0)

    def mean_interval(self) -> Float64s:
        """Σt/n, 1 where there is no poll yet."""
        return np.where(self.polls > 0, self.time / np.maximum(self.polls, 1.0), 1.0)


class TallyEstimator:
    """What the estimators on a ``TallyState`` share: how it starts and grows."""

    order_free = True

    def start(self, prior: GammaPrior, items: int) -> TallyState:
        """No polls yet."""
        return TallyState(prior.for_items(items), *(np.zeros(items) for _ in range(3)))

    def update(self, state: TallyState, polls: PollTable) -> TallyState:
        """Add polls: O(1) each."""
        found = np.bincount(polls.item[polls.changed], minlength=polls.items)
        return replace(
            state,
            polls=state.polls + polls.polls_per_item(),
            changes=state.changes + found,
            time=state.time + polls.time_per_item(),
        )


@dataclass(frozen=True, slots=True)
class HistoryState(_StateWithPrior):
    """All polls so far, for estimators that have no shorter summary of irregular intervals."""

    polls: PollTable

    def has_polls(self) -> Bools:
        """Which items have been polled."""
        return np.asarray(self.polls.polls_per_item() > 0)


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


def change_probability_interval(
    changes: Float64s, polls: Float64s, level: float
) -> tuple[Float64s, Float64s]:
    """Clopper–Pearson interval of the probability that a poll finds a change: covers at least ``level``.

    >>> low, high = change_probability_interval(np.array([0.0]), np.array([3.0]), 0.9)
    >>> low.tolist(), bool(np.isclose(high[0], 1 - 0.05 ** (1 / 3)))
    ([0.0], True)
    """
    from scipy.special import betaincinv

    tail = (1.0 - check_level(level)) / 2.0
    low = np.where(changes > 0, betaincinv(np.maximum(changes, 0.5), polls - changes + 1.0, tail), 0.0)
    missed = np.maximum(polls - changes, 0.5)
    high = np.where(changes < polls, betaincinv(changes + 1.0, missed, 1.0 - tail), 1.0)
    return low, high
