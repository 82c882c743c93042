"""Logs of polls of items whose rates are steady, drift, or follow the hours of the week."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.rates.populations import poll_at_own_pace

from afresh.rates.estimator import estimate_polls
from afresh.rates.poll_table import PollTable, polls_from_times
from afresh.rates.season import HOURS, Season, fit_season
from afresh.rates.segments import Segments
from afresh.values.arrays import Float64s

ITEMS, NUMBER = 300, 60
HOUR = 1 / 24

hours = np.arange(HOURS)
PROFILES = {
    "flat": np.ones(HOURS),
    "day and night": 1.0 + 0.9 * np.sin(hours / 24 * 2 * np.pi),
    "week-end": np.where(hours < 48, 0.1, 1.0),
}


def drifting(rng: np.random.Generator, memory: float) -> PollTable:
    """Rates drawn anew after exponential times of mean ``memory``."""
    elapsed = rng.exponential(1.0, (ITEMS, NUMBER)) + 0.05
    rate = rng.gamma(1.0, 0.5, ITEMS)
    rates = np.empty_like(elapsed)
    for k in range(NUMBER):
        anew = rng.random(ITEMS) < -np.expm1(-elapsed[:, k] / memory)
        rate = np.where(anew, rng.gamma(1.0, 0.5, ITEMS), rate)
        rates[:, k] = rate
    changed = rng.random(elapsed.shape) < -np.expm1(-rates * elapsed)
    return PollTable(np.repeat(np.arange(ITEMS), NUMBER), elapsed.ravel(), changed.ravel(), ITEMS)


def steady(rng: np.random.Generator, number: int, *, regular: bool) -> PollTable:
    """Items that all change at the same rate."""
    elapsed = np.ones((ITEMS, number)) if regular else rng.exponential(1.0, (ITEMS, number)) + 0.05
    changed = rng.random(elapsed.shape) < -np.expm1(-0.3 * elapsed)
    return PollTable(np.repeat(np.arange(ITEMS), number), elapsed.ravel(), changed.ravel(), ITEMS)


def steady_log(fast: float, slow: float, share: float, seed: int) -> PollTable:
    """Two kinds of items, all first seen at one moment: the fast ones are done within hours of it."""
    _, _, polls = poll_at_own_pace(fast, slow, share, 10, np.random.default_rng(seed), items=600)
    runs, _ = Segments.of(polls.item, polls.elapsed)
    until = np.cumsum(polls.elapsed)
    return replace(polls, end=until - runs.spread((until - polls.elapsed)[runs.starts]))


def world(profile: Float64s, seed: int, items: int = 250, days: int = 60) -> PollTable:
    """Items that change by the profile, polled every nine hours or so."""
    rng = np.random.default_rng(seed)
    season = Season(profile / profile.mean(), 1.0)
    rows, times, bits = [], [], []
    for item in range(items):
        looks = np.arange(9.0 * rng.random(), 24.0 * days, 9.3)
        looks = looks + 4.0 * rng.random(looks.size)
        # Poisson in operational time, which equals clock time at full weeks only: hence a margin.
        changes = np.sort(rng.random(rng.poisson(rng.gamma(1.0, 0.02) * 24 * days)) * 24 * days)
        seen = np.diff(np.searchsorted(changes, season.operational(looks))) > 0
        rows.append(np.full(looks.size, item))
        times.append(looks)
        bits.append(np.concatenate(([False], seen)))
    return polls_from_times(np.concatenate(rows), np.concatenate(times), np.concatenate(bits), items=items)


def fitted(name: str, seed: int) -> Season:
    polls = world(PROFILES[name], seed)
    return fit_season(polls, estimate_polls(polls, method="gamma").rate, hour=1.0)
