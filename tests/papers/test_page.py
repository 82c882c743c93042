"""The HTML report: complete, well formed, and asking nobody for anything."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.slow_cases import with_slow_cases

from afresh.papers.page import html_page, inline_svg
from afresh.papers.report import Check, PaperFigure, Report, Section
from afresh.plots.panels import Panel, Series

_VOID = {"meta", "br", "hr", "img", "input", "link", "source"}
_LOADS = re.compile(
    r"""\b(?:src|srcset|href|data|action|poster)\s*=\s*(?:["'](?!\#)|[^\s"'\#])   # an address, not an anchor
        | url\((?!\#) | @import | <(?:script|link|iframe|object|embed|img)\b""",
    re.IGNORECASE | re.VERBOSE,
)


class _Reader(HTMLParser):
    """Refuses tags that do not close in order; collects ids, targets, text and shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.text: list[str] = []
        self.tags: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in _VOID:
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self._attributes(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def _attributes(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "xlink:href"}:
                self.targets.append((value or "").removeprefix("#"))


# A picture takes a tenth of a second: the first of each paper in every run, all of them in the slow suite.
@pytest.fixture(
    scope="module", params=with_slow_cases([1, None], kept=1), ids=["first figures", "all figures"]
)
def drawn(request: pytest.FixtureRequest, reports: dict[str, Report]) -> list[Report]:
    """The report of every paper, with as many figures as shall be drawn."""
    return [replace(report, figures=report.figures[: request.param]) for report in reports.values()]


@pytest.fixture(scope="module")
def page(drawn: list[Report]) -> str:
    """The page of these reports."""
    return html_page(drawn, inline_svg)


@pytest.fixture(scope="module")
def read(page: str) -> _Reader:
    """The page, parsed."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


def test_it_is_well_formed(read: _Reader) -> None:
    assert read.open == []
    assert read.tags["h1"] == read.tags["main"] == read.tags["nav"] == 1


@pytest.mark.parametrize(
    "loading",
    [
        '<img src="http://a">',
        "<a href='/b'>",
        "<a href=b>",
        "url(http://c)",
        "url('d')",
        "<script>",
        "@import 'e'",
    ],
)
def test_what_loads_is_noticed(loading: str) -> None:
    assert _LOADS.search(loading)


def test_it_loads_nothing(page: str) -> None:
    assert _LOADS.findall(page) == []
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_every_anchor_is_there_and_only_once(read: _Reader) -> None:
    assert [name for name, count in Counter(read.ids).items() if count > 1] == []
    assert set(read.targets) <= set(read.ids)


def test_every_figure_check_and_reason_is_there(read: _Reader, drawn: list[Report]) -> None:
    text = " ".join(read.text)
    figures = [figure for report in drawn for figure in report.figures]
    assert read.tags["svg"] == read.tags["figure"] == len(figures)
    for figure in figures:
        assert f"{figure.name}: {figure.title}" in text
        assert figure.paper_shows in text
    checks = [check for report in drawn for check in report.checks()]
    assert all(check.name in text and check.reason in text for check in checks)
    assert read.tags["tr"] >= len(checks)


def test_the_same_twice(cho: Report) -> None:
    first, second = (
        html_page([Report(cho.key, cho.citation, (), cho.figures[:1])], inline_svg) for _ in range(2)
    )
    assert first == second


def test_what_a_report_says_is_escaped() -> None:
    table = Section("<b>", (Check("a < b & c", "< 1", 0.5),), "<i>")
    page = html_page([Report("x", "R & D <1999>", (table,), ())], inline_svg)
    for wrong in ("<b>", "<i>", "R & D", "a < b"):
        assert wrong not in page
    assert "a &lt; b &amp; c" in page


def test_every_kind_of_series_is_drawn() -> None:
    x, y = np.arange(3.0), np.array([1.0, 0.5, 0.25])
    marks = (Series(mark, x, y, mark) for mark in ("line", "dashed", "dots", "area", "rules"))
    lines = Panel("all", "x", "y", tuple(marks), log_x=False)
    bars = Panel(
        "bars", "x", "y", (Series("a", x, y, "bars"), Series("b", x, y, "bars")), x_names=("p", "q", "r")
    )
    svg = inline_svg(PaperFigure("Figure 1", "t", "p", "o", (lines, bars)), "f")
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
