"""Verdicts: why refreshing an item pays or does not, as codes for many items and as text for one.

Refreshing is futile when no interval earns more than never refreshing does, that is when one refresh cannot
earn its own cost: sup_u [ (B+O)·∫₀ᵘ(z−z∞) − C − C_U·(1−z(u)) ] ≤ 0 (Razniewski 2016, §5 "Futile Entities",
extended to stale and update costs and to plateaus).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from afresh.values.arrays import Bools, Float64s


class RefreshVerdict(IntEnum):
    """Why an item is refreshed, or is not; the first that fits."""

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
"""A reason for each verdict, for tables."""


def verdicts(pays: Bools, gain: Float64s, threshold: Float64s) -> npt.NDArray[np.int8]:
    """The verdict of each item as a small integer, from its gain and the gain at which refreshing pays.

    >>> gain, threshold = np.array([3.0, 1.0, 0.0, 1.0, 1.0]), np.array([1.0, np.inf, 1.0, 2.0, 0.0])
    >>> [RefreshVerdict(v).name for v in verdicts(gain == 3, gain, threshold)]
    ['PAYS', 'STATIC', 'WORTHLESS', 'TOO_DEAR', 'TOO_RARE']
    """
    # just above the threshold the income may round to 0: the item is still too dear, not too rare
    conditions = [pays, np.isinf(threshold), gain == 0, gain <= threshold * (1 + 1e-6)]
    codes = [RefreshVerdict.PAYS, RefreshVerdict.STATIC, RefreshVerdict.WORTHLESS, RefreshVerdict.TOO_DEAR]
    return np.select(conditions, [np.int8(code) for code in codes], np.int8(RefreshVerdict.TOO_RARE))


def describe_verdict(verdict: RefreshVerdict, break_even: float, ratio: float) -> str:
    """The reason for one item as text, with the benefit above which refreshing pays.

    >>> describe_verdict(RefreshVerdict.PAYS, 0.457, 0.457)
    'pays: one refresh earns more than it costs; pays above a benefit of 0.457, 0.457 times the cost'
    """
    if verdict is RefreshVerdict.STATIC or break_even == 0:
        return VERDICT_TEXTS[verdict]
    times_cost = f", {ratio:.6g} times the cost" if np.isfinite(ratio) else ""
    return f"{VERDICT_TEXTS[verdict]}; pays above a benefit of {break_even:.6g}{times_cost}"
