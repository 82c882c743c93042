"""The search for the freshness plan of very many items, which may be in memory or in files on many machines.

All it needs of the items are two passes: ``build_histogram``, a sum over parts of the items, and
``write_plan``, which returns sums too. So each pass is one map over the parts and one merge. A search takes
about three passes of the first kind and two of the second (``allocate_large`` explains the steps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from afresh.allocation.large.cutoff import Cutoff
from afresh.allocation.large.histogram import Histogram
from afresh.allocation.large.item_columns import WHOLE, PlanSums, PriceWindow

_LOOKS = 8  # how often the items near the edge are counted again at most; four times reach single doubles
_TRIES = 6
_GOOD_SPEND = 5e-10
_GOOD_SCALE = 1e-7  # a plan scaled by 1+ε is within 2ε of the best plan in the sum of differences


class PlanPasses(Protocol):
    """The two passes over all items, each of which may process parts of the items in any order."""

    def build_histogram(self, window: PriceWindow = WHOLE) -> Histogram:
        """Return the histogram of the items whose price lies in ``window``."""

    def write_plan(self, cutoff: Cutoff, scale: float, *, with_age: bool) -> PlanSums:
        """Return sums over the plan with this cut-off, whose frequencies are multiplied by ``scale``.
        If the items are in memory, the frequencies are written too."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan as its cut-off and ``scale``, from which the frequency of each item follows, and its sums.
    ``total_weight`` is the sum of all weights. ``cutoff`` is None if no item can gain from a refresh."""

    cutoff: Cutoff | None
    scale: float
    sums: PlanSums
    total_weight: float

    @property
    def multiplier(self) -> float:
        return 0.0 if self.cutoff is None else self.cutoff.multiplier

    @property
    def freshness(self) -> float:
        return 1.0 if self.cutoff is None else self.sums.value / self.total_weight

    @property
    def age(self) -> float:
        if self.cutoff is None:
            return 0.0
        return math.inf if self.sums.dropped else self.sums.age / self.total_weight

    def gap(self, budget: float, rounding: float) -> float:
        """Return a bound of what another plan gains more; ``rounding`` is that of the stored frequencies.
        To second order a plan scaled by 1+ε loses ½ε²·Σ w·r·e^{−r}, and r·e^{−r} ≤ 1/e. Rounding by ε does
        too."""
        if self.cutoff is None:
            return 0.0
        error = max(abs(self.scale - 1), rounding)
        left = self.multiplier * max(budget - self.sums.spend, 0.0)
        return 0.5 * error**2 * self.total_weight / math.e + left


def find_plan(passes: PlanPasses, budget: float, histogram: Histogram | None = None) -> FoundPlan:
    """Return the freshness plan that spends ``budget``. ``histogram`` is the one of all items, if a pass has
    already built it."""
    histogram = passes.build_histogram() if histogram is None else histogram
    if not len(histogram.start):  # every item has rate 0 or weight 0
        return FoundPlan(None, 1.0, PlanSums(0.0, 0.0, 0.0, 0), histogram.total_weight)
    cutoff = histogram.solve(budget)
    for _ in range(_LOOKS):
        window = histogram.window(cutoff.edge, budget)
        if window is None:
            break
        histogram = histogram.without(window) + passes.build_histogram(window)
        cutoff = histogram.solve(budget, near=cutoff)
    cutoff, scale, sums = _meet_budget(passes, histogram, cutoff, budget)
    return FoundPlan(cutoff, scale, sums, histogram.total_weight)


def _meet_budget(
    passes: PlanPasses, histogram: Histogram, cutoff: Cutoff, budget: float
) -> tuple[Cutoff, float, PlanSums]:
    """Write a plan whose exact spend meets the budget; return a tuple (cut-off, scale, sums of the plan)."""
    asked = budget
    for _ in range(_TRIES):
        scale = 1.0
        with_age = histogram.dropped(cutoff) == 0
        sums = passes.write_plan(cutoff, 1.0, with_age=with_age)
        off = sums.spend - budget
        if abs(off) <= _GOOD_SPEND * budget:
            break
        scale = budget / sums.spend
        if abs(off) <= _GOOD_SCALE * budget:
            sums = passes.write_plan(cutoff, scale, with_age=with_age)
            break
        # The error of the histogram's spend is nearly the same at a slightly different budget.
        asked *= scale
        cutoff = histogram.solve(asked, near=cutoff)
    if not with_age and sums.dropped == 0:
        sums = passes.write_plan(cutoff, scale, with_age=True)
    return cutoff, scale, sums
