"""What goes into a search for the best interval, and what comes out of it: arrays with a number per item.

With benefit B, stale cost O and update cost C_U per record, n records refreshed together at the cost C(n),

    NI(u) = G·F(u) − S − K/u − U·(1−z(u))/u,    G = n(B+O),  S = nO,  K = C(n),  U = n·C_U

is the net income per time of refreshing every u (Razniewski 2016, Eqs. 6, 12, 13 and 15, the last with
1−z(u) for z(u)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Float64s


@dataclass(frozen=True, slots=True)
class IncomeTerms:
    """G, S, K and U of the formula above, one number per item."""

    gain: Float64s
    stale: Float64s
    check: Float64s
    update: Float64s

    def take(self, rows: npt.NDArray[np.intp]) -> IncomeTerms:
        """The terms of some of the items."""
        return IncomeTerms(self.gain[rows], self.stale[rows], self.check[rows], self.update[rows])


@dataclass(frozen=True, slots=True)
class IntervalOptimum:
    """The best interval of each item.

    ``interval``  u*, the interval of the highest net income; infinite where none beats never refreshing.
    ``excess``    NI(u*) less the income of never refreshing; above 0, or 0 where the interval is infinite.
    ``freshness`` F(u*), the share of time the copy is right.
    ``threshold`` the gain G = n(B+O) up to which no interval beats never refreshing.

    Where NI jumps down at a step of z, its supremum is the limit from the left: ``excess`` is
    that limit and ``interval`` the last moment before the step.
    """

    interval: Float64s
    excess: Float64s
    freshness: Float64s
    threshold: Float64s


def make_optimum(
    interval: Float64s, excess: Float64s, freshness: Float64s, threshold: Float64s, plateau: Float64s | float
) -> IntervalOptimum:
    """An optimum in which futile items have an infinite interval, where freshness is the plateau z(∞).

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
    """The last moment before a step at ``time``, early enough to stay so when divided by the step's width.

    >>> bool(just_before(np.array(3.0)) < 3.0), int(np.floor(just_before(np.array(0.3)) / 0.1))
    (True, 2)
    """
    return time * (1 - 4 * np.finfo(np.float64).eps)
