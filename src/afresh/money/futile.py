"""Why refreshing pays or does not, in codes for many items and in words for one.

Refreshing is futile when no interval earns more than never refreshing does, that is when one refresh cannot
earn its own cost: sup_u [ (B+O)·∫₀ᵘ(z−z∞) − C − C_U·(1−z(u)) ] ≤ 0 (Razniewski 2016, §5 "Futile Entities",
extended to stale and update costs and to plateaus).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from afresh.money.terms import Array, Terms


class Verdict(IntEnum):
    """Why an item is refreshed, or is not; the first that fits."""

    PAYS = 0
    STATIC = 1
    WORTHLESS = 2
    TOO_DEAR = 3


WORDS = {
    Verdict.PAYS: "pays: one refresh earns more than it costs",
    Verdict.STATIC: "never changes: the copy stays right without a refresh",
    Verdict.WORTHLESS: "a right copy earns nothing and a wrong one costs nothing",
    Verdict.TOO_DEAR: "changes too fast for its cost: no interval earns what its refreshes cost",
}
"""A reason for each verdict, for tables."""


def verdicts(pays: npt.NDArray[np.bool_], terms: Terms, plateau: Array | float) -> npt.NDArray[np.int8]:
    """The verdict of each item as a small integer.

    >>> terms = Terms(np.array([1.0, 1.0, 0.0]), *np.zeros((3, 3)))
    >>> [Verdict(v).name for v in verdicts(np.array([True, False, False]), terms, np.array([0.0, 1.0, 0.0]))]
    ['PAYS', 'STATIC', 'WORTHLESS']
    """
    conditions = [pays, np.broadcast_to(np.asarray(plateau) >= 1, pays.shape), terms.gain == 0]
    codes = [Verdict.PAYS, Verdict.STATIC, Verdict.WORTHLESS]
    return np.select(conditions, [np.int8(code) for code in codes], np.int8(Verdict.TOO_DEAR)).astype(np.int8)


def in_words(verdict: Verdict, break_even: float, ratio: float) -> str:
    """The reason for one item, with the benefit from which refreshing would pay.

    >>> in_words(Verdict.TOO_DEAR, 1.25, 2.5)
    'changes too fast for its cost: no interval earns what its refreshes cost; pays above a benefit of 1.25, 2.5 times the cost'
    """
    if verdict is Verdict.STATIC:
        return WORDS[verdict]
    if break_even == 0:
        return f"{WORDS[verdict]}; would at any benefit above 0" if verdict else WORDS[verdict]
    times_cost = f", {ratio:.6g} times the cost" if np.isfinite(ratio) else ""
    return f"{WORDS[verdict]}; pays above a benefit of {break_even:.6g}{times_cost}"
