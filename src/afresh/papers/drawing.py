"""Figures drawn as SVG to stand inside a page, in the page's own colours."""

from __future__ import annotations

import re

from afresh.papers.figure import PaperFigure
from afresh.plots.line_plot import line_figure
from afresh.plots.style import CYCLE, GRID, INK, SOFT, render

# Colours that the page sets anew in the dark; the fallback is the colour drawn.
_VARIABLES = {INK: "ink", SOFT: "soft", GRID: "line", "#ffffff": "card"}
_VARIABLES |= {colour: f"series-{place}" for place, colour in enumerate(CYCLE)}
_COLOUR = re.compile(r"#[0-9a-f]{6}(?=[;\"])", re.IGNORECASE)
_NAME = re.compile(r"(\bid=\"|xlink:href=\"#|url\(#)")


def inline_svg(figure: PaperFigure, prefix: str) -> str:
    """The figure as an ``<svg>`` element whose ids all begin with ``prefix``, so that many share a page.

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
