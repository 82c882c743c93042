"""The picture of a replay: freshness over time at the first budget, over budgets where there are several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afresh.cli.replay_report import Outcome
from afresh.plots.replay import Course, OverBudgets, replay_figure
from afresh.plots.style import picture_format, render
from afresh.replay.course import freshness_course, stale_spans
from afresh.replay.history import History
from afresh.tables.aside import write_bytes
from afresh.values.units import UNIT_SECONDS

_STRETCHES = 90  # points of a line: enough to see seasons, few enough to see the line


def draw_replay(
    path: str, outcomes: Sequence[Outcome], history: History, warm_up_end: float, unit: str
) -> None:
    """Draw ``outcomes``, which are sorted by budget, into a .png or .svg file."""
    edges = np.linspace(history.start, history.end, _STRETCHES + 1)
    courses = []
    for outcome in outcomes:
        if outcome.budget_per_s == outcomes[0].budget_per_s:
            spans = stale_spans(
                history.change_item, history.time, outcome.visit_item, outcome.visit_time, history.end
            )
            course = freshness_course(spans, edges, history.weight)
            courses.append(Course(outcome.policy, edges, course, outcome.after.freshness))
    figure = replay_figure(courses, warm_up_end, _over_budgets(outcomes, unit), unit=unit)
    write_bytes(path, render(figure, picture_format(path)))


def _over_budgets(outcomes: Sequence[Outcome], unit: str) -> list[OverBudgets]:
    """One line per policy; none where there is but one budget."""
    if len({outcome.budget_per_s for outcome in outcomes}) < 2:
        return []
    lines = []
    for policy in dict.fromkeys(outcome.policy for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.policy == policy]
        lines.append(
            OverBudgets(
                policy,
                np.array([outcome.budget_per_s * UNIT_SECONDS[unit] for outcome in own]),
                np.array([outcome.after.freshness for outcome in own]),
                np.array([outcome.after.low for outcome in own]),
                np.array([outcome.after.high for outcome in own]),
            )
        )
    return lines
