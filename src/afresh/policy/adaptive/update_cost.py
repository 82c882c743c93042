"""The poll value where taking over a change costs more than the check that finds it. Pure.

A poll costs the check c and, if it finds a change, the update cost C_U as well. With the value w of a fresh
copy per unit of time, the change rate λ and g(E) = 1−(1+E)e^{−E}, one more poll at E = λτ adds C_U·g(E) to
what is spent on updates, because updates cost C_U·λ·F per unit of time (Razniewski 2016, section 5,
corrected: B' = (B + O − λC_U)/C_C). So the poll value is

    w·Σ p·g(E)/(c·λ) − C_U/c·Σ p·g(E) = (w/c)·Σ p·(1/λ − u)·g(E)        with u = C_U/w

over the possible rates λ with their probabilities p. No poll pays where λ > w/(c + C_U).
"""

from __future__ import annotations

import numpy as np

from afresh.policy.adaptive.poll_value import PollValue
from afresh.values.arrays import Float64s, Floats


class UpdateCostValue(PollValue):
    """Computes poll values of rows whose updates cost ``ratio`` = C_U/w each, one number for each row.

    >>> rates = np.array([0.5])
    >>> value = UpdateCostValue("freshness", rates, np.array([0.0, 1.0]))
    >>> value.mean(np.ones((2, 1)), np.array([[1.0]]), rates[None]).round(3).tolist()
    [0.528, 0.264]
    """

    def __init__(self, objective: str, rates: Float64s, ratio: Float64s) -> None:
        super().__init__(objective, rates)
        self._ratio = ratio

    def mean(
        self, posterior: Floats, expected: Float64s, rate: Float64s, change_chance: Float64s | None = None
    ) -> Float64s:
        gain = super().mean(posterior, expected, rate, change_chance)
        chance = -np.expm1(-expected)
        found = chance - expected * (1.0 - chance)
        return np.asarray(gain - self._ratio * (posterior * found).sum(axis=1))

    def highest(self, rate: Float64s) -> Float64s:
        return super().highest(rate) - self._ratio
