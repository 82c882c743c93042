"""Computes what the copies of the demo achieved from the site's own log of changes and requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afresh.cli.proving.demo.changing_site import DemoSite
from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.scores import item_scores
from afresh.replay.uniform_needs import UniformCurve
from afresh.values.arrays import Float64s, Ints

_ORDERS_SEED = 1  # the random orders in which uniform polling is replayed


@dataclass(frozen=True, slots=True)
class Score:
    """What one copy achieved. ``freshness`` is the mean over the pages by weight, ``important``,
    ``ordinary`` and ``announced`` the means over these pages, ``age_d`` the mean age by weight in site-days.
    ``requests`` counts all requests. ``uniform_needs`` is how many times as many requests uniform polling
    needs for the same freshness (below 1: the copy was worse than uniform polling)."""

    freshness: float
    important: float
    ordinary: float
    announced: float
    age_d: float
    requests: int
    uniform_needs: float


def score_copies(site: DemoSite, begin_d: float, end_d: float) -> list[Score]:
    """Return the score of each copy, in the period from ``begin_d`` to ``end_d`` (site-days)."""
    history = site.history(end_d)
    return [
        score_polls(
            history,
            *site.visits(copy),
            begin_d,
            requests=site.requests_between(copy, begin_d, end_d),
            announced=site.announced,
        )
        for copy in range(len(site.copies))
    ]


def score_polls(
    history: ChangeHistory,
    page: Ints,
    time: Float64s,
    begin_d: float,
    *,
    requests: int,
    announced: Sequence[int],
) -> Score:
    """Return the score of the polls of ``page`` at ``time`` from ``begin_d`` to the end of the history. The
    pages of ``history`` with more than the least weight are the important ones."""
    until = np.flatnonzero(time <= history.end)
    by_page = item_scores(history, page[until], time[until], begin_d)
    fresh, age, weight = by_page["freshness"], by_page["age"], history.weight
    freshness = float(np.average(fresh, weights=weight))
    important = weight > weight.min()
    return Score(
        freshness,
        _mean(fresh[important]),
        _mean(fresh[~important]),
        _mean(fresh[list(announced)]),
        float(np.average(age, weights=weight)),
        requests,
        uniform_needs(history, begin_d, freshness, requests),
    )


def uniform_needs(history: ChangeHistory, begin_d: float, freshness: float, requests: int) -> float:
    """Return how many times ``requests`` uniform polling needs to reach ``freshness`` from ``begin_d`` to the
    end of the history. Uniform polling is replayed on the same changes.

    >>> rng = np.random.default_rng(1)
    >>> history = ChangeHistory.of(20, rng.integers(0, 20, 400), rng.uniform(0, 100, 400), 0.0, 100.0)
    >>> curve = UniformCurve(history, PolicyInput.of(20, 10.0), (50.0,), seed=1)
    >>> round(uniform_needs(history, 50.0, curve.scores(64)[0], 500), 2)      # that of twice the budget
    2.0
    """
    per_d = max(requests, 1) / (history.end - begin_d)
    start = PolicyInput.of(history.items, per_d, weights=history.weight)
    return UniformCurve(history, start, (begin_d,), seed=_ORDERS_SEED).factor(freshness, 0)


def _mean(values: Float64s) -> float:
    return float(values.mean()) if values.size else float("nan")
