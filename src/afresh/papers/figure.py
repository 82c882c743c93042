"""A figure of a paper as values: panels of named series, and what they show. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.plots.panels import Panel


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure recomputed: what the paper shows, what ours shows, and the panels."""

    name: str
    title: str
    paper_shows: str
    ours_shows: str
    panels: tuple[Panel, ...]
