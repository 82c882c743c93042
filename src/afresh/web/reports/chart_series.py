"""Computes the series that the charts of the Now page draw."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from afresh.engine.reporting.pulse import FIELDS, Course
from afresh.engine.scheduler.audits import wilson_interval
from afresh.values.stored import ObservationColumns
from afresh.web.reports.dashboard_figures import LONGEST_GAP_S
from afresh.web.schemas import SeriesOut
from afresh.web.snapshot_cache import StatusSnapshot

_MOST_BINS, _FEWEST_AUDITS = 24, 40  # of 40 audits, the interval is at most ± 15 points wide
_FEWEST_SHOWN = 10


def compute_series(snapshot: StatusSnapshot) -> SeriesOut:
    course = snapshot.course
    limit_s = snapshot.status.limits.seconds
    counts_seconds = math.isfinite(limit_s)
    used: defaultdict[float, float] = defaultdict(float)
    for row in snapshot.ledger:
        used[row.start_s] += row.spent.seconds if counts_seconds else row.spent.requests
    return SeriesOut.model_validate(
        {
            "time_s": snapshot.time_s,
            "course": dict(zip(FIELDS, course.T.tolist(), strict=True)) if course.size else {},
            "rates": rates_per_minute(course),
            "audits": bin_audits(snapshot.audits),
            "minutes": {"time_s": list(used), "used": list(used.values())},
            "budget_unit": "seconds" if counts_seconds else "requests",
            "budget_per_minute": 60.0 * (limit_s if counts_seconds else snapshot.status.budget_per_s),
            "target": snapshot.status.target,
        }
    )


def rates_per_minute(course: Course) -> dict[str, list[float]]:
    """Return the polls and changes per minute between each two points of ``course``. They are NaN if an
    engine was started between the points, or if the points are too far apart."""
    if course.shape[0] < 2:
        return {"time_s": [], "polls": [], "changes": []}
    step_s = np.diff(course[:, 0])
    polls, changes = (np.diff(course[:, FIELDS.index(name)]) for name in ("polls", "changes"))
    is_broken = (polls < 0) | (step_s <= 0) | (step_s > LONGEST_GAP_S)
    scale = np.where(is_broken, np.nan, 60.0 / np.where(step_s > 0, step_s, 1.0))
    return {
        "time_s": course[1:, 0].tolist(),
        "polls": (scale * polls).tolist(),
        "changes": (scale * changes).tolist(),
    }


def bin_audits(audits: ObservationColumns) -> dict[str, list[float]]:
    """Return the share of fresh items in at most 24 bins of equally many audits, with the ends of Wilson's
    confidence interval. Few audits are pooled: a bin has at least 40, and a single bin at least 10."""
    rows = np.flatnonzero(audits.elapsed_s > 0)  # A first poll says nothing about freshness.
    series: dict[str, list[float]] = {"time_s": [], "value": [], "low": [], "high": [], "n": []}
    bins = min(_MOST_BINS, max(rows.size // _FEWEST_AUDITS, rows.size >= _FEWEST_SHOWN))
    for part in np.array_split(rows, bins) if bins else []:
        share = wilson_interval(int(np.count_nonzero(~audits.changed[part])), int(part.size))
        values = (float(np.mean(audits.time_s[part])), share.value, share.low, share.high, float(share.n))
        for column, value in zip(series.values(), values, strict=True):
            column.append(value)
    return series
