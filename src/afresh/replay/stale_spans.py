"""When copies are stale, exactly, from the changes of a history and the visits of a policy.

A copy is stale from the first change after a visit until the next visit. With b and f the starts and ends of
these spans, the stale time up to t is Σ(t−b)⁺ − Σ(t−f)⁺: prefix sums give it at any t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Float64s, Ints


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
