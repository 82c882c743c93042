"""Net income of refreshing at a given interval, for any decay (Razniewski 2016, Eqs. 6 and 12–15, corrected).

    NI(u) = n·B·F(u) − n·O·(1−F(u)) − C(n)/u − n·C_U·(1−z(u))/u,    F(u) = (1/u)·∫₀ᵘ z

(the paper's Eqs. 15 and 16 have z(u) where 1−z(u) must stand: only a check that finds a change pays C_U).
"""

from __future__ import annotations

import numpy as np

from afresh.money.decays import DecayLike, decay_groups
from afresh.money.pieces import excess
from afresh.money.terms import Array, CostOfSize, Terms, align, terms_of
from afresh.values.arrays import ArrayLike, like_inputs, nonnegative


def net_income(
    interval: ArrayLike,
    rate: ArrayLike,
    benefit: ArrayLike,
    cost: ArrayLike,
    *,
    update_cost: ArrayLike = 0,
    stale_cost: ArrayLike = 0,
    decay: DecayLike = "exponential",
    size: ArrayLike = 1,
    cost_of_size: CostOfSize = "constant",
) -> Array:
    """Net income per time of refreshing every ``interval`` (infinite: never). Scalars give a float.

    Example 3 of the paper: a 40-year-old doctor's address, refreshed every two years.

    >>> round(net_income(2.0, 0.163, 1.0, 1.0), 2)
    0.35

    Example 9: a check costs 0.10, and 1 more where it finds a change; every 4.42 years, then yearly.

    >>> net_income([4.42, 1.0], 0.163, 1.0, 0.1, update_cost=1.0).round(3)
    array([0.574, 0.672])
    """
    terms = terms_of(
        benefit, cost, update_cost=update_cost, stale_cost=stale_cost, size=size, cost_of_size=cost_of_size
    )
    times, rates = nonnegative("interval", interval, infinite=True), nonnegative("rate", rate)
    u, lam, *parts = align(
        {"interval": times, "rate": rates, "benefit": terms.gain}
        | {"stale_cost": terms.stale, "cost": terms.check, "update_cost": terms.update}
    )
    flat = Terms(*(part.ravel() for part in parts))
    income = np.empty(u.size)
    for group in decay_groups(decay, lam.ravel()):
        some = flat.take(group.rows)
        never = some.gain * group.decay.plateau() - some.stale
        income[group.rows] = never + excess(group.decay, some, u.ravel()[group.rows])
    result: Array = like_inputs(income.reshape(u.shape), times, rates)
    return result
