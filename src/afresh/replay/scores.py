"""What the visits of a policy achieved, exactly: when copies are stale, and time averages by item weight.

    freshness   share of the time in which a copy equals its original
    age         time since the first change that a copy lacks; 0 while fresh
    missed      changes that a copy lacks
    lag         Σ (t − tᵢ) over the changes that a copy lacks (Yang's content freshness)
    harmonic    1 + 1/2 + … + 1/n of the n changes that a copy lacks (Kolobov et al. 2019)
    error       |value − value of the copy|, for histories that know values; NaN for others

A copy is stale from the first change after a visit until the next visit. With b and f the starts and ends of
these spans, the stale time up to t is Σ(t−b)⁺ − Σ(t−f)⁺: prefix sums give it at any t. Intervals come from
resampling the items (Poisson bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.replay.change_history import ChangeHistory
from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(frozen=True, slots=True)
class StaleSpans:
    """Span ``j``: the copy of ``item[j]`` is stale from ``begin[j]`` to ``end[j]``."""

    item: Ints
    begin: Float64s
    end: Float64s


def seen_at(
    change_item: Ints, change_time: Float64s, visit_item: Ints, visit_time: Float64s, end: float
) -> Float64s:
    """When each change is seen: at the first visit at or after it; ``end`` where none comes.

    >>> seen_at(np.array([0, 0]), np.array([2.0, 5.0]), np.array([0]), np.array([4.0]), 10.0).tolist()
    [4.0, 10.0]
    """
    owner = np.concatenate([change_item, visit_item])
    moment = np.concatenate([change_time, visit_time])
    is_visit = np.repeat([False, True], [change_item.size, visit_item.size])
    order = np.lexsort((is_visit, moment, owner))
    # Going backwards, the last visit met is the next one after: it counts while the item stays the same.
    place = np.where(is_visit[order], np.arange(order.size), order.size)
    following = np.minimum.accumulate(place[::-1])[::-1]
    owners = np.append(owner[order], -1)
    same = owners[following] == owners[:-1]
    result = np.empty(order.size)
    result[order] = np.where(same, np.append(moment[order], end)[following], end)
    return result[: change_item.size]


def stale_spans(
    change_item: Ints, change_time: Float64s, visit_item: Ints, visit_time: Float64s, end: float
) -> StaleSpans:
    """When which copy is stale; all copies are fresh at first, and what is never visited again stays stale.

    A visit at the moment of a change sees it.

    >>> spans = stale_spans(np.array([0, 0]), np.array([2.0, 3.0]), np.array([0]), np.array([5.0]), 9.0)
    >>> spans.begin.tolist(), spans.end.tolist()
    ([2.0], [5.0])
    """
    order = np.lexsort((change_time, change_item))
    item, begin = change_item[order], change_time[order]
    seen = seen_at(item, begin, visit_item, visit_time, end)
    first = change_rank(item, seen) == 1  # of the changes that one visit sees
    return StaleSpans(item[first], begin[first], seen[first])


def change_rank(change_item: Ints, seen: Float64s) -> Ints:
    """The position of each change, from 1, among those of its item that the same visit sees.

    Changes must be sorted by item and time.

    >>> change_rank(np.array([0, 0, 0, 1]), np.array([4.0, 4.0, 9.0, 9.0])).tolist()
    [1, 2, 1, 1]
    """
    place = np.arange(change_item.size)
    first = np.ones(change_item.size, dtype=bool)
    first[1:] = (change_item[1:] != change_item[:-1]) | (seen[1:] != seen[:-1])
    return np.asarray(place - np.maximum.accumulate(np.where(first, place, 0)) + 1)


def freshness_course(spans: StaleSpans, edges: Float64s, weights: Float64s) -> Float64s:
    """Weighted mean freshness of the copies in each stretch of time between two ``edges``.

    >>> spans = StaleSpans(np.array([0]), np.array([2.0]), np.array([5.0]))
    >>> freshness_course(spans, np.array([0.0, 4.0, 8.0]), np.ones(2)).tolist()    # 2 of 8, 1 of 8 stale
    [0.75, 0.875]
    """
    weight = weights[spans.item]
    stale = _time_passed(spans.begin, weight, edges) - _time_passed(spans.end, weight, edges)
    total = float(weights.sum())
    if total == 0:
        return np.ones(edges.size - 1)
    return np.asarray(np.clip(1 - np.diff(stale) / (np.diff(edges) * total), 0.0, 1.0))


def _time_passed(moments: Float64s, weight: Float64s, at: Float64s) -> Float64s:
    """Σ weight·(t − moment)⁺ at each t; times count from the first t, so that Unix times lose no digits."""
    order = np.argsort(moments, kind="stable")
    since = moments[order] - at[0]
    weight_before = np.concatenate([[0.0], np.cumsum(weight[order])])
    moment_before = np.concatenate([[0.0], np.cumsum(weight[order] * since)])
    before = np.searchsorted(since, at - at[0], side="right")
    return np.asarray((at - at[0]) * weight_before[before] - moment_before[before])


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
    seen = seen_at(history.change_item, history.time, item, time, history.end)
    return {**scores_when_seen(history, seen, begin), "error": value_error(history, item, time, begin)}


def scores_when_seen(
    history: ChangeHistory, seen: Float64s, begin: float, until: float | None = None
) -> dict[str, Float64s]:
    """Each measure but ``error`` of each item over (``begin``, ``until``], from when each change is seen.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 3.0], 0.0, 10.0)
    >>> first_half = scores_when_seen(history, np.array([4.0, 4.0]), 0.0, 5.0)
    >>> {name: float(value[0]) for name, value in first_half.items()}
    {'freshness': 0.6, 'age': 0.4, 'missed': 0.6, 'lag': 0.5, 'harmonic': 0.5}
    """
    end = history.end if until is None else until
    owner, stops = history.change_item, np.minimum(seen, end)
    # The part in the period of the span from each change until it is seen, and ∫(t − change)dt over it.
    lacking = np.maximum(stops - np.maximum(history.time, begin), 0.0)
    until_seen = np.maximum(stops - history.time, 0.0)
    before = np.maximum(np.minimum(begin, stops) - history.time, 0.0)
    lag = 0.5 * (until_seen * until_seen - before * before)
    rank = change_rank(owner, seen)
    first = rank == 1  # a copy is stale, and ages, from the first change that it lacks

    def per_item(amount: Float64s) -> Float64s:
        return np.asarray(np.bincount(owner, amount, minlength=history.items) / (end - begin))

    return {
        "freshness": 1.0 - per_item(lacking * first),
        "age": per_item(lag * first),
        "missed": per_item(lacking),
        "lag": per_item(lag),
        "harmonic": per_item(lacking / rank),
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
