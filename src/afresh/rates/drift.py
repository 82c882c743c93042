"""Drift: rates change, so old evidence fades towards the prior: a ← a₀+(a−a₀)e^{−t/H}, b likewise.

Whether to forget, and over which horizon H, is decided by prediction: the Gamma filter says before each poll
how likely a change is, and is scored by the logarithm of what it gave to what was then seen. One is used
only if it predicts better than none, over the items, by ``MARGIN`` standard errors; else H = ∞ (off).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.rates.gamma_filter import found_change
from afresh.rates.gamma_prior import GammaPrior
from afresh.rates.observations import Float64s, Polls
from afresh.rates.segments import rank_within, rounds

MARGIN = 2.5  # standard errors: seven horizons are tried, so two would say yes too often
HALVINGS = 7
ITEMS_ENOUGH = 4000


@dataclass(frozen=True, slots=True)
class Drift:
    """The horizon to use (∞: none) and what the best one gained in log score per poll over none."""

    horizon: float
    gain: float
    standard_errors: float

    @property
    def supported(self) -> bool:
        """Whether the polls call for forgetting."""
        return math.isfinite(self.horizon)


def faded(
    shape: Float64s, rate: Float64s, prior: GammaPrior, elapsed: Float64s, horizon: float
) -> tuple[Float64s, Float64s]:
    """Gamma(a, b) after ``elapsed`` without evidence.

    >>> a, b = faded(np.array([5.0]), np.array([9.0]), GammaPrior.of(1.0, 1.0), np.array([np.log(2)]), 1.0)
    >>> a.round(12).tolist(), b.round(12).tolist()
    ([3.0], [5.0])
    """
    keep = np.exp(-elapsed / horizon)
    return prior.shape + (shape - prior.shape) * keep, prior.rate + (rate - prior.rate) * keep


def predictive_scores(polls: Polls, prior: GammaPrior, horizon: float) -> Float64s:
    """Σ ln P(what the poll saw | the polls before), per item, for a filter that forgets over ``horizon``.

    Unchanged after t: −a·ln(1+t/b).

    >>> from afresh.rates.observations import polls_of
    >>> predictive_scores(polls_of(1.0, False), GammaPrior.of(1.0, 1.0), np.inf).round(12).tolist()   # ½
    [-0.69314718056]
    """
    rows = prior.for_items(polls.items)
    shape, rate, score = rows.shape.copy(), rows.rate.copy(), np.zeros(polls.items)
    first = np.ones(polls.size, dtype=bool)
    first[1:] = polls.item[1:] != polls.item[:-1]
    for these in rounds(rank_within(first)):
        item, t, found = polls.item[these], polls.elapsed[these], polls.changed[these]
        own = GammaPrior(rows.shape[item], rows.rate[item])
        a, b = faded(shape[item], rate[item], own, t, horizon)
        quiet = a * np.log1p(t / b)
        # ln(1−e^{−q}); both are evaluated, so keep the unused one off its pole.
        seen = np.log(-np.expm1(-np.maximum(quiet, np.finfo(float).tiny)))
        score[item] += np.where(found, seen, -quiet)
        b[~found] += t[~found]
        a[found], b[found] = found_change(a[found], b[found], t[found])
        shape[item], rate[item] = a, b
    return score


def choose_horizon(polls: Polls, prior: GammaPrior) -> Drift:
    """The horizon that predicts best, half the longest history down to 1/128 of it, or none.

    >>> from afresh.rates.observations import polls_of
    >>> item = np.repeat(np.arange(50), 40)
    >>> busy_then_quiet = polls_of(np.ones(2000), np.tile(np.arange(40) < 20, 50), item=item)
    >>> choose_horizon(busy_then_quiet, GammaPrior.of(1.0, 1.0)).supported
    True
    """
    telling = (polls.polls_per_item() >= 4) & (polls.changes_per_item() > 0)
    telling &= np.cumsum(telling) % -(-max(1, int(telling.sum())) // ITEMS_ENOUGH) == 0
    if np.count_nonzero(telling) < 2:
        return Drift(math.inf, 0.0, 0.0)
    part, own = polls.of_items(telling), prior.for_items(polls.items)
    own = GammaPrior(own.shape[telling], own.rate[telling])
    still = predictive_scores(part, own, math.inf)
    longest = float(part.time_per_item().max())
    best = Drift(math.inf, -math.inf, 0.0)
    for halving in range(1, HALVINGS + 1):
        horizon = longest / 2.0**halving
        gains = predictive_scores(part, own, horizon) - still
        error = float(gains.std(ddof=1)) * math.sqrt(gains.size)
        gain = float(gains.sum())
        if gain > best.gain:
            best = Drift(horizon, gain, gain / max(error, 1e-300))
    enough = best.gain > 0 and best.standard_errors > MARGIN
    return Drift(best.horizon if enough else math.inf, best.gain / part.size, best.standard_errors)
