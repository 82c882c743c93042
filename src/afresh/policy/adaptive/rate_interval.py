"""The credible interval of one item's rate, by its own polls: what is shown to people.

The policy's belief serves decisions: it attributes to a family's shocks what its items change together, and
its prior is as certain as if there were very many items. Here the likelihood of an item's own polls, each a
factor e^{−λτ} or 1 − e^{−λτ} that fades as the belief forgets, is combined with the learned prior and some
pseudo-items of the even one, so that the interval is wide where there are few items.
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.rate_belief import PER_OCTAVE, REDRAWN, RateBelief, initial_prior
from afresh.values.arrays import Bools, Float64s

EVEN_ITEMS = 20.0  # pseudo-items of the even prior in the learned one
FINER = 8  # steps between two rates of the ladder


def rate_interval(
    belief: RateBelief,
    elapsed: Float64s,
    changed: Bools,
    age: Float64s,
    *,
    level: float = 0.9,
    of_items: int = 1,
    guess: float = 0.0,
    guess_shape: float = 0.5,
    guess_doubt: float = 0.5,
) -> tuple[float, float, float]:
    """The median of an item's rate, and the interval that holds it with probability ``level``.

    Each poll of the item is ``age`` old, came ``elapsed`` after the one before, and found it ``changed`` or
    not. The prior was learned from ``of_items`` items. A ``guess`` of the rate (0: none) counts as much as
    ``guess_shape`` changes, and is wrong with probability ``guess_doubt``.

    >>> belief, none = RateBelief(1, frequency=1.0), np.zeros(0)
    >>> [float(f"{each:.2g}") for each in rate_interval(belief, none, none > 0, none)]
    [0.36, 0.0013, 99.0]
    >>> every, old = np.ones(20), np.arange(20.0)
    >>> [float(f"{each:.2g}") for each in rate_interval(belief, every, old > 9, old)]      # half of 20 polls
    [0.65, 0.36, 1.1]
    """
    steps = (np.arange(belief.rates.size * FINER) - 0.5 * (FINER - 1)) / FINER
    rates = belief.rates[0] * np.exp2(steps / PER_OCTAVE)
    prior = (of_items * belief.prior + EVEN_ITEMS * initial_prior(belief.rates)) / (of_items + EVEN_ITEMS)
    prior = np.repeat(prior, FINER) / FINER
    if guess > 0:
        told = np.exp(guess_shape * (np.log(rates / guess) - rates / guess))
        prior = guess_doubt * prior + (1.0 - guess_doubt) * told / told.sum()
    log = np.log(prior)
    expected = rates * elapsed[:, None]
    bits = np.where(changed[:, None], np.log(-np.expm1(-np.maximum(expected, 1e-300))), -expected)
    # Logs from before the engine may have been polled much less often: rates must last that long.
    horizon = max(belief.horizon, REDRAWN * float(elapsed.mean())) if elapsed.size else belief.horizon
    log += np.exp(-age / horizon) @ bits
    mass = np.exp(log - log.max())
    edges = np.log(belief.rates[0]) + np.log(2.0) * (np.arange(rates.size + 1) / FINER - 0.5) / PER_OCTAVE
    ends = np.array([0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level])
    found = np.exp(np.interp(ends, np.r_[0.0, np.cumsum(mass) / mass.sum()], edges))
    return float(found[0]), float(found[1]), float(found[2])
