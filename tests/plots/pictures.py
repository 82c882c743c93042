"""Pictures of plans to draw, and the words in a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from afresh.plots.plan_plot import PlanPicture


def picture(rate: Any, frequency: Any, **changes: Any) -> PlanPicture:
    """A plan's picture, dropping what is not refreshed."""
    rates, frequencies = np.asarray(rate, dtype=float), np.asarray(frequency, dtype=float)
    budgets = np.geomspace(0.1, 100, 20)
    filled: dict[str, Any] = {
        "rate": rates,
        "frequency": frequencies,
        "dropped": (rates > 0) & (frequencies == 0),
        "law_rate": np.geomspace(0.01, 100, 200),
        "law_frequency": np.geomspace(0.02, 2, 200),
        "cutoff": 4.6,
        "budgets": budgets,
        "freshness": budgets / (1 + budgets),
        "uniform": budgets / (2 + budgets),
        "budget": 5.0,
        "reached": 5 / 6,
    }
    return PlanPicture(**(filled | changes))


def texts(axes: Axes) -> list[str]:
    """The words in a pair of axes, beside its labels."""
    legend = axes.get_legend()
    named = [text.get_text() for text in legend.get_texts()] if legend else []
    return named + [text.get_text() for text in axes.texts]


CHO = picture([1, 2, 3, 4, 5], [1.15, 1.36, 1.35, 1.14, 0])
