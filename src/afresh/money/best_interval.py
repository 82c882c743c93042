"""The interval at which refreshing one item earns the most (Razniewski 2016, §5–7)."""

from __future__ import annotations

import numpy as np

from afresh.money.decay_groups import DecayLike
from afresh.money.many import best_intervals
from afresh.money.priced_items import CostOfSize
from afresh.money.verdicts import Verdict, in_words
from afresh.values.errors import UsageError
from afresh.values.results import Income


def best_interval(
    rate: float,
    benefit: float,
    cost: float,
    *,
    update_cost: float = 0,
    stale_cost: float = 0,
    decay: DecayLike = "exponential",
    size: float = 1,
    cost_of_size: CostOfSize = "constant",
) -> Income:
    """The interval of the highest net income, what it earns, and from which benefit refreshing pays.

    ``benefit`` is earned per time while the copy is right, ``stale_cost`` lost per time while it is wrong;
    each refresh costs ``cost``, and ``update_cost`` more where it finds a change. ``size`` records refreshed
    together cost ``cost`` times 1, √size or size (``cost_of_size``: constant, sqrt, linear, or a function).
    ``decay`` is a name (``weibull:0.8``) or a ``Decay`` object, whose own parameters then replace ``rate``.

    Where z jumps, as geometric decay does, net income may be highest just before a jump; the interval is
    then the last moment before it.

    >>> best = best_interval(0.163, 1.0, 1.0)
    >>> round(best.interval, 2), round(best.net_income, 2), best.futile
    (4.42, 0.49, False)

    Example 5 of the paper: at a linear rate of 1, an address is not worth its refreshes.

    >>> hopeless = best_interval(1.0, 1.0, 1.0, decay="linear")
    >>> hopeless.futile, hopeless.interval, hopeless.break_even
    (True, inf, 2.0)
    """
    if not (np.ndim(rate) == np.ndim(benefit) == np.ndim(cost) == np.ndim(size) == 0):
        raise UsageError("best_interval takes one item: use afresh.money.many.best_intervals for arrays")
    found = best_intervals(
        rate,
        benefit,
        cost,
        update_cost=update_cost,
        stale_cost=stale_cost,
        decay=decay,
        size=size,
        cost_of_size=cost_of_size,
    )
    break_even = float(found.break_even)
    ratio = break_even / float(cost) if cost > 0 else np.inf
    return Income(
        interval=float(found.interval),
        net_income=float(found.net_income),
        futile=bool(found.futile),
        freshness=float(found.freshness),
        break_even=break_even,
        break_even_ratio=ratio,
        reason=in_words(Verdict(int(found.verdict)), break_even, ratio),
    )
