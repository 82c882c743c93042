"""The regime of a log of polls: whether rates have an hour-of-week season, and whether they drift.

Both are searched in a sample of the items and used only where they predict clearly better (``season``,
``forgetting``). A season turns clock time into operational time, in which drift is then searched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.rates.estimate import estimate_polls
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.fit_gamma import fit_gamma
from afresh.rates.regimes.forgetting import choose_horizon
from afresh.rates.regimes.season import HOURS, Season, fit_season
from afresh.values.arrays import Bools

POLLS_ENOUGH = 100_000  # to decide on


@dataclass(frozen=True, slots=True)
class Regime:
    """The hour-of-week profile (flat: no season), and the horizon over which evidence fades (∞: not)."""

    season: Season
    horizon: float


def find_regime(
    polls: PollTable, *, hour: float, horizon: float | None = None, season: bool | None = None
) -> Regime:
    """The season and the horizon of forgetting that the polls support.

    ``hour`` is the length of an hour in the unit of their times.

    A given ``horizon`` (∞: none) is taken as it is, and so is a ``season`` of true or false.

    >>> from afresh.rates.poll_table import polls_from_times
    >>> steady = polls_from_times(np.repeat([0, 1], 50), np.tile(np.arange(50.0), 2), np.arange(100) % 3 == 0)
    >>> found = find_regime(steady, hour=1 / 24)
    >>> found.season.is_supported, found.horizon
    (False, inf)
    """
    flat = Season(np.ones(HOURS), hour)
    if polls.size == 0 or (season is False and horizon is not None):
        return Regime(flat, math.inf if horizon is None else horizon)
    part = polls.of_items(_sample(polls))
    prior = fit_gamma(part)
    found = flat
    if season is not False:
        # Not by the Gamma filter: where items are polled each at its own pace one Gamma is wrong for some.
        found = fit_season(part, estimate_polls(part).rate, hour=hour, always=season is True)
        part = found.apply_to(part) if found.is_supported else part
    return Regime(found, choose_horizon(part, prior).horizon if horizon is None else horizon)


def _sample(polls: PollTable) -> Bools:
    """Every k-th item, so that the polls of these suffice to decide."""
    every = max(1, -(-polls.size // POLLS_ENOUGH))
    return np.asarray(np.arange(polls.items) % every == 0)
