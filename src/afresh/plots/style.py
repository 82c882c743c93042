"""One look for every picture, and pictures as bytes.

Built on matplotlib's objects, never on pyplot: no window, no current figure. The colours are Okabe and Ito's
(2008), told apart by colour-blind eyes too. The same figure gives the same bytes.
"""

from __future__ import annotations

import io
import math
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import Literal, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

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
    "font.sans-serif": ["DejaVu Sans"],  # the one that matplotlib carries: the same on every machine
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
    """The context in which a figure is made; outside it matplotlib's settings are as they were."""
    return mpl.rc_context(_SETTINGS)  # type: ignore[arg-type]


def new_figure(panels: int, *, width: float = 5.2, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """A figure with ``panels`` axes, at most three in a row, each ``width`` by ``height`` inches.

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


def render(figure: Figure, kind: PictureFormat) -> bytes:
    """The figure as the bytes of a PNG or SVG file; nothing in them depends on the time or the machine.

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
    """Which picture a file's ending asks for.

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
