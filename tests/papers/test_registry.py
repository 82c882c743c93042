"""What must hold for every paper, found in the registry: a new paper is tested by existing."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from afresh.papers.registry import PAPERS, reproduce
from afresh.papers.report import CheckVerdict, Report, matches
from afresh.values.errors import UsageError


def test_every_paper_is_reproduced(reports: dict[str, Report]) -> None:
    assert list(reports) == list(PAPERS)


@pytest.mark.parametrize("paper", PAPERS)
class TestEveryPaper:
    """Checks over one report."""

    def test_nothing_is_unexplained(self, reports: dict[str, Report], paper: str) -> None:
        assert [c for c in reports[paper].checks() if c.verdict is CheckVerdict.UNEXPLAINED] == []

    def test_every_check_has_a_verdict_and_a_reason_where_it_differs(
        self, reports: dict[str, Report], paper: str
    ) -> None:
        for check in reports[paper].checks():
            assert isinstance(check.verdict, CheckVerdict)
            assert bool(check.reason) == (check.verdict is not CheckVerdict.AGREES)

    def test_corrections_really_differ_from_what_is_printed(
        self, reports: dict[str, Report], paper: str
    ) -> None:
        for check in reports[paper].checks():
            if check.correction is not None:
                assert not matches(check.printed, check.recomputed), check.name

    def test_names_are_unique_within_a_section(self, reports: dict[str, Report], paper: str) -> None:
        titles = Counter(section.title for section in reports[paper].sections)
        assert max(titles.values()) == 1
        for section in reports[paper].sections:
            assert max(Counter(check.name for check in section.checks).values()) == 1

    def test_figures_hold_finite_curves(self, reports: dict[str, Report], paper: str) -> None:
        for figure in reports[paper].figures:
            for panel in figure.panels:
                for series in panel.series:
                    assert series.x.shape == series.y.shape != (0,), (figure.name, series.label)
                    assert all(map(math.isfinite, [*series.x, *series.y])), (figure.name, series.label)


def test_the_same_twice() -> None:
    first, second = (reproduce(["yang"])[0] for _ in range(2))
    assert first.sections == second.sections
    pairs = zip(first.figures[0].panels, second.figures[0].panels, strict=True)
    assert all((a.series[0].y == b.series[0].y).all() for a, b in pairs)


def test_a_paper_named_twice_comes_once() -> None:
    assert [report.key for report in reproduce(["zhang", "yang", "zhang"])] == ["zhang", "yang"]


def test_an_unknown_paper_is_refused_with_the_near_name() -> None:
    with pytest.raises(UsageError, match="unknown paper 'raznewski': did you mean 'razniewski'"):
        reproduce(["raznewski"])
