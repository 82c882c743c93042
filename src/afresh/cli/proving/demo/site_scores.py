"""Computes the freshness of the demo's copies from the site's records, and the freshness in theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.cli.proving.demo.changing_site import DemoSite
from afresh.replay.change_history import ChangeHistory
from afresh.replay.scores import item_scores
from afresh.values.arrays import Float64s, Ints


@dataclass(frozen=True, slots=True)
class Score:
    """The mean freshness and age (in site-days) of the pages of one copy, and its number of requests."""

    freshness: float
    age_d: float
    requests: int


@dataclass(frozen=True, slots=True)
class Theory:
    """The freshness and age that Cho & Garcia-Molina 2000 predict for uniform polling and the optimum."""

    uniform: float
    uniform_age_d: float
    optimum: float


def theory(rates: Float64s, budget_per_d: float) -> Theory:
    """Compute the predictions for pages with these ``rates``, in changes per site-day; the budget is in
    requests per site-day.

    >>> rates = np.repeat(1 / np.array([1.0, 7, 30, 120, 365]), [230, 150, 160, 160, 300])
    >>> found = theory(rates, 1000 / 30)                       # Cho's Table 6
    >>> round(found.uniform, 4), round(found.uniform_age_d, 3), round(found.optimum, 4)
    (0.5729, 5.612, 0.6162)
    """
    uniform = allocate(rates, budget_per_d, policy="uniform")
    return Theory(uniform.freshness, uniform.age, allocate(rates, budget_per_d).freshness)


def captured(known: Theory, uniform: Score, afresh: Score) -> float:
    """Return the gain in freshness of afresh over uniform polling, divided by the gain of the optimum over
    uniform polling in theory.

    >>> known = Theory(uniform=0.5729, uniform_age_d=5.612, optimum=0.6162)
    >>> round(captured(known, Score(0.570, 5.6, 1000), Score(0.600, 6.0, 1000)), 2)
    0.69
    """
    return (afresh.freshness - uniform.freshness) / (known.optimum - known.uniform)


def captured_at_equal_requests(rates: Float64s, days: float, uniform: Score, afresh: Score) -> float:
    """Return what ``captured`` returns, corrected for requests that a copy could not make on a busy machine.

    Each copy is compared with the prediction for the number of requests that it made in ``days`` site-days.
    Both copies met the same changes, so the effect of chance cancels in their difference.

    >>> rates = np.repeat(1 / np.array([1.0, 7, 30, 120, 365]), [230, 150, 160, 160, 300])
    >>> round(captured_at_equal_requests(rates, 30.0, Score(0.570, 5.6, 1000), Score(0.600, 6.0, 1000)), 2)
    0.69
    >>> round(captured_at_equal_requests(rates, 30.0, Score(0.570, 5.6, 1000), Score(0.600, 6.0, 900)), 2)
    0.97
    """
    ours, theirs = (theory(rates, max(score.requests, 1) / days) for score in (afresh, uniform))
    gained = (afresh.freshness - ours.uniform) - (uniform.freshness - theirs.uniform)
    return gained / (ours.optimum - ours.uniform)


def scores(site: DemoSite, begin_d: float, end_d: float) -> list[Score]:
    """Return the exact score of each copy in the period from ``begin_d`` to ``end_d`` (site-days)."""
    history = site.history(end_d)
    return [_score(history, *site.visits(copy), begin_d) for copy in range(len(site.copies))]


def _score(history: ChangeHistory, page: Ints, time: Float64s, begin_d: float) -> Score:
    until = np.flatnonzero(time <= history.end)
    found = item_scores(history, page[until], time[until], begin_d)
    within = np.count_nonzero(time[until] > begin_d)
    return Score(float(found["freshness"].mean()), float(found["age"].mean()), int(within))
