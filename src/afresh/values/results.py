"""The result classes of the Python API; all are immutable."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.values.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Allocation:
    """How a budget is divided among items; the result of ``afresh.allocate``.

    A plan maximises Σ w·F, the sum over the items of weight w times objective value F. For the objective
    freshness, F is the item's freshness; for losses such as age, F is minus the loss.

    ``frequency``  refreshes per unit of time for each item; the unit is that of the rates passed in.
    ``multiplier`` the gain in Σ w·F from one more unit of budget.
    ``spend``      the cost of this plan per unit of time; below the budget only if more would gain nothing.
    ``gap``        a proven bound: no other plan exceeds the Σ w·F of this plan by more than ``gap``.
    ``freshness``  the weighted mean freshness of the copies, whatever the objective.
    ``age``        the weighted mean age; infinite if a changing item of weight > 0 is never refreshed.
    ``dropped``    the number of changing items of weight > 0 that are not refreshed at this budget."""

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

    ``interval`` is the time between two refreshes, ``net_income`` the money per time after the cost of the
    refreshes. If no interval earns more than never refreshing, ``futile`` is True, ``interval`` is infinite
    and ``net_income`` is what the item earns without refreshes. ``reason`` explains the result.
    ``break_even`` is the benefit of a correct copy (money per time) above which refreshes pay;
    ``break_even_ratio`` is ``break_even`` divided by the cost of a refresh."""

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

    ``rate`` is in changes per unit of the times passed in. The true rate lies between ``low`` and ``high``
    with the requested probability; ``high`` is infinite if every poll found a change and the method has no
    prior. ``polls`` is the number of polls after the first one, ``changes`` how many of them found a change.
    ``method`` is the name of the estimator."""

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
