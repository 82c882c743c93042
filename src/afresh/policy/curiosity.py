"""What is learned from a poll: the value of its bit for later polls, where no other poll would tell it.

Knowing an item's rate lets the budget be spent better. With belief q about the rate, the best even interval
earns W(q) = max over f of Σ q·λ^{1−p}·value(λ/f) − price·f per time, price being level·c/w: convex in q.
A poll after τ splits q into q·e^{−λτ} (no change) and q·(1−e^{−λτ}) (a change), so its bit is worth

    B(τ) = W(q·e^{−λτ}) + W(q·(1−e^{−λτ})) − W(q) ≥ 0

per time, for as long as the knowledge is used: the knowledge gradient (Frazier, Powell & Dayanik 2008). But
a poll that is due anyway, at τ*, brings B(τ*) for nothing, so only B(τ) − B(τ*) counts for an earlier one.
For items slower than their polls that is negative: waiting tells more. It matters for those found changed at
every look: some change a little faster than they are polled and deserve more polls, others far too fast and
deserve none, and only polls closer together can tell which.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives.objective import Objective
from afresh.policy.belief import Rows
from afresh.values.arrays import Bools, Float64s

OCTAVES_BELOW, STEPS, PER_OCTAVE = 6, 16, 4 / 3  # frequencies that an item may settle at, around the mean one
SATURATED = 0.25  # P(no change) at τ* above which waiting tells enough
SOONEST, TIMES = 5, 8  # octaves below the mean interval at which a bit may be asked for; how many octaves


class Curiosity:
    """B(τ) on the ladder of rates.

    >>> from afresh.allocation.objectives.registry import objective_for
    >>> curiosity = Curiosity(objective_for("freshness", "fixed"), np.array([1 / 7, 1.0]), 1 / 30)
    >>> either = np.array([[0.5, 0.5]], dtype=np.float32)       # changes weekly or daily
    >>> soon, late = (curiosity.bit(either, np.array([t]), np.array([3.4]))[0] for t in (5.0, 30.0))
    >>> soon.round(3), late.round(3)                            # freshness, by a poll after 5 and 30 days
    (np.float64(0.028), np.float64(0.001))
    """

    def __init__(self, objective: Objective, rates: Float64s, frequency: float) -> None:
        self.rates = rates
        self.settled = (frequency * np.exp2(np.arange(STEPS) / PER_OCTAVE - OCTAVES_BELOW)).astype(np.float32)
        scale = rates[:, None] ** (1.0 - objective.power)
        self.earned = (scale * objective.value(rates[:, None] / self.settled)).astype(np.float32)
        self.times = np.exp2(np.arange(TIMES) - SOONEST) / frequency

    def bit(self, rows: Rows, elapsed: Float64s, price: Float64s) -> Float64s:
        """B(τ) of each row, or B for one τ of all."""
        quiet = rows * np.exp(-elapsed[:, None] * self.rates).astype(np.float32)
        cost = price.astype(np.float32)
        gain = self._best(quiet, cost) + self._best(rows - quiet, cost) - self._best(rows, cost)
        return np.asarray(np.maximum(gain, 0.0), dtype=np.float64)

    def _best(self, rows: Rows, price: Rows) -> Rows:
        earned = rows @ self.earned
        earned -= (rows.sum(axis=1) * price)[:, None] * self.settled
        return np.asarray(earned.max(axis=1))

    def unsure(self, rows: Rows, due: Float64s) -> Bools:
        """Whether the poll that is due anyway will find a change almost surely, and tell little."""
        late = np.minimum(due, 1e6 * self.times[-1])
        # No change is at least as probable as at the mean rate (Jensen): most items are sure enough by that.
        found = (rows @ self.rates.astype(np.float32)) * late >= -np.log(SATURATED)
        some = np.flatnonzero(found)
        quiet = np.exp(-late[some, None] * self.rates).astype(np.float32)
        found[some] = np.einsum("ij,ij->i", rows[some], quiet) < SATURATED
        return np.asarray(found)
