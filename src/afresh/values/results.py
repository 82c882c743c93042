"""The result classes of the Python API; all are immutable."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.values.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Allocation:
    """How a budget is divided among items; the result of ``afresh.allocate``.

    Σ w·F is the sum over items of weight times objective value (for freshness, F is the item's freshness).

    ``frequency``  refreshes per unit of time for each item; the unit is that of the rates passed in.
    ``multiplier`` the gain in Σ w·F (or in −Σ w·loss) from one more unit of budget.
    ``spend``      the cost of this plan per unit of time; below the budget only if more would gain nothing.
    ``gap``        a proven bound: no other plan exceeds the Σ w·F of this plan by more than ``gap``.
    ``freshness``  the weighted mean freshness of the copies, whatever the objective.
    ``age``        the weighted mean age; infinite if a changing item of weight > 0 is never refreshed.
    ``dropped``    the number of changing items of weight > 0 that are not refreshed at this budget.
    """

    frequency: Floats
    multiplier: float
    spend: float
    gap: float
    freshness: float
    age: float
    dropped: int


@dataclass(frozen=True, slots=True)
class Income:
    """The income from refreshing one item at its best interval; the result of ``afresh.best_interval``.

    If no interval beats never refreshing, ``futile`` is True, ``interval`` is infinite and ``net_income`` is
    that of never refreshing. ``reason`` explains the result. ``break_even`` is the benefit per time above
    which refreshing pays; ``break_even_ratio`` is that benefit divided by the cost.
    """

    interval: float
    net_income: float
    futile: bool
    freshness: float
    break_even: float
    break_even_ratio: float
    reason: str


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """How often one item changes, estimated from its polls; the result of ``afresh.estimate``.

    ``rate`` is in changes per unit of the times passed in. It lies between ``low`` and ``high`` with the
    requested probability; ``high`` is infinite if every poll found a change and the method has no prior.
    ``polls`` counts the intervals between polls, ``changes`` the intervals that end with a change.
    """

    rate: float
    low: float
    high: float
    polls: int
    changes: int
    method: str


@dataclass(frozen=True, slots=True)
class RateEstimates:
    """``RateEstimate`` for many items: each array has one entry per item."""

    rate: Floats
    low: Floats
    high: Floats
    polls: Ints
    changes: Ints
    method: str
