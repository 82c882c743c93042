"""Which scale fits: logarithmic where values span decades, and ticks that read as numbers."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from afresh.values.arrays import Floats

Side: TypeAlias = Literal["x", "y"]

_WIDE = 30.0  # a factor between the smallest and the largest, from which a log scale reads better
_MANY_DECADES = 7


def spans_decades(values: Floats) -> bool:
    """Whether the positive ``values`` differ so much that a logarithmic scale reads better.

    >>> spans_decades(np.array([0.0, 1.0, 5.0])), spans_decades(np.array([0.01, 1.0, 5.0]))
    (False, True)
    """
    positive = values[(values > 0) & np.isfinite(values)]
    return bool(positive.size and positive.max() > _WIDE * positive.min())


def use_log(axes: Axes, side: Side, low: float, high: float) -> None:
    """Make a side of ``axes`` logarithmic, with ticks at whole decades, labelled as plain numbers."""
    axes.set(**{f"{side}scale": "log"})
    axis = axes.xaxis if side == "x" else axes.yaxis
    decades = np.log10(high) - np.log10(low)
    every = int(max(1, np.ceil(decades / _MANY_DECADES)))
    subs = (1.0, 2.0, 5.0) if decades < 2.2 else (1.0,)
    axis.set_major_locator(LogLocator(base=10.0**every, subs=subs, numticks=40))
    axis.set_minor_locator(LogLocator(base=10.0, subs="auto", numticks=40))
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))


def plain(value: float) -> str:
    """A number as people write it: 0.01, 1000, and powers of ten where that is shorter.

    >>> plain(0.01), plain(2000.0), plain(1e6), plain(1e-5), plain(0.30000000000000004)
    ('0.01', '2000', '10⁶', '10⁻⁵', '0.3')
    """
    if value == 0:
        return "0"
    exponent = int(np.floor(np.log10(abs(value)) + 1e-9))
    if -3 < exponent < 5:
        return f"{value:.6g}"
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    mantissa = f"{value / 10.0**exponent:.3g}"
    return f"10{raised}" if mantissa == "1" else f"{mantissa}·10{raised}"
