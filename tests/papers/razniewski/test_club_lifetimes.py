"""Razniewski 2016, §8.1, Figure 7 and Table 3 on lifetimes made from its stated rates."""

from __future__ import annotations

import numpy as np
import pytest

from afresh.papers.razniewski.club_lifetimes import figure_7, section_8_1, table_3_again
from afresh.papers.report import CheckVerdict


def test_the_stated_rates_come_back_from_lifetimes() -> None:
    part = section_8_1()
    assert [check.recomputed for check in part.checks] == pytest.approx([0.26, 0.36], abs=0.001)
    assert {check.verdict for check in part.checks} == {CheckVerdict.AGREES}
    assert "AIC selects exponential." in part.note


def test_table_3_comes_back_from_cohorts_with_a_finite_rate_for_all_of_ten() -> None:
    students, *others = table_3_again().checks
    assert [check.recomputed for check in others] == pytest.approx(
        [62.5, 100 * 3 / 13, 100 * 2 / 19], abs=0.02
    )
    assert students.recomputed == pytest.approx(100 * 20 / 21, abs=0.02)
    assert students.verdict is CheckVerdict.DIFFERS


def test_figure_7_fits_lie_close_to_what_was_observed() -> None:
    (panel,) = figure_7().panels
    for observed, fitted in zip(panel.series[::2], panel.series[1::2], strict=True):
        assert np.max(np.abs(observed.y - fitted.y)) < 0.06
