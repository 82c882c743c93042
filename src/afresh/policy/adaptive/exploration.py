"""The value of information: what the answer of a poll is worth for later polls of the same item.

Knowing an item's rate lets the budget be spent better. With belief q about the rate, the best even interval
earns W(q) = max over f of Σ q·λ^{1−p}·value(λ/f) − price·f per time, where price = shadow price·c/w; W is
convex in q. A poll after τ splits q into q·e^{−λτ} (no change) and q·(1−e^{−λτ}) (a change), so its answer is
worth

    B(τ) = W(q·e^{−λτ}) + W(q·(1−e^{−λτ})) − W(q) ≥ 0

per time, for as long as the knowledge is used: the knowledge gradient (Frazier, Powell & Dayanik 2008). The
poll that is due anyway, at τ*, brings B(τ*) at no extra cost, so only B(τ) − B(τ*) counts for an earlier
poll. For items slower than their polls that is negative: waiting tells more. It matters for items that are
found changed at every poll. Some change a little faster than they are polled and deserve more polls, others
far too fast and deserve none, and only polls closer together can tell which.
"""

from __future__ import annotations

import numpy as np

from afresh.allocation.objectives import Objective
from afresh.policy.adaptive.rate_belief import Posteriors
from afresh.values.arrays import Bools, Float64s

# The frequencies at which an item may settle: from six octaves below the mean frequency, in steps of 3/4
# octave.
OCTAVES_BELOW, STEPS, PER_OCTAVE = 6, 16, 4 / 3
SATURATED = 0.25  # P(no change) at τ* above which waiting tells enough
SOONEST, TIMES = 5, 8  # octaves below the mean interval at which a poll may be made earlier; how many octaves


class Exploration:
    """B(τ) on the ladder of rates.

    >>> from afresh.allocation.objectives import objective_for
    >>> exploration = Exploration(objective_for("freshness", "fixed"), np.array([1 / 7, 1.0]), 1 / 30)
    >>> either = np.array([[0.5, 0.5]], dtype=np.float32)       # changes weekly or daily
    >>> soon, late = (exploration.information(either, np.array([t]), np.array([3.4]))[0] for t in (5.0, 30.0))
    >>> soon.round(3), late.round(3)                            # freshness, by a poll after 5 and 30 days
    (np.float64(0.028), np.float64(0.001))
    """

    def __init__(self, objective: Objective, rates: Float64s, frequency: float) -> None:
        self.rates = rates
        self.settled = (frequency * np.exp2(np.arange(STEPS) / PER_OCTAVE - OCTAVES_BELOW)).astype(np.float32)
        scale = rates[:, None] ** (1.0 - objective.power)
        self.earned = (scale * objective.value(rates[:, None] / self.settled)).astype(np.float32)
        self.times = np.exp2(np.arange(TIMES) - SOONEST) / frequency

    def information(self, posterior: Posteriors, elapsed: Float64s, price: Float64s) -> Float64s:
        """B(τ) of each row; one τ may serve all rows."""
        unchanged = posterior * np.exp(-elapsed[:, None] * self.rates).astype(np.float32)
        cost = price.astype(np.float32)
        best = self._best_income
        gain = best(unchanged, cost) + best(posterior - unchanged, cost) - best(posterior, cost)
        return np.asarray(np.maximum(gain, 0.0), dtype=np.float64)

    def _best_income(self, posterior: Posteriors, price: Posteriors) -> Posteriors:
        """W(q) of each row; rows need not sum to 1."""
        earned = posterior @ self.earned
        earned -= (posterior.sum(axis=1) * price)[:, None] * self.settled
        return np.asarray(earned.max(axis=1))

    def is_uninformative(self, posterior: Posteriors, due: Float64s) -> Bools:
        """Whether the poll that is due anyway will almost surely find a change, and so tell little."""
        late = np.minimum(due, 1e6 * self.times[-1])
        # No change is at least as probable as at the mean rate (Jensen): this cheap test settles most items.
        found = (posterior @ self.rates.astype(np.float32)) * late >= -np.log(SATURATED)
        some = np.flatnonzero(found)
        unchanged = np.exp(-late[some, None] * self.rates).astype(np.float32)
        found[some] = np.einsum("ij,ij->i", posterior[some], unchanged) < SATURATED
        return np.asarray(found)
