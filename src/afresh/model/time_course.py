"""Expected freshness and age of a database as functions of time (Cho & Garcia-Molina 2000, §2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.model.decay import Decay
from afresh.model.decays.parameters import check_parameter
from afresh.values.arrays import ArrayLike, Float64s
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class FreshnessCourse:
    """The expected freshness (0 to 1) and age of a database at each time in ``time``."""

    time: Float64s
    freshness: Float64s
    age: Float64s


def database_course(
    decay: Decay, interval: ArrayLike, t: ArrayLike, *, phase: ArrayLike = 0.0
) -> FreshnessCourse:
    """Return the expected freshness and age of a database at the times ``t``, as means over its items.

    Item i is refreshed at phase[i] + n·interval[i] for every integer n. ``interval``, ``phase`` and the
    parameters of ``decay`` broadcast. With an infinite interval an item is refreshed only once, at ``phase``,
    and no t may be earlier.

    >>> from afresh.model.decay import Exponential
    >>> course = database_course(Exponential(1.0), [1.0, 1.0], [0.0, 0.5, 1.0], phase=[0.0, 0.5])
    >>> course.freshness.round(4)
    array([0.8033, 0.8033, 0.8033])
    """
    times = check_parameter("t", t)
    intervals = check_parameter("interval", interval, low=1e-300, infinite=True)
    since = times.reshape(*times.shape, 1) - check_parameter("phase", phase)
    once = np.isinf(intervals)
    if (once & (since < 0)).any():
        raise InputError("t is before the one refresh of an item: an infinite interval needs t ≥ phase")
    elapsed = np.where(once, since, np.mod(since, np.where(once, 1.0, intervals)))
    fresh, old = decay.survival(elapsed), decay.loss(elapsed)
    return FreshnessCourse(times, np.asarray(fresh.mean(axis=-1)), np.asarray(old.mean(axis=-1)))
