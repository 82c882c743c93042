"""The picture of a replay: freshness over time at the first budget, over budgets where there are several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afresh.plots.replay_plot import FreshnessByBudget, FreshnessOverTime, replay_figure
from afresh.plots.style import picture_format, render
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import ReplayResult
from afresh.replay.scores import freshness_course, stale_spans
from afresh.tables.atomic_output import write_bytes
from afresh.values.units import UNIT_SECONDS

_STRETCHES = 90  # points of a line: enough to see seasons, few enough to see the line


def draw_replay(
    path: str, results: Sequence[ReplayResult], history: ChangeHistory, warm_up_end: float, unit: str
) -> None:
    """Draw ``results``, which are sorted by budget, into a .png or .svg file."""
    edges = np.linspace(history.start, history.end, _STRETCHES + 1)
    courses = []
    for result in results:
        if result.budget == results[0].budget:
            spans = stale_spans(
                history.change_item, history.time, result.visits.item, result.visits.time, history.end
            )
            course = freshness_course(spans, edges, history.weight)
            courses.append(FreshnessOverTime(result.policy, edges, course, result.after.scores.freshness))
    figure = replay_figure(courses, warm_up_end, _over_budgets(results, unit), unit=unit)
    write_bytes(path, render(figure, picture_format(path)))


def _over_budgets(results: Sequence[ReplayResult], unit: str) -> list[FreshnessByBudget]:
    """One line per policy; none where there is but one budget."""
    if len({result.budget for result in results}) < 2:
        return []
    lines = []
    for policy in dict.fromkeys(result.policy for result in results):
        own = [result for result in results if result.policy == policy]
        lines.append(
            FreshnessByBudget(
                policy,
                np.array([result.budget * UNIT_SECONDS[unit] for result in own]),
                np.array([result.after.scores.freshness for result in own]),
                np.array([result.after.scores.low for result in own]),
                np.array([result.after.scores.high for result in own]),
            )
        )
    return lines
