"""How the freshness and age of one copy run over time (Cho & Garcia-Molina 2000, §2.2, Figures 2 and 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from afresh.model.decay import Decay
from afresh.model.decays.parameters import check_parameter
from afresh.model.time_course import FreshnessCourse
from afresh.values.arrays import Float64s


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
