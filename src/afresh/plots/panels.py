"""The contents of a line plot, as panels of named series; this module does not need matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from afresh.values.arrays import Floats

Mark: TypeAlias = Literal["line", "dashed", "dots", "bars", "area", "rules"]


@dataclass(frozen=True, slots=True)
class Series:
    """One curve, set of dots or bars, area shaded down to 0, or set of vertical rules (whose y is not used).
    NaN makes a gap in a curve. A series with the label "" is not in the legend."""

    label: str
    x: Floats
    y: Floats
    mark: Mark = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot with x and y axes and its series. ``x_names`` are the labels of bars at x = 0, 1, …"""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    x_names: tuple[str, ...] = ()
