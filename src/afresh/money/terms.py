"""The input and the result of a search for the best interval, and the verdict that follows.

For n records refreshed together at the cost C(n), with benefit B, stale cost O, update cost C_U per record,

    NI(u) = G·F(u) − S − K/u − U·(1−z(u))/u,    G = n(B+O),  S = nO,  K = C(n),  U = n·C_U

is the net income per time of refreshing at intervals u (Razniewski 2016, Eqs. 6, 12, 13 and 15, where 15 must
have 1−z(u) instead of z(u)). z(t) is the probability that a copy is still correct t after its refresh, z∞ its
limit, and F(u) its mean up to u, the freshness. Refreshing is futile if no interval earns more than never
refreshing, that is, if one refresh cannot earn its own cost: sup_u [ (B+O)·∫₀ᵘ(z−z∞) − C − C_U·(1−z(u)) ] ≤ 0
(§5 "Futile Entities", extended to stale costs, update costs and z∞ > 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class IncomeTerms:
    """G, S, K and U of the formula above, one number per item."""

    gain: Float64s
    stale: Float64s
    check: Float64s
    update: Float64s

    def take(self, rows: npt.NDArray[np.intp]) -> IncomeTerms:
        return IncomeTerms(self.gain[rows], self.stale[rows], self.check[rows], self.update[rows])


@dataclass(frozen=True, slots=True)
class IntervalOptimum:
    """The best interval of each item.

    ``interval``  u*, the interval of the highest net income; infinite if none beats never refreshing.
    ``excess``    NI(u*) minus the income of never refreshing; above 0, or 0 if the interval is infinite.
    ``freshness`` F(u*), the share of time in which the copy is correct.
    ``threshold`` the gain G = n(B+O) up to which no interval beats never refreshing.

    If NI jumps down at a step of z, its supremum is the limit from the left: ``excess`` is this limit and
    ``interval`` the last moment before the step.
    """

    interval: Float64s
    excess: Float64s
    freshness: Float64s
    threshold: Float64s


def make_optimum(
    interval: Float64s, excess: Float64s, freshness: Float64s, threshold: Float64s, plateau: Float64s | float
) -> IntervalOptimum:
    """Return the optimum; futile items (excess ≤ 0) get an infinite interval and the freshness z(∞).

    >>> one = np.array([1.0])
    >>> make_optimum(one, -one, one, one, 0.25).interval
    array([inf])
    """
    pays = excess > 0
    return IntervalOptimum(
        interval=np.where(pays, interval, np.inf),
        excess=np.where(pays, excess, 0.0),
        freshness=np.where(pays, freshness, plateau),
        threshold=threshold,
    )


def just_before(time: Float64s) -> Float64s:
    """Return the last moment before a step at ``time``; it stays before it if divided by the step's width.

    >>> bool(just_before(np.array(3.0)) < 3.0), int(np.floor(just_before(np.array(0.3)) / 0.1))
    (True, 2)
    """
    return time * (1 - 4 * np.finfo(np.float64).eps)


class RefreshVerdict(IntEnum):
    """The reason why an item is refreshed or not: the first that applies."""

    PAYS = 0
    STATIC = 1
    WORTHLESS = 2
    TOO_DEAR = 3
    TOO_RARE = 4


VERDICT_TEXTS = {
    RefreshVerdict.PAYS: "pays: one refresh earns more than it costs",
    RefreshVerdict.STATIC: "never changes: the copy stays right without a refresh",
    RefreshVerdict.WORTHLESS: "a right copy earns nothing and a wrong one costs nothing",
    RefreshVerdict.TOO_DEAR: "changes too fast for its cost: no interval earns what its refreshes cost",
    RefreshVerdict.TOO_RARE: "pays only at intervals beyond 1e300",
}
"""The text of each verdict, for tables."""


def verdicts(pays: Bools, gain: Float64s, threshold: Float64s) -> npt.NDArray[np.int8]:
    """Return each item's verdict as a small integer; ``threshold`` is the gain from which refreshing pays.

    >>> gain, threshold = np.array([3.0, 1.0, 0.0, 1.0, 1.0]), np.array([1.0, np.inf, 1.0, 2.0, 0.0])
    >>> [RefreshVerdict(v).name for v in verdicts(gain == 3, gain, threshold)]
    ['PAYS', 'STATIC', 'WORTHLESS', 'TOO_DEAR', 'TOO_RARE']
    """
    # Just above the threshold the income may round to 0; the item is then still TOO_DEAR, not TOO_RARE.
    conditions = [pays, np.isinf(threshold), gain == 0, gain <= threshold * (1 + 1e-6)]
    codes = [RefreshVerdict.PAYS, RefreshVerdict.STATIC, RefreshVerdict.WORTHLESS, RefreshVerdict.TOO_DEAR]
    return np.select(conditions, [np.int8(code) for code in codes], np.int8(RefreshVerdict.TOO_RARE))


def describe_verdict(verdict: RefreshVerdict, break_even: float, ratio: float) -> str:
    """Return the reason for one item as text, with the benefit above which refreshing pays.

    >>> describe_verdict(RefreshVerdict.PAYS, 0.457, 0.457)
    'pays: one refresh earns more than it costs; pays above a benefit of 0.457, 0.457 times the cost'
    """
    if verdict is RefreshVerdict.STATIC or break_even == 0:
        return VERDICT_TEXTS[verdict]
    times_cost = f", {ratio:.6g} times the cost" if np.isfinite(ratio) else ""
    return f"{VERDICT_TEXTS[verdict]}; pays above a benefit of {break_even:.6g}{times_cost}"
