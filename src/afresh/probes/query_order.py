"""In which order and how often to send the queries of a round (Yang et al. 2010, §4.3 and §4.4).

With k queries, one every I, and A_q = Σ_{e ∈ g_q} w_e λ_e the group sum of the tuples that q refreshes, the
expected content lag at the end of the round is Σ_q a_q (k − x_q)², a_q = A_q I²/(2|L|), x_q the query's
place. It is least with the a_q ascending. The lag per time of the round,

    g(x̃, I) = I · Σ_i (k − i)² A_(i) / (2k|L|),

grows with I, so the best I is where it meets the threshold α (the paper divides by |L| once more, so its α is
ours over |L|). The paper searches for it; since g is linear in I, it is I = α/g(x̃, 1). With one query g is 0.

In a repeating cycle the order does not change the average lag, but how often each group is refreshed does.
There the least lag has frequencies ∝ (A_q/c_q)^{1/3}, which is the allocation with objective lag.
"""

from __future__ import annotations

import math

import numpy as np

from afresh.values.arrays import ArrayLike, Float64s, Ints, nonnegative


def lag_after_round(coefficients: ArrayLike, places: ArrayLike) -> float:
    """Eqn. (4): Σ a_q (k − x_q)²; place 0 is a query not sent.

    >>> lag_after_round([0.375, 0.875], [1, 2])  # the least of the paper's Table 3
    0.375
    """
    a = nonnegative("coefficients", coefficients).astype(np.float64)
    x = nonnegative("places", places).astype(np.float64)
    return float((a * np.square(len(a) - x)).sum())


def coefficients(group_sums: ArrayLike, tuples: int, interval: float) -> Float64s:
    """a_q = A_q I²/(2|L|).

    >>> coefficients([3.0, 7.0], tuples=4, interval=1.0)
    array([0.375, 0.875])
    """
    return np.asarray(nonnegative("group sums", group_sums) * (interval * interval / (2 * tuples)))


def best_order(group_sums: ArrayLike) -> Ints:
    """The queries in the order to send them: ascending group sums, ties as given.

    >>> best_order([7.0, 3.0])
    array([1, 0])
    """
    return np.argsort(nonnegative("group sums", group_sums), kind="stable")


def round_length(queries: int, interval: float, pause: float = 0.0) -> float:
    """kI + τ: how long one round takes, with the pause after it (Algorithm 1).

    >>> round_length(10, 0.5, pause=2.0)
    7.0
    """
    return queries * interval + pause


def lag_per_time(group_sums: ArrayLike, tuples: int, interval: float) -> float:
    """g(x̃, I), the lag at the end of the best-ordered round per time of the round.

    >>> lag_per_time([3.0, 7.0], tuples=4, interval=1.0)
    0.1875
    """
    sums = np.sort(nonnegative("group sums", group_sums).astype(np.float64))
    left = np.arange(len(sums) - 1, -1, -1.0)
    return float(interval * (left * left * sums).sum() / (2 * len(sums) * tuples))


def interval_for(group_sums: ArrayLike, tuples: int, alpha: float) -> float:
    """The interval at which g meets ``alpha``; infinite where the lag is 0 at every interval.

    >>> interval_for([3.0, 7.0], tuples=4, alpha=0.75)
    4.0
    """
    per_interval = lag_per_time(group_sums, tuples, 1.0)
    return math.inf if per_interval == 0 else alpha / per_interval
