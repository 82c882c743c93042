"""The course of freshness over time, exact, from the changes of a history and the visits of a policy.

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


def stale_spans(
    change_item: Ints, change_time: Float64s, visit_item: Ints, visit_time: Float64s, end: float
) -> StaleSpans:
    """When which copy is stale; all copies are fresh at first, and what is never visited again stays stale.

    A visit at the moment of a change sees it.

    >>> spans = stale_spans(np.array([0, 0]), np.array([2.0, 3.0]), np.array([0]), np.array([5.0]), 9.0)
    >>> spans.begin.tolist(), spans.end.tolist()
    ([2.0], [5.0])
    """
    item = np.concatenate([change_item, visit_item])
    time = np.concatenate([change_time, visit_time])
    is_visit = np.repeat([False, True], [change_item.size, visit_item.size])
    order = np.lexsort((is_visit, time, item))
    item, time, is_visit = item[order], time[order], is_visit[order]
    first = np.ones(item.size, dtype=bool)
    first[1:] = item[1:] != item[:-1]
    # A span begins at a change that follows a visit or nothing, and ends at the next event that is a visit.
    begins = np.flatnonzero(~is_visit & (first | np.concatenate([[True], is_visit[:-1]])))
    visits = np.flatnonzero(is_visit)
    rank = np.searchsorted(visits, begins)
    following = np.append(visits, item.size)[rank]
    seen = (rank < visits.size) & (np.append(item, -1)[following] == item[begins])
    return StaleSpans(item[begins], time[begins], np.where(seen, np.append(time, end)[following], end))


def freshness_course(spans: StaleSpans, edges: Float64s, weights: Float64s) -> Float64s:
    """Weighted mean freshness of the copies in each stretch between two ``edges``.

    >>> spans = StaleSpans(np.array([0]), np.array([2.0]), np.array([5.0]))
    >>> freshness_course(spans, np.array([0.0, 4.0, 8.0]), np.ones(2)).tolist()    # 2 of 8, 1 of 8 stale
    [0.75, 0.875]
    """
    weight = weights[spans.item]
    stale = _passed(spans.begin, weight, edges) - _passed(spans.end, weight, edges)
    whole = float(weights.sum())
    if whole == 0:
        return np.ones(edges.size - 1)
    return np.asarray(np.clip(1 - np.diff(stale) / (np.diff(edges) * whole), 0.0, 1.0))


def _passed(moments: Float64s, weight: Float64s, at: Float64s) -> Float64s:
    """Σ weight·(t − moment)⁺ at each t, counted from the first t so that large Unix times cost no digits."""
    order = np.argsort(moments, kind="stable")
    since = moments[order] - at[0]
    heavy = np.concatenate([[0.0], np.cumsum(weight[order])])
    lever = np.concatenate([[0.0], np.cumsum(weight[order] * since)])
    before = np.searchsorted(since, at - at[0], side="right")
    return np.asarray((at - at[0]) * heavy[before] - lever[before])
