"""Render reports as one HTML page (template ``page.html``), with figures as SVG in the page's colours.

The page has no script, loads no other file, and is readable on light and dark screens and on paper.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from afresh.papers.report import CheckVerdict, PaperFigure, Report
from afresh.plots.line_plot import line_figure
from afresh.plots.style import CYCLE, GRID, INK, SOFT, render

# Colours that the page redefines for dark screens; each falls back to the colour in which it was drawn.
_VARIABLES = {INK: "ink", SOFT: "soft", GRID: "line", "#ffffff": "card"}
_VARIABLES |= {colour: f"series-{place}" for place, colour in enumerate(CYCLE)}
_COLOUR = re.compile(r"#[0-9a-f]{6}(?=[;\"])", re.IGNORECASE)
_NAME = re.compile(r"(\bid=\"|xlink:href=\"#|url\(#)")


def html_page(reports: Sequence[Report], draw: Callable[[PaperFigure, str], str]) -> str:
    """Return the HTML page of the reports; ``draw(figure, prefix)`` returns a figure as an ``<svg>`` element.

    >>> page = html_page([Report("x", "X, On copies, 1999", (), ())], lambda figure, prefix: "<svg></svg>")
    >>> page.startswith("<!doctype html>"), "X, On copies, 1999" in page
    (True, True)
    """
    templates = Environment(
        loader=PackageLoader("afresh.papers", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = templates.get_template("page.html")
    return page.render(reports=reports, verdicts=list(CheckVerdict), anchor=_anchor, draw=draw) + "\n"


def _anchor(report: Report, title: str) -> str:
    return f"{report.key}-{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"


def inline_svg(figure: PaperFigure, prefix: str) -> str:
    """Return the figure as an ``<svg>`` element whose ids begin with ``prefix``, so that they are unique.

    >>> from afresh.plots.panels import Panel, Series
    >>> import numpy as np
    >>> line = Panel("", "x", "y", (Series("a", np.arange(3.0), np.arange(3.0)),))
    >>> svg = inline_svg(PaperFigure("Figure 1", "a line", "", "", (line,)), "f1")
    >>> svg[:4], svg[-6:], "var(--series-0, #0072B2)" in svg
    ('<svg', '</svg>', True)
    """
    text = render(line_figure(figure.panels), "svg").decode()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace("<svg ", f'<svg role="img" aria-label="{figure.name}: {figure.title}" ', 1)
    text = _NAME.sub(rf"\1{prefix}-", text)
    return _COLOUR.sub(_variable, text)


def _variable(match: re.Match[str]) -> str:
    colour = match.group()
    for drawn, name in _VARIABLES.items():
        if colour.lower() == drawn.lower():
            return f"var(--{name}, {drawn})"
    return colour
