"""Zhang, Tang, Yang & Li 2007 as recomputed."""

from __future__ import annotations

import math

import pytest

from afresh.papers.report import CheckVerdict, Report, Section
from afresh.papers.zhang import report


@pytest.fixture(scope="module")
def zhang() -> Report:
    return report()


def section(zhang: Report, title: str) -> Section:
    (found,) = [part for part in zhang.sections if part.title.startswith(title)]
    return found


def test_table_1_agrees_to_four_decimals(zhang: Report) -> None:
    table = section(zhang, "Table 1")
    assert [round(check.recomputed, 4) for check in table.checks] == [
        *(1.0115, 1.0067, 0.9515, 0.8625, 0.8041, 0.7656),
        *(1.0507, 1.0631, 1.0212, 0.9349, 0.8750, 0.8347),
    ]
    assert {check.verdict for check in table.checks} == {CheckVerdict.AGREES}


def test_table_2_bias_and_spread_at_the_ends_of_each_range(zhang: Report) -> None:
    table = section(zhang, "Table 2")
    assert len(table.checks) == 24
    biases = [check.recomputed for check in table.checks if "bias" in check.name]
    spreads = [check.recomputed for check in table.checks if "σ/r" in check.name]
    assert max(biases) == pytest.approx(4.79, abs=0.005)
    assert max(spreads) == pytest.approx(59.70, abs=0.005)
    assert {check.verdict for check in table.checks} == {CheckVerdict.AGREES}


def test_polls_needed_differ_where_the_paper_rounds_in_its_favour(zhang: Report) -> None:
    checks = section(zhang, "§3: polls").checks
    assert [check.recomputed for check in checks[:3]] == [5, 6, 35]
    assert [check.verdict for check in checks] == [
        CheckVerdict.DIFFERS,
        CheckVerdict.DIFFERS,
        CheckVerdict.AGREES,
        CheckVerdict.AGREES,
    ]


def test_figure_4_ranks_the_estimators(zhang: Report) -> None:
    part = section(zhang, "Figure 4")
    naive_to_cho, naive_to_zhang, cho_to_zhang, alike_to_saa = (check.recomputed for check in part.checks)
    assert naive_to_cho > 1.1
    assert naive_to_zhang > 1.1
    assert 0.95 < cho_to_zhang < 1
    assert part.checks[3].name == "SAA over a = 0.4, at as many polls"
    assert 1 < alike_to_saa < 1.05
    assert "that makes it better by a factor of 1.26" in part.note
    assert "SAA, which starts with a poll every five days, makes 10." in part.note


def test_a_view_has_the_sum_of_the_rates(zhang: Report) -> None:
    part = section(zhang, "§4")
    rate, counted, poisson, stale = (check.recomputed for check in part.checks)
    assert rate == pytest.approx(0.7)
    assert counted == pytest.approx(0.7, abs=0.01)
    assert poisson > 93
    assert stale == pytest.approx((1 - math.exp(-0.7)) / (1 - math.exp(-0.2)))


def test_the_rule_of_step_3_marks_steady_pages_and_that_on_polls_does_not(zhang: Report) -> None:
    part = section(zhang, "§3, step 3")
    narrow, wide, jumps, false_alarms, found = (check.recomputed for check in part.checks)
    assert min(narrow, wide) > 90
    assert jumps > 95
    assert false_alarms < 1
    assert found > 95
    assert [check.verdict for check in part.checks[:2]] == [CheckVerdict.DIFFERS] * 2


def test_figures_are_all_there(zhang: Report) -> None:
    assert [figure.name for figure in zhang.figures] == ["Figure 2", "Figure 4", "§3, SAA"]
    bias_panel = zhang.figures[0].panels[0]
    assert [series.label for series in bias_panel.series[:4]] == [
        "3 polls",
        "7 polls",
        "15 polls",
        "35 polls",
    ]
    saa = zhang.figures[2].panels[0].series[1]
    slow = saa.y[saa.x < 0.5]
    assert 1.04 < slow.min() < slow.max() < 1.16
    fast = saa.y[saa.x > 4]
    assert 0.72 < fast.min() < fast.max() < 0.78
