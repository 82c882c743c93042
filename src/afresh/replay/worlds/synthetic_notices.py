"""Notices of change for a history that has none: some changes are announced, some notices are false.

Each change is announced at once with probability ``recall`` (ρ of the notice model). False notices are
uniform over items and time, and so many that they are the share ``false`` of all notices.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Float64s, Ints
from afresh.values.errors import UsageError


def make_notices(
    change_item: Ints,
    change_time: Float64s,
    items: int,
    start: float,
    end: float,
    rng: np.random.Generator,
    *,
    recall: float,
    false: float,
) -> tuple[Ints, Float64s]:
    """Item and time of every notice, sorted by time.

    >>> item, time = make_notices(np.array([3, 4]), np.array([1.0, 2.0]), 9, 0.0, 5.0,
    ...                           np.random.default_rng(1), recall=1.0, false=0.0)
    >>> item.tolist(), time.tolist()
    ([3, 4], [1.0, 2.0])
    """
    if not 0 <= recall <= 1:
        raise UsageError(f"notices: recall is {recall:g}: must be from 0 to 1")
    if not 0 <= false < 1:
        raise UsageError(f"notices: false is {false:g}: must be a share of the notices, from 0 to below 1")
    announced = rng.random(change_item.size) < recall
    false_count = rng.poisson(np.count_nonzero(announced) * false / (1 - false))
    item = np.concatenate([change_item[announced], rng.integers(0, max(items, 1), false_count)])
    time = np.concatenate([change_time[announced], rng.uniform(start, end, false_count)])
    order = np.lexsort((item, time))
    return item[order], time[order]
