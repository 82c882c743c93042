"""Which stale items to rebuild now, within a number of seconds, if the next chance comes after a time T.

An item that has been stale for a seconds, and is not rebuilt, has the age a + t after a further time t.
Rebuilt now, it stays fresh until its next change, which comes at the rate λ. Over the time T a build gains:

    age          ∫ (a + t) − (t − (1−e^{−λt})/λ) dt = a·T + T²·h(λT),  h(x) = (x − 1 + e^{−x})/x²
    freshness    ∫ e^{−λt} dt = T·(1−e^{−x})/x,  x = λT

A stale item that others are made from must be built before them. So a *job* is an item with all stale items
below it, its gain and its cost are the sums over those that are not chosen yet, and the job with the highest
gain per second is chosen first. A build that failed n times in a row succeeds with the probability 1/(n + 1).
If not even the best job fits, it is chosen nevertheless when nothing is owed, because otherwise it would
never be built, and with it all jobs that gain at least as much per second as those before them and the
overhead together (which is the best ratio of gain to cost); what they cost too much is then paid off before
the next builds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_SMALL = 1e-4  # below, the series of h(x) is exact to double precision


@dataclass(frozen=True, slots=True)
class StaleItem:
    """An item that is stale. ``stale_s`` is for how many seconds, infinite if it was never built.
    ``rate_per_s`` is its changes per second, ``cost_s`` the seconds of a build, ``below`` are the keys of the
    items that it is made from, at any depth. ``failures`` is the number of failed builds since the last
    one that succeeded."""

    key: str
    stale_s: float
    rate_per_s: float
    cost_s: float
    weight: float = 1.0
    below: tuple[str, ...] = ()
    failures: int = 0


@dataclass(frozen=True, slots=True)
class BuildSelection:
    """The keys of the items to build, those that others are made from first, and the seconds that takes."""

    keys: tuple[str, ...]
    cost_s: float


def build_gain(item: StaleItem, period_s: float, objective: str) -> float:
    """Return what a build gains over a period, in seconds of freshness, or for other objectives in seconds²
    of age.

    >>> build_gain(StaleItem("a", 60.0, 0.0, 1.0), 3600.0, "age") == 60 * 3600 + 3600**2 / 2
    True
    >>> round(build_gain(StaleItem("a", 60.0, 1 / 600, 1.0), 3600.0, "freshness"))
    599
    """
    if item.weight == 0:
        return 0.0
    x = item.rate_per_s * period_s
    if objective == "freshness":
        value = period_s * (-math.expm1(-x) / x if x > 0 else 1.0)
    else:
        share = 0.5 - x / 6 if x < _SMALL else (x + math.expm1(-x)) / (x * x)
        value = item.stale_s * period_s + period_s * period_s * share
    return item.weight * value / (item.failures + 1)


def select_builds(
    items: Mapping[str, StaleItem],
    period_s: float,
    budget_s: float,
    *,
    objective: str = "age",
    overhead_s: float = 0.0,
    owes_nothing: bool = True,
) -> BuildSelection:
    """Choose which of the stale ``items`` to build within ``budget_s`` seconds. The next chance comes after
    ``period_s`` seconds. Each invocation takes ``overhead_s`` seconds besides.

    >>> old, busy = StaleItem("old", 600.0, 1e-4, 10.0), StaleItem("busy", 60.0, 1.0, 10.0)
    >>> select_builds({"old": old, "busy": busy}, 3600.0, 15.0)
    BuildSelection(keys=('old',), cost_s=10.0)
    >>> select_builds({"old": old, "busy": busy}, 3600.0, 5.0, owes_nothing=False)
    BuildSelection(keys=(), cost_s=0.0)
    """
    gains = {key: build_gain(item, period_s, objective) for key, item in items.items()}
    chosen: dict[str, None] = {}
    spent_s, gained, is_over = overhead_s, 0.0, False
    jobs = {key: (*(low for low in item.below if low in items), key) for key, item in items.items()}
    while jobs:
        for key in [key for key in jobs if key in chosen]:
            del jobs[key]
        costs = {key: _cost(job, items, chosen) for key, job in jobs.items()}
        ranked = sorted(jobs, key=lambda key: (-_density(jobs[key], items, gains, chosen), costs[key], key))
        taken = next((key for key in ranked if spent_s + costs[key] <= budget_s), None)
        if taken is None and owes_nothing and ranked and (is_over or not chosen):
            # Beyond the budget, a further job must gain as much per second as all so far, overhead included.
            is_over = not chosen or _density(jobs[ranked[0]], items, gains, chosen) * spent_s >= gained
            taken = ranked[0] if is_over else None
        if taken is None or gains[taken] <= 0:
            break
        gained += sum(gains[key] for key in jobs[taken] if key not in chosen)
        spent_s += costs[taken]
        chosen |= dict.fromkeys(_in_order(jobs[taken], items))
    keys = _in_order(tuple(chosen), items)
    return BuildSelection(keys, spent_s if keys else 0.0)


def _density(
    job: tuple[str, ...],
    items: Mapping[str, StaleItem],
    gains: Mapping[str, float],
    chosen: Mapping[str, None],
) -> float:
    gain = sum(gains[key] for key in job if key not in chosen)
    # A job succeeds only if what is below it does.
    gain /= 1 + max((items[key].failures for key in job[:-1] if key not in chosen), default=0)
    return gain / max(_cost(job, items, chosen), 1e-9)


def _cost(job: tuple[str, ...], items: Mapping[str, StaleItem], chosen: Mapping[str, None]) -> float:
    return sum(items[key].cost_s for key in job if key not in chosen)


def _in_order(keys: tuple[str, ...], items: Mapping[str, StaleItem]) -> tuple[str, ...]:
    """Return the keys, those that others are made from first."""
    return tuple(sorted(keys, key=lambda key: (len(items[key].below), key)))
