"""The common style of all plots: colours, scales, ticks and figures, and the conversion of figures to bytes.

It uses the classes of matplotlib and not pyplot, so that there is no window and no current figure. The
colours are those of Okabe and Ito (2008), suited to colour-blind people. Equal figures give equal bytes.
"""

from __future__ import annotations

import io
import math
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from afresh.values.arrays import Floats
from afresh.values.errors import UsageError

PictureFormat: TypeAlias = Literal["png", "svg"]

INK, SOFT, GRID = "#24292f", "#6e7781", "#e6e8eb"
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
DASHES = ("-", "--", "-.", ":")

_DOTS_PER_INCH = 150
_MOST_IN_A_ROW = 3
_SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # part of matplotlib, so the same on every machine
    "font.size": 9.5,
    "text.color": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.formatter.useoffset": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.9,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "afresh",
}


def plot_style() -> AbstractContextManager[None]:
    """Return a context with the settings for figures; outside it matplotlib's settings are unchanged."""
    return mpl.rc_context(_SETTINGS)  # type: ignore[arg-type]


def new_figure(panels: int, *, width: float = 5.2, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """Return a figure and its ``panels`` axes, at most three in a row, each ``width`` by ``height`` inches.

    >>> with plot_style():
    ...     figure, axes = new_figure(2)
    >>> len(axes), figure.get_size_inches().tolist()
    (2, [10.4, 4.0])
    """
    engine = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    rows = max(1, math.ceil(panels / _MOST_IN_A_ROW))
    columns = max(1, math.ceil(panels / rows))
    figure = Figure(figsize=(width * columns, height * rows), layout=engine, facecolor="white")
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(panels)]


def annotate(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any
) -> None:
    """Write ``text`` at an offset, in points (1/72 inch), from ``at``."""
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **style)


def render(figure: Figure, kind: PictureFormat) -> bytes:
    """Return the bytes of a PNG or SVG file, which do not depend on the time or the machine.

    >>> figure, _ = new_figure(1)
    >>> render(figure, "png")[1:4], render(figure, "svg") == render(figure, "svg")
    (b'PNG', True)
    """
    out = io.BytesIO()
    with plot_style():
        if kind == "svg":
            FigureCanvasSVG(figure).print_figure(out, format="svg", metadata={"Date": None, "Creator": None})
        else:
            canvas = FigureCanvasAgg(figure)
            canvas.print_figure(out, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return out.getvalue()


def picture_format(path: str) -> PictureFormat:
    """Return the picture format for a file name's extension.

    >>> picture_format("plan.svg")
    'svg'
    >>> picture_format("plan.pdf")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: plan.pdf: unknown ending '.pdf' for a picture: use .png or .svg
    """
    suffix = PurePath(path).suffix.lower()
    if suffix == ".png":
        return "png"
    if suffix == ".svg":
        return "svg"
    raise UsageError(f"{path}: unknown ending {suffix!r} for a picture: use .png or .svg")


Side: TypeAlias = Literal["x", "y"]

_WIDE = 30.0  # above this ratio of the largest to the smallest value a logarithmic scale is used
_MANY_DECADES = 7


def spans_decades(values: Floats) -> bool:
    """Return whether the positive ``values`` differ so much that a logarithmic scale is better.

    >>> spans_decades(np.array([0.0, 1.0, 5.0])), spans_decades(np.array([0.01, 1.0, 5.0]))
    (False, True)
    """
    positive = values[(values > 0) & np.isfinite(values)]
    return bool(positive.size and positive.max() > _WIDE * positive.min())


def use_log(axes: Axes, side: Side, low: float, high: float) -> None:
    """Make the x or y axis logarithmic for ``low`` to ``high``, with plain numbers at whole decades."""
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
    """Return a number as text: small and large numbers as powers of ten, all others as decimals.

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
