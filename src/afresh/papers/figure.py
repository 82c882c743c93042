"""A figure of a paper as values: panels of named series, and what they show. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from afresh.values.arrays import Floats

Mark = Literal["line", "dashed", "dots", "bars", "area", "rules"]


@dataclass(frozen=True, slots=True)
class Series:
    """One curve, set of dots or bars, shaded area, or set of upright rules (whose y is not looked at)."""

    label: str
    x: Floats
    y: Floats
    mark: Mark = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes and its series; ``x_names`` name the places 0, 1, … of bars."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    x_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure recomputed: what the paper shows, what ours shows, and the panels."""

    name: str
    title: str
    paper_shows: str
    ours_shows: str
    panels: tuple[Panel, ...]
