"""How freshness and age run over time, unaveraged (Cho & Garcia-Molina 2000, §2.2, Figures 2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay
from afresh.model.decays.parameters import check_parameter
from afresh.values.arrays import Float64s
from afresh.values.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class FreshnessCourse:
    """Freshness and age at each time."""

    time: Float64s
    freshness: Float64s
    age: Float64s


def expected_freshness(decay: Decay, t: npt.ArrayLike) -> Float64s:
    """E[F(t)] = z(t), t after a refresh; e^{−λt} for Poisson changes.

    >>> from afresh.model.decay import Exponential
    >>> expected_freshness(Exponential([1.0, 2.0]), 1.0).round(4)
    array([0.3679, 0.1353])
    """
    return decay.survival(check_parameter("t", t, infinite=True))


def expected_age(decay: Decay, t: npt.ArrayLike) -> Float64s:
    """E[A(t)] = t − ∫₀ᵗz, t after a refresh; t(1 − (1−e^{−λt})/(λt)) for Poisson changes.

    >>> from afresh.model.decay import Exponential
    >>> expected_age(Exponential([1.0, 2.0]), 1.0).round(4)
    array([0.3679, 0.5677])
    """
    return decay.loss(check_parameter("t", t, infinite=True))


def database_course(
    decay: Decay, interval: npt.ArrayLike, t: npt.ArrayLike, *, phase: npt.ArrayLike = 0.0
) -> FreshnessCourse:
    """Expected freshness and age of a database whose items are refreshed at ``phase + n·interval``.

    Items are the parameters of ``decay`` (and of ``interval`` and ``phase``, which broadcast); the mean is
    over them. Before its first refresh an item counts as refreshed one interval earlier; an infinite interval
    means refreshed once, at ``phase``, which no time may precede.

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


def observed_course(changes: npt.ArrayLike, refreshes: npt.ArrayLike, t: npt.ArrayLike) -> FreshnessCourse:
    """Freshness (1 or 0) and age of one copy, fresh at 0, whose source changed and which was refreshed then.

    A refresh at the very time of a change sees it. Cho & Garcia-Molina 2000, Figure 2.

    >>> course = observed_course([1.0, 1.5, 4.0], [2.0], [0.5, 1.5, 2.5, 6.0])
    >>> course.freshness, course.age
    (array([1., 0., 1., 0.]), array([0. , 0.5, 0. , 2. ]))
    """
    times = check_parameter("t", t)
    changed, refreshed = (
        np.sort(check_parameter("changes", changes)),
        np.sort(check_parameter("refreshes", refreshes)),
    )
    last = np.append(0.0, refreshed)[np.searchsorted(refreshed, times, side="right")]
    first_missed = np.append(changed, np.inf)[np.searchsorted(changed, last, side="right")]
    missed = first_missed <= times
    age = np.where(missed, times - np.where(missed, first_missed, 0.0), 0.0)
    return FreshnessCourse(times, np.where(missed, 0.0, 1.0), age)
