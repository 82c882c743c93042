"""Cho & Garcia-Molina, Synchronizing a Database to Improve Freshness, SIGMOD 2000, reproduced."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.papers import cho_allocation, cho_figures, cho_orders, cho_windows
from afresh.papers.cho_history import History, figure_11
from afresh.papers.report import Report

CITATION = "Cho & Garcia-Molina, Synchronizing a Database to Improve Freshness, SIGMOD 2000"


def report(histories: Sequence[History] = ()) -> Report:
    """Tables 2–6, the numbers in the text, Figures 2, 3, 5–7, 9, 10, 12, and Figure 11 of each history.

    >>> from afresh.papers.check import Verdict
    >>> report().count(Verdict.UNEXPLAINED)
    0
    """
    sections = (
        cho_allocation.example_1(),
        cho_windows.example_3(),
        cho_orders.table_2(),
        cho_orders.section_4(),
        cho_orders.table_3(),
        cho_orders.figure_7(),
        cho_allocation.table_4(),
        cho_allocation.figure_9(),
        cho_allocation.table_5(),
        cho_allocation.table_6(),
        cho_allocation.weights(),
    )
    measured = (figure_11(history) for history in histories)
    return Report("cho", CITATION, sections, (*cho_figures.figures(), *measured))
