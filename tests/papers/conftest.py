"""The reports, computed once for all tests here, and a way to read values out of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from afresh.papers.registry import reproduce
from afresh.papers.report import Report


@pytest.fixture(scope="session")
def reports() -> dict[str, Report]:
    """Every known paper, by key."""
    return {report.key: report for report in reproduce()}


@pytest.fixture
def cho(reports: dict[str, Report]) -> Report:
    """Cho & Garcia-Molina 2000."""
    return reports["cho"]


@pytest.fixture
def razniewski(reports: dict[str, Report]) -> Report:
    """Razniewski 2016."""
    return reports["razniewski"]


@pytest.fixture
def values(reports: dict[str, Report]) -> Callable[..., list[float]]:
    """Recomputed values: of the section whose title starts so, of the checks whose name starts so."""

    def read(paper: str, section: str, name: str = "") -> list[float]:
        (found,) = [part for part in reports[paper].sections if part.title.startswith(section)]
        return [check.recomputed for check in found.checks if check.name.startswith(name)]

    return read
