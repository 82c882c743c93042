"""Sentences about the rate of an item: its last sharp change, and where the policy expects another rate.

People are shown the rate that follows from the item's own polls. The policy expects a rate that may differ:
it also knows families, notices and corrections, and it follows a jump in its own way. Where the two differ by
more than chance, ``why`` says what the policy expects, so that no two sentences contradict each other.
"""

from __future__ import annotations

import math

import numpy as np

from afresh.engine.reporting.own_rates import OwnRate
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.values.formatting import format_moment
from afresh.values.units import format_changes

TOO_OFTEN = "it changes so often that a poll gains little"
LIMIT_DECIDES = "interval decides"


def expected_rate(policy: RowPolicy, row: int) -> float:
    """Return the median of the rates, in changes per second, with which the policy plans polls of ``row``.
    The mean of a wide distribution may be a hundred times as high."""
    rows, ranking = np.array([row]), policy.ranking
    share = np.cumsum(ranking.adaptive.belief.posteriors(rows)[0])
    rates = ranking.possible_rates(rows)[0]
    return float(np.exp(np.interp(0.5 * share[-1], share, np.log(rates))))


def describe_jump(rate: OwnRate) -> list[str]:
    """Return a sentence about the last sharp change of a rate, or nothing if there was none."""
    if math.isnan(rate.jumped_s):
        return []
    return [f"its rate changed sharply before {format_moment(rate.jumped_s)}: older polls do not count"]


def explain_difference(reasons: list[str], rate: OwnRate, expected: float) -> list[str]:
    """Return ``reasons`` with the rate that the policy expects, if it is outside the shown interval. That an
    item changes too often is then said of the expected rate, and not of the shown one. Nothing is added if a
    limit of the interval decides, whatever the rate is.

    >>> explain_difference([f"dropped: {TOO_OFTEN}"], OwnRate(1.0, 0.5, 2.0), 9.0)
    ['dropped: the policy expects 9 changes a second, so that a poll gains little']
    >>> explain_difference(["due now"], OwnRate(1.0, 0.5, 2.0), 1.5)
    ['due now']
    >>> explain_difference(["due now"], OwnRate(1.0, 0.5, 2.0), 9.0)
    ['due now', 'polls are planned for 9 changes a second, because other items and notices count too']
    """
    if rate.low <= expected <= rate.high:
        return reasons
    told = f"the policy expects {format_changes(expected)}"
    if any(TOO_OFTEN in words for words in reasons):
        return [words.replace(TOO_OFTEN, f"{told}, so that a poll gains little") for words in reasons]
    if any(words.endswith(LIMIT_DECIDES) for words in reasons):
        return reasons
    told = f"polls are planned for {format_changes(expected)}"
    return [*reasons, f"{told}, because other items and notices count too"]
