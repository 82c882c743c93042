"""The input and the result of a search for the best interval between refreshes, and the verdict that follows.

A correct copy earns the benefit B per time and record, a wrong copy costs O. A refresh of n records together
costs C(n), and C_U more for each record that has changed. If they are refreshed every u, the net income per
time is

    NI(u) = G·F(u) − S − K/u − U·(1−z(u))/u,    G = n(B+O),  S = nO,  K = C(n),  U = n·C_U

(Razniewski 2016, Eqs. 6, 12, 13 and 15, where 15 must have 1−z(u) instead of z(u)). z(t) is the probability
that a copy is still correct t after its refresh, z∞ its limit, and F(u) its mean from 0 to u, the freshness.
Refreshing is futile if no interval earns more than never refreshing, that is, if one refresh cannot earn its
own cost: sup_u [ (B+O)·∫₀ᵘ(z−z∞) − C − C_U·(1−z(u)) ] ≤ 0 (§5 "Futile Entities", extended to stale costs,
update costs and z∞ > 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s


@dataclass(frozen=True, slots=True)
class IncomeTerms:
    """The money terms of each item: the symbols G, S, K and U of this module's docstring.

    ``gain`` G is what a correct copy is worth per time, compared with a wrong one. ``stale`` S is what a
    wrong copy costs per time. ``check`` K is the cost of a refresh, ``update`` U its additional cost after a
    change."""

    gain: Float64s
    stale: Float64s
    check: Float64s
    update: Float64s

    def take(self, rows: npt.NDArray[np.intp]) -> IncomeTerms:
        return IncomeTerms(self.gain[rows], self.stale[rows], self.check[rows], self.update[rows])


@dataclass(frozen=True, slots=True)
class IntervalOptimum:
    """The best time between refreshes of each item.

    ``interval``  the time between refreshes with the highest net income; infinite if none pays.
    ``excess``    that net income per time minus the income of never refreshing; 0 if no interval pays.
    ``freshness`` the share of time in which the copy is correct.
    ``threshold`` the gain (``IncomeTerms.gain``) up to which no interval pays.

    If the income jumps down at a step of the decay function, ``interval`` is the last moment before the step.
    """

    interval: Float64s
    excess: Float64s
    freshness: Float64s
    threshold: Float64s


def make_optimum(
    interval: Float64s, excess: Float64s, freshness: Float64s, threshold: Float64s, plateau: Float64s | float
) -> IntervalOptimum:
    """Return the optimum. Items with an excess ≤ 0 get an infinite interval and the freshness ``plateau``.

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
    """Return the last moment before a step at ``time``; divided by the step's length, it is still before it.

    >>> bool(just_before(np.array(3.0)) < 3.0), int(np.floor(just_before(np.array(0.3)) / 0.1))
    (True, 2)
    """
    return time * (1 - 4 * np.finfo(np.float64).eps)


class RefreshVerdict(IntEnum):
    """Why an item is refreshed (PAYS) or not (all others); ``VERDICT_TEXTS`` explains them."""

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
    """Return the ``RefreshVerdict`` of each item: the first that applies.
    ``threshold`` is the gain up to which refreshing does not pay.

    >>> gain, threshold = np.array([3.0, 1.0, 0.0, 1.0, 1.0]), np.array([1.0, np.inf, 1.0, 2.0, 0.0])
    >>> [RefreshVerdict(v).name for v in verdicts(gain == 3, gain, threshold)]
    ['PAYS', 'STATIC', 'WORTHLESS', 'TOO_DEAR', 'TOO_RARE']
    """
    # Just above the threshold the income may round to 0; the item is then still TOO_DEAR, not TOO_RARE.
    conditions = [pays, np.isinf(threshold), gain == 0, gain <= threshold * (1 + 1e-6)]
    codes = [RefreshVerdict.PAYS, RefreshVerdict.STATIC, RefreshVerdict.WORTHLESS, RefreshVerdict.TOO_DEAR]
    return np.select(conditions, [np.int8(code) for code in codes], np.int8(RefreshVerdict.TOO_RARE))


def describe_verdict(verdict: RefreshVerdict, break_even: float, ratio: float) -> str:
    """Return the verdict on one item as text, with the benefit above which refreshing pays (``break_even``).
    ``ratio`` is that benefit divided by the cost.

    >>> describe_verdict(RefreshVerdict.PAYS, 0.457, 0.457)
    'pays: one refresh earns more than it costs; pays above a benefit of 0.457, 0.457 times the cost'
    """
    if verdict is RefreshVerdict.STATIC or break_even == 0:
        return VERDICT_TEXTS[verdict]
    times_cost = f", {ratio:.6g} times the cost" if np.isfinite(ratio) else ""
    return f"{VERDICT_TEXTS[verdict]}; pays above a benefit of {break_even:.6g}{times_cost}"
