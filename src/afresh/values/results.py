"""The frozen results of the Python API."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.values.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Allocation:
    """How a budget is spent over items: what ``afresh.allocate`` returns.

    ``frequency`` refreshes per time for each item, in the unit of the rates given.
    ``multiplier`` gain in Σ w·F (or in −Σ w·loss) per further unit of spend: the price of freshness.
    ``spend``      cost per time of this plan; below the budget only where nothing is left to buy.
    ``gap``        certificate: no plan is better than this one by more than ``gap`` in Σ w·F.
    ``freshness``  weighted mean freshness of the copies, whatever the objective.
    ``age``        weighted mean age; infinite as soon as a changing item of weight > 0 is never refreshed.
    ``dropped``    how many changing, weighted items are not worth a refresh at this budget.
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
    """What refreshing one item at its best interval earns: what ``afresh.best_interval`` returns.

    ``interval`` is infinite and ``net_income`` that of never refreshing where ``futile``; ``reason``
    says in words why, or what makes it worth while. ``break_even`` is the benefit per time at which
    refreshing starts to pay, ``break_even_ratio`` that benefit as a multiple of the cost.
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
    """How often one item changes, as far as its polls tell: what ``afresh.estimate`` returns.

    ``rate`` per unit of the times given; ``low`` and ``high`` hold it with the probability asked for
    (``high`` is infinite where every poll found a change and the method knows no prior).
    ``polls`` counts the intervals (the first look only starts the clock), ``changes`` those that held one.
    """

    rate: float
    low: float
    high: float
    polls: int
    changes: int
    method: str


@dataclass(frozen=True, slots=True)
class RateEstimates:
    """The same for many items: arrays with a row per item."""

    rate: Floats
    low: Floats
    high: Floats
    polls: Ints
    changes: Ints
    method: str
