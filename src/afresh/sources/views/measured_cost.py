"""What polls of an item were measured to cost: a mean in which the recent ones count more.

A ``WitnessSource`` tells it (``Evidence.cost_s``), without polls that had nothing to refresh; whoever ranks
an item takes it times the cost that its owner gave it (1 by default), so that an owner can still weigh.
"""

from __future__ import annotations

from dataclasses import dataclass

_RECENT = 20


@dataclass(frozen=True, slots=True)
class MeasuredCost:
    """The mean of ``count`` measurements, the last twenty of which make up most of it.

    >>> cost = MeasuredCost().added(2.0).added(4.0)
    >>> cost.mean, cost.count
    (3.0, 2)
    """

    mean: float = 0.0
    count: int = 0

    def added(self, measured: float) -> MeasuredCost:
        """With one more measurement."""
        count = self.count + 1
        return MeasuredCost(self.mean + (measured - self.mean) / min(count, _RECENT), count)
