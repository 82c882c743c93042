"""What the visits of a policy achieved, exactly: time averages, each a mean over items by weight.

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
from afresh.replay.stale_spans import change_rank, seen_at
from afresh.values.arrays import Bools, Float64s, Ints

RESAMPLES = 400


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over the items and a period of time; ``low`` to ``high`` hold the freshness with 90 %."""

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
    """Each measure of each item over (``begin``, end], from visits of ``item`` at ``time``.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 3.0], 0.0, 10.0)
    >>> scores = item_scores(history, np.array([0]), np.array([4.0]), 0.0)
    >>> {name: float(value[0]) for name, value in scores.items()}
    {'freshness': 0.8, 'age': 0.2, 'missed': 0.3, 'lag': 0.25, 'harmonic': 0.25, 'error': nan}
    """
    period = history.end - begin
    owner = history.change_item
    seen = seen_at(owner, history.time, item, time, history.end)
    lacking, lag = _overlap(history.time, seen, begin), _integral(history.time, seen, begin)
    rank = change_rank(owner, seen)
    first = rank == 1  # a copy is stale, and ages, from the first change that it lacks

    def per_item(amount: Float64s) -> Float64s:
        return np.asarray(np.bincount(owner, amount, minlength=history.items) / period)

    return {
        "freshness": 1.0 - per_item(lacking * first),
        "age": per_item(lag * first),
        "missed": per_item(lacking),
        "lag": per_item(lag),
        "harmonic": per_item(lacking / rank),
        "error": value_error(history, item, time, begin),
    }


def score_visits(
    history: ChangeHistory, item: Ints, time: Float64s, begin: float, rng: np.random.Generator
) -> Scores:
    """The weighted means over items, with a 90 % interval of the freshness."""
    each = item_scores(history, item, time, begin)
    weight = history.weight if history.weight.sum() > 0 else np.ones(history.items)
    means = {name: float(weight @ value / weight.sum()) for name, value in each.items()}
    low, high = _bootstrap_interval(each["freshness"], weight, rng)
    return Scores(**means, low=low, high=high, visits=int((time > begin).sum()))


def value_error(history: ChangeHistory, item: Ints, time: Float64s, begin: float) -> Float64s:
    """The time average of |value − value of the copy| of each item over (``begin``, end]; NaN without values.

    An item whose value at the start is not known counts as right until it first changes.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 6.0], 0.0, 10.0, values=[5.0, 4.0], initial=[1.0])
    >>> value_error(history, np.array([0]), np.array([4.0]), 0.0).tolist()      # 4 for 2, then 1 for 4
    [1.2]
    """
    if history.value is None:
        return np.full(history.items, np.nan)
    owner, moment, value, is_visit = _value_events(history, history.value, item, time)
    place = np.arange(owner.size)
    opens = np.ones(owner.size, dtype=bool)
    opens[1:] = owner[1:] != owner[:-1]
    true = value[np.maximum.accumulate(np.where(is_visit, 0, place))]
    held = true[np.maximum.accumulate(np.where(is_visit | opens, place, 0))]
    until = np.append(moment[1:], history.end)
    until[np.append(opens[1:], True)] = history.end
    lasting = np.maximum(until - np.maximum(moment, begin), 0.0)
    total = np.bincount(owner, np.abs(true - held) * lasting, minlength=history.items)
    return np.asarray(total / (history.end - begin))


def _value_events(
    history: ChangeHistory, values: Float64s, item: Ints, time: Float64s
) -> tuple[Ints, Float64s, Float64s, Bools]:
    """Starts, changes and visits by item and time: item, time, the value from then on, whether a visit."""
    initial = np.full(history.items, np.nan) if history.initial is None else history.initial
    changes = np.diff(history.first)
    unknown = np.flatnonzero(np.isnan(initial) & (changes > 0))
    initial = np.nan_to_num(initial)
    initial[unknown] = values[history.first[unknown]]
    owner = np.concatenate([np.arange(history.items), history.change_item, item])
    moment = np.concatenate([np.full(history.items, history.start), history.time, time])
    value = np.concatenate([initial, values, np.zeros(item.size)])
    kind = np.repeat([0, 1, 2], [history.items, history.time.size, item.size])
    order = np.lexsort((kind, moment, owner))
    return owner[order], moment[order], value[order], kind[order] == 2


def _bootstrap_interval(value: Float64s, weight: Float64s, rng: np.random.Generator) -> tuple[float, float]:
    draws = np.empty(RESAMPLES)
    for draw in range(RESAMPLES):
        times = rng.poisson(1.0, value.size) * weight
        draws[draw] = times @ value / max(times.sum(), np.finfo(float).tiny)
    low, high = np.quantile(draws, [0.05, 0.95])
    return float(low), float(high)


def _overlap(begin: Float64s, end: Float64s, after: float) -> Float64s:
    """The length of each span after ``after``."""
    return np.maximum(end - np.maximum(begin, after), 0.0)


def _integral(begin: Float64s, end: Float64s, after: float) -> Float64s:
    """∫(t − begin)dt over the part of each span after ``after``."""
    whole, before = np.maximum(end - begin, 0.0), np.maximum(np.minimum(after, end) - begin, 0.0)
    return np.asarray(0.5 * (whole * whole - before * before))
