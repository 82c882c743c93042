"""The poll value: what a poll of an item gains now, as the mean over the belief about its rate.

The formula is derived in docs/science.md. For one rate λ and E changes expected since the last poll it is
w·marginal(E)/(c·λ^p): for freshness w·(1−(1+E)e^{−E})/(cλ), for age w·k(E)/(cλ²), and so on as in
``allocation.objectives``. An item is due when its poll value reaches the shadow price. The functions here
take weight and cost as 1.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import objective_for
from afresh.policy.adaptive.rate_belief import Posteriors
from afresh.values.arrays import Float64s, Floats

MIDDLE = 9  # rates from the top of a ladder down to about the mean frequency
OCTAVES = 22  # of elapsed time over which due times are looked for
HALVINGS = 12  # of the logarithm of a time
SMALL = 0.05  # below it the series is right to 4e−9, and above it single precision to 5e−5


class PollValue:
    """Poll values for one objective.

    >>> poll_value = PollValue("freshness", np.array([1.0]))
    >>> poll_value.marginal(np.array([[1.0]])).round(4).tolist()
    [[0.2642]]
    """

    def __init__(self, objective: str, rates: Float64s) -> None:
        self.name = objective
        self.objective = objective_for(objective, "fixed")
        self.times: Float64s = np.exp2(np.arange(OCTAVES) - OCTAVES / 2) / rates[-MIDDLE:][0]
        power = self.objective.power
        values = self.marginal(rates[:, None] * self.times) / rates[:, None] ** power
        self.table = values.astype(np.float32)  # of each rate at each of the times

    def marginal(self, expected: Float64s) -> Float64s:
        if self.name != "freshness":
            return self.objective.marginal(expected)
        # The same as curves.g with fewer passes over the array: this is the innermost loop of the policy.
        gain = np.exp(-expected)
        gain *= -1.0 - expected
        gain += 1.0
        small = np.flatnonzero(expected < SMALL)
        if small.size:
            few = expected.ravel()[small]
            series = 0.5 - few * (1 / 3 - few * (1 / 8 - few * (1 / 30 - few / 144)))
            gain.ravel()[small] = few * few * series
        return gain

    def mean(self, posterior: Floats, expected: Float64s, rate: Float64s) -> Float64s:
        """Σ p·marginal(E)/rate^p of each row; ``rate`` is the rate at which E grows on average.

        One row of ``expected`` may serve all rows.
        """
        gain = self.marginal(expected)
        gain /= rate if self.objective.power == 1 else rate**self.objective.power
        return np.asarray(np.einsum("ij,ij->i", posterior, gain))

    def time_to_reach(self, posterior: Posteriors, value: Float64s) -> Float64s:
        """Time after a poll at which the poll value of each row reaches ``value``; infinite if never.

        The poll values of all rows on a ladder of times are one matrix product; between two of these times
        ln V is taken as linear in ln τ.
        """
        limits = np.finfo(np.float32)
        goal = np.clip(value, limits.tiny, limits.max).astype(np.float32)
        reached = posterior @ self.table
        below = np.add.reduce((reached < goal[:, None]).view(np.int8), axis=1, dtype=np.int8)
        place = np.clip(below, 1, OCTAVES - 1).astype(np.int64)
        flat = place + np.arange(0, reached.size, OCTAVES)
        left = np.maximum(reached.ravel()[flat - 1], limits.tiny)
        right = np.maximum(reached.ravel()[flat], limits.tiny)
        rise = np.maximum(np.log(right / left), np.float32(1e-7))
        share = np.clip(np.log(goal / left) / rise, 0.0, 1.0)
        return np.where(below == OCTAVES, np.inf, self.times[place - 1] * np.exp2(share))

    def exact_time_to_reach(
        self, posterior: Floats, rates: Float64s, value: Float64s, longest: float
    ) -> Float64s:
        """The same where each row has its own ``rates``, to a hundredth; infinite beyond ``longest``.

        It is also infinite where the median rate is too high for ``value``: the remaining doubt that a rate
        might be low would make every item worth a poll in the end.

        >>> poll_value = PollValue("freshness", np.array([1.0]))
        >>> one, goal = np.ones((2, 1)), np.array([0.2642, 1.1])
        >>> poll_value.exact_time_to_reach(one, one, goal, 1e9).round(1)
        array([ 1., inf])
        """
        low, high = np.full(value.size, 1e-3 * self.times[0]), np.full(value.size, longest)
        half = 0.5 * posterior.sum(axis=1, keepdims=True)
        median = np.argmax(np.cumsum(posterior, axis=1) >= half, axis=1)
        typical = np.take_along_axis(rates, median[:, None], axis=1)[:, 0]
        never = self.mean(posterior, rates * high[:, None], rates) < value
        never |= self.objective.top / typical**self.objective.power < value
        for _ in range(HALVINGS):
            middle = np.sqrt(low * high)
            reached = self.mean(posterior, rates * middle[:, None], rates) >= value
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.where(never, np.inf, high)
