"""Scores what the polls of a policy achieved: when copies were stale, and averages over time and items.

    freshness   share of the time in which a copy equals its original
    age         time since the first change that a copy lacks; 0 while it is fresh
    missed      number of changes that a copy lacks
    lag         Σ (t − tᵢ) at time t over the changes that a copy lacks, made at tᵢ (Yang's content freshness)
    harmonic    1 + 1/2 + … + 1/n if a copy lacks n changes (Kolobov et al. 2019)
    error       |content − content of the copy|, for histories with numeric contents; NaN for others

The scores are exact. A copy is stale from the first change after a poll until the next poll, called a visit
in this file. If these spans begin at times b and end at times f, the stale time up to t is
Σ max(t−b, 0) − Σ max(t−f, 0), which prefix sums give for any t. Confidence intervals come from resampling
the items (Poisson bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.rates.segments import rank_within, run_starts
from afresh.replay.change_history import ChangeHistory
from afresh.values.arrays import Bools, Float64s, Ints


@dataclass(frozen=True, slots=True)
class StaleSpans:
    """The spans of time in which copies are stale: that of ``item[j]`` from ``begin[j]`` to ``end[j]``."""

    item: Ints
    begin: Float64s
    end: Float64s


def seen_at(
    change_item: Ints, change_time: Float64s, visit_item: Ints, visit_time: Float64s, end: float
) -> Float64s:
    """Return when each change is found: at its item's first poll at or after it, or ``end`` if none follows.

    >>> seen_at(np.array([0, 0]), np.array([2.0, 5.0]), np.array([0]), np.array([4.0]), 10.0).tolist()
    [4.0, 10.0]
    """
    owner = np.concatenate([change_item, visit_item])
    moment = np.concatenate([change_time, visit_time])
    is_visit = np.repeat([False, True], [change_item.size, visit_item.size])
    order = np.lexsort((is_visit, moment, owner))
    # ``following`` is the place of the next visit in the sorted array; it counts only for the same item.
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
    """Return the spans of time in which each copy is stale.
    All copies are fresh at first. A stale copy that is not polled again stays stale until ``end``. A poll at
    exactly the time of a change finds it.

    >>> spans = stale_spans(np.array([0, 0]), np.array([2.0, 3.0]), np.array([0]), np.array([5.0]), 9.0)
    >>> spans.begin.tolist(), spans.end.tolist()
    ([2.0], [5.0])
    """
    order = np.lexsort((change_time, change_item))
    item, begin = change_item[order], change_time[order]
    seen = seen_at(item, begin, visit_item, visit_time, end)
    first = change_rank(item, seen) == 1  # the first of the changes that one visit finds
    return StaleSpans(item[first], begin[first], seen[first])


def change_rank(change_item: Ints, seen: Float64s) -> Ints:
    """Return the position of each change, counted from 1, among those that the same poll of its item finds.
    ``seen`` is the time at which each change is found. Changes must be sorted by item and time.

    >>> change_rank(np.array([0, 0, 0, 1]), np.array([4.0, 4.0, 9.0, 9.0])).tolist()
    [1, 2, 1, 1]
    """
    return rank_within(run_starts(change_item) | run_starts(seen)) + 1


def freshness_course(spans: StaleSpans, edges: Float64s, weights: Float64s) -> Float64s:
    """Return the weighted mean freshness of the copies between each two successive times of ``edges``.

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
    """Return Σ weight·max(t − moment, 0) at each time t of ``at``.
    Times are counted from the first t, because the sums of Unix times would lose digits."""
    order = np.argsort(moments, kind="stable")
    since = moments[order] - at[0]
    weight_before = np.concatenate([[0.0], np.cumsum(weight[order])])
    moment_before = np.concatenate([[0.0], np.cumsum(weight[order] * since)])
    before = np.searchsorted(since, at - at[0], side="right")
    return np.asarray((at - at[0]) * weight_before[before] - moment_before[before])


RESAMPLES = 400


@dataclass(frozen=True, slots=True)
class Scores:
    """Means of all measures over the items and a period of time.
    ``low`` and ``high`` are the 90 % confidence interval of the freshness, ``visits`` the number of polls."""

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
    """Return each measure of each item (its mean over the time from ``begin`` to the end of the history).
    The polls are of ``item`` at ``time``, with one entry for each poll.

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
    """Return each measure except ``error`` of each item from ``begin`` to ``until`` (None: to the end).
    ``seen`` is the time at which each change is found.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 3.0], 0.0, 10.0)
    >>> first_half = scores_when_seen(history, np.array([4.0, 4.0]), 0.0, 5.0)
    >>> {name: float(value[0]) for name, value in first_half.items()}
    {'freshness': 0.6, 'age': 0.4, 'missed': 0.6, 'lag': 0.5, 'harmonic': 0.5}
    """
    end = history.end if until is None else until
    owner, stops = history.change_item, np.minimum(seen, end)
    # For the span from each change until it is found: the length of its part in the period, and the integral
    # of (t − time of the change) over this part.
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
    """Return the weighted means over the items from ``begin`` on, for polls of ``item`` at ``time``."""
    each = item_scores(history, item, time, begin)
    weight = history.item_weight
    means = {name: float(weight @ value / weight.sum()) for name, value in each.items()}
    low, high = _bootstrap_interval(each["freshness"], weight, rng)
    return Scores(**means, low=low, high=high, visits=int((time > begin).sum()))


def value_error(history: ChangeHistory, item: Ints, time: Float64s, begin: float) -> Float64s:
    """Return the mean of |content − content of the copy| of each item over time, from ``begin`` to the end.
    It is NaN if the history has no contents (``value``). If an item's content at the start is not known, the
    content after its first change is used instead, so that this change causes no error.

    >>> history = ChangeHistory.of(1, [0, 0], [2.0, 6.0], 0.0, 10.0, values=[5.0, 4.0], initial=[1.0])
    >>> value_error(history, np.array([0]), np.array([4.0]), 0.0).tolist()      # 4 for 2, then 1 for 4
    [1.2]
    """
    if history.value is None:
        return np.full(history.items, np.nan)
    owner, moment, value, is_visit = _value_events(history, history.value, item, time)
    place = np.arange(owner.size)
    opens = run_starts(owner)
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
    """Return a tuple (item, time, value, is_visit) of arrays of all starts, changes and visits.
    They are sorted by item and time. The value is the content from then on; that of a visit is not used."""
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
