"""What a run of visits achieved, exact: time averages, each a mean over items by weight.

    freshness   share of the time in which a copy equals its original
    age         time since the first change that a copy lacks; 0 while fresh
    missed      changes that a copy lacks
    lag         Σ (t − tᵢ) over the changes that a copy lacks (Yang's content freshness)
    harmonic    1 + 1/2 + … + 1/n of the n changes that a copy lacks (Kolobov et al. 2019)
    error       |value − value of the copy|, for histories that know values; NaN for others

Intervals come from resampling the items (Poisson bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.replay.change_history import ChangeHistory
from afresh.replay.staleness import stale_spans
from afresh.replay.value_error import value_error
from afresh.values.arrays import Float64s, Ints

RESAMPLES = 400


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over the items and the stretch of time; ``low`` to ``high`` hold the freshness with 90 %."""

    freshness: float
    age: float
    missed: float
    lag: float
    harmonic: float
    error: float
    low: float
    high: float
    visits: int


def item_scores(history: ChangeHistory, item: Ints, time: Float64s, begin: float) -> dict[str, Float64s]:
    """Each metric of each item over (``begin``, end], from visits of ``item`` at ``time``.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 3.0], 0.0, 10.0)
    >>> scores = item_scores(history, np.array([0]), np.array([4.0]), 0.0)
    >>> {name: float(value[0]) for name, value in scores.items()}
    {'freshness': 0.8, 'age': 0.2, 'missed': 0.3, 'lag': 0.25, 'harmonic': 0.25, 'error': nan}
    """
    span = history.end - begin
    stale = stale_spans(history.change_item, history.time, item, time, history.end)
    seen = seen_at(history, item, time)
    lost = np.bincount(stale.item, _overlap(stale.begin, stale.end, begin), minlength=history.items)
    aged = np.bincount(stale.item, _grown(stale.begin, stale.end, begin), minlength=history.items)
    owner, lacking = history.change_item, _overlap(history.time, seen, begin)
    missed = np.bincount(owner, lacking, minlength=history.items)
    lag = np.bincount(owner, _grown(history.time, seen, begin), minlength=history.items)
    harmonic = np.bincount(owner, lacking / _rank(owner, seen), minlength=history.items)
    return {
        "freshness": 1.0 - lost / span,
        "age": aged / span,
        "missed": missed / span,
        "lag": lag / span,
        "harmonic": harmonic / span,
        "error": value_error(history, item, time, begin),
    }


def _rank(owner: Ints, seen: Float64s) -> Ints:
    """The how-manieth change each is since the visit before it: changes seen together follow each other.

    >>> _rank(np.array([0, 0, 0, 1]), np.array([4.0, 4.0, 9.0, 9.0])).tolist()
    [1, 2, 1, 1]
    """
    place = np.arange(owner.size)
    first = np.ones(owner.size, dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (seen[1:] != seen[:-1])
    return np.asarray(place - np.maximum.accumulate(np.where(first, place, 0)) + 1)


def seen_at(history: ChangeHistory, item: Ints, time: Float64s) -> Float64s:
    """When each change is seen: at the first visit at or after it; the end where none comes.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 5.0], 0.0, 10.0)
    >>> seen_at(history, np.array([0]), np.array([4.0])).tolist()
    [4.0, 10.0]
    """
    changes, visits = history.time.size, item.size
    owner = np.concatenate([history.change_item, item])
    moment = np.concatenate([history.time, time])
    is_visit = np.repeat([False, True], [changes, visits])
    order = np.lexsort((is_visit, moment, owner))
    # Walking backwards, the last visit met is the next one after: keep it while the item stays the same.
    place = np.where(is_visit[order], np.arange(order.size), order.size)
    following = np.minimum.accumulate(place[::-1])[::-1]
    owners = np.append(owner[order], -1)
    same = owners[following] == owners[:-1]
    when = np.where(same, np.append(moment[order], history.end)[following], history.end)
    result = np.empty(order.size)
    result[order] = when
    return result[:changes]


def score_visits(
    history: ChangeHistory, item: Ints, time: Float64s, begin: float, rng: np.random.Generator
) -> Scores:
    """The weighted means over items, with an interval of 90 % for the freshness."""
    each = item_scores(history, item, time, begin)
    weight = history.weight if history.weight.sum() > 0 else np.ones(history.items)
    means = {name: float(weight @ value / weight.sum()) for name, value in each.items()}
    low, high = _interval(each["freshness"], weight, rng)
    return Scores(**means, low=low, high=high, visits=int((time > begin).sum()))


def _interval(value: Float64s, weight: Float64s, rng: np.random.Generator) -> tuple[float, float]:
    draws = np.empty(RESAMPLES)
    for draw in range(RESAMPLES):
        times = rng.poisson(1.0, value.size) * weight
        draws[draw] = times @ value / max(times.sum(), np.finfo(float).tiny)
    low, high = np.quantile(draws, [0.05, 0.95])
    return float(low), float(high)


def _overlap(begin: Float64s, end: Float64s, after: float) -> Float64s:
    """How much of each span lies after ``after``."""
    return np.maximum(end - np.maximum(begin, after), 0.0)


def _grown(begin: Float64s, end: Float64s, after: float) -> Float64s:
    """∫(t − begin)dt over the part of each span after ``after``."""
    whole, before = np.maximum(end - begin, 0.0), np.maximum(np.minimum(after, end) - begin, 0.0)
    return np.asarray(0.5 * (whole * whole - before * before))
