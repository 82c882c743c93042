"""What a source reports about the staleness of its items without polling them.

A view source reads the change counters of all base tables every few seconds, which is cheap. The difference
between two readings is one observation: something below the item changed in between, or nothing did. Counts
are not taken as numbers of changes, because one transaction may write many rows.

How the engine uses a report, for an item of weight w, cost c and change rate λ:

    fresh   a poll gains nothing: its value is 0 until a change is observed
    stale   a refresh gains 1/λ of fresh time on average: its value is w/(cλ) per unit of cost

This is the rule for change notices with recall 1 and false-positive rate 0: refresh at once every item whose
value is above the shadow price μ of the budget, and leave the others alone. λ is ``rate_per_s``, learned
from every reading; c is ``cost_s``, the mean duration of recent refreshes. Both are None while unknown.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StalenessReport:
    """What the last reading says about one item. The field names are stored by the engine as JSON.

    ``elapsed_s``      time since the previous reading; 0 if this reading only sets a new baseline.
    ``changed``        whether anything below the item changed during that time.
    ``stale_since_s``  the first reading that found the copy out of date; None while it is up to date.
    ``known``          False if staleness cannot be observed: something below the item is not counted (a
                       foreign table), or the item has not been refreshed by us yet.
    ``below``          the items that this item is made from. A stale one is refreshed first.
    ``dispersion``     variance over mean of the rows written between readings; 1 for a Poisson number.
    """

    elapsed_s: float
    changed: bool
    stale_since_s: float | None = None
    known: bool = True
    rate_per_s: float | None = None
    low_per_s: float | None = None
    high_per_s: float | None = None
    cost_s: float | None = None
    below: tuple[str, ...] = ()
    dispersion: float | None = None

    @property
    def fresh(self) -> bool:
        """Whether the copy is known to be up to date."""
        return self.known and self.stale_since_s is None
