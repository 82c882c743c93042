"""The poll value where the settings of a source state how its copies decay. Pure.

Poll values assume that an item changes at a constant rate λ, so that a copy is still fresh after a time t
with the probability e^{−λt}. A source may state another decay z(t) = Z(λt): linear, Weibull, gamma or Lomax
(Razniewski 2016, section 4; ``model.decay``). Its λ is the rate that the polls have shown, as in
``afresh money --decay``. The poll value of an item with λ, weight w and poll cost c, E = λτ, is then

    w·G(E)/(c·λ) − C_U/c·U(E)        with G(E) = ∫₀ᴱ Z − E·Z(E) and U(E) = 1 − Z(E) + E·Z'(E)

where C_U is the update cost. U is what one more refresh adds to the updates per time, (1−z(τ))/τ. With
Z(E) = e^{−E} both are g(E) = 1−(1+E)e^{−E}, and the formula is that of ``update_cost``.
"""

from __future__ import annotations

import numpy as np

from afresh.model.decay import decay_from
from afresh.policy.adaptive.poll_value import PollValue
from afresh.values.arrays import Float64s, Floats

SCALABLE = ("exponential", "linear", "weibull", "gamma", "lomax")
"""The names of the decays z(t) = Z(λt). A geometric decay has steps of a fixed length, and is none."""

_STEP = 1e-4  # relative step of the difference quotient for E·Z'(E)


class DecayedValue(PollValue):
    """Computes poll values of rows whose copies decay as ``spec`` says, such as ``weibull:0.8``. Their
    updates cost ``ratio`` = C_U/w each.

    >>> value = DecayedValue("linear", np.array([0.5]))
    >>> value.mean(np.ones((1, 1)), np.array([[1.0]]), np.array([[0.5]])).tolist()
    [1.0]
    """

    def __init__(self, spec: str, rates: Float64s, ratio: Float64s | float = 0.0) -> None:
        self._decay, self._ratio = decay_from(spec, 1.0), ratio
        super().__init__("freshness", rates)

    def marginal(self, expected: Float64s, change_chance: Float64s | None = None) -> Float64s:
        del change_chance  # of an exponential decay
        return self._decay.gain(expected)

    def mean(
        self, posterior: Floats, expected: Float64s, rate: Float64s, change_chance: Float64s | None = None
    ) -> Float64s:
        gain = super().mean(posterior, expected, rate, change_chance)
        if not np.any(self._ratio):
            return gain
        return np.asarray(gain - self._ratio * (posterior * self.updates(expected)).sum(axis=1))

    def updates(self, expected: Float64s) -> Float64s:
        """Return U(E)."""
        after, before = (self._decay.survival(expected * (1.0 + sign * _STEP)) for sign in (1.0, -1.0))
        return np.asarray(1.0 - self._decay.survival(expected) + (after - before) / (2.0 * _STEP))

    def highest(self, rate: Float64s) -> Float64s:
        return np.asarray(self._decay.total() / rate - self._ratio)
