"""One overview of all shards, for the dashboard: what the shards show, added up.

The courses of the shards have points at different times. They are read off at the times of the shard with the
most points, between two points along a straight line. Counts are added; freshness is a mean, weighted by the
items of each shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from afresh.cluster.merged_status import merge_statuses
from afresh.engine.ratelimit.request_slots import Limits
from afresh.engine.reporting.overview import FAILING_SHOWN, Overview
from afresh.engine.reporting.pulse import FIELDS, Course
from afresh.engine.scheduler.poll_costs import PollTallies
from afresh.values.stored import ObservationColumns

_MEANS = [FIELDS.index(name) for name in ("freshness", "low", "high", "age_s")]
_SUMS = [FIELDS.index(name) for name in ("polls", "changes", "failures", "requests")]


def merge_overviews(found: Sequence[Overview], limits: Limits) -> Overview:
    """Return the overview of all shards together; ``limits`` is the budget of the project."""
    status = replace(merge_statuses([each.status for each in found], limits), budget_per_s=limits.requests)
    pulses = [each.pulse for each in found if each.pulse is not None]
    pulse = None if status.run is None else replace(status.run, time_s=max(each.time_s for each in pulses))
    failing = sorted((item for each in found for item in each.failing), key=lambda item: -item.failures)
    backoffs = sorted(
        (one for each in found for one in each.backoffs), key=lambda one: one[1].until_s, reverse=True
    )
    tallies = PollTallies()
    for each in found:
        tallies.add(each.tallies)
    return Overview(
        time_s=max(each.time_s for each in found),
        status=status,
        pulse=pulse,
        course=merge_courses([(each.course, each.status.items) for each in found]),
        audits=_join([each.audits for each in found]),
        ledger=tuple(sorted((row for each in found for row in each.ledger), key=lambda row: row.start_s)),
        failing=tuple(failing[:FAILING_SHOWN]),
        backoffs=tuple(backoffs),
        longest_due_s=min(each.longest_due_s for each in found),
        tallies=tallies,
        run_command="afresh cluster run",
    )


def merge_courses(found: Sequence[tuple[Course, int]]) -> Course:
    """Return the course of all shards together, from tuples (course, items) of each.

    >>> one, two = np.zeros((2, len(FIELDS))), np.zeros((2, len(FIELDS)))
    >>> one[:, [0, 1, 5]] = [[10.0, 0.9, 100.0], [20.0, 0.9, 200.0]]
    >>> two[:, [0, 1, 5]] = [[15.0, 0.6, 10.0], [25.0, 0.6, 30.0]]
    >>> merge_courses([(one, 20), (two, 10)])[:, [0, 1, 5]].round(3).tolist()
    [[10.0, 0.9, 100.0], [20.0, 0.8, 220.0]]
    """
    known = [(course, items) for course, items in found if course.size]
    if len(known) < 2:
        return known[0][0] if known else found[0][0]
    time_s = max((course for course, _ in known), key=len)[:, 0]
    merged = np.zeros((time_s.size, len(FIELDS)))
    merged[:, 0] = time_s
    weight = np.zeros(time_s.size)
    for course, items in known:
        has_begun = time_s >= course[0, 0]
        own = np.where(has_begun, max(items, 1), 0.0)
        weight += own
        for column in _MEANS:
            merged[:, column] += own * np.interp(time_s, course[:, 0], course[:, column])
        for column in _SUMS:
            merged[:, column] += has_begun * np.interp(time_s, course[:, 0], course[:, column])
    merged[:, _MEANS] /= np.maximum(weight, 1.0)[:, None]
    return merged


def _join(found: Sequence[ObservationColumns]) -> ObservationColumns:
    """Return all these observations, sorted by time."""
    joined = ObservationColumns(
        *(np.concatenate([getattr(each, name) for each in found]) for name in ObservationColumns.__slots__)
    )
    return joined.take(np.argsort(joined.time_s, kind="stable"))
