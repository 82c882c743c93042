"""Cho & Garcia-Molina, Synchronizing a Database to Improve Freshness, SIGMOD 2000, reproduced."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.papers.cho import budget_tables, cho_figures, refresh_orders, sync_points
from afresh.papers.cho.cho_figures import ChangeLog, figure_11
from afresh.papers.report import Report

CITATION = "Cho & Garcia-Molina, Synchronizing a Database to Improve Freshness, SIGMOD 2000"


def report(histories: Sequence[ChangeLog] = ()) -> Report:
    """Return the report on Tables 2–6 and Figures 2, 3, 5–7, 9, 10, 12, and Figure 11 for each history.

    >>> from afresh.papers.report import CheckVerdict
    >>> report().count(CheckVerdict.UNEXPLAINED)
    0
    """
    sections = (
        budget_tables.example_1(),
        sync_points.example_3(),
        refresh_orders.table_2(),
        refresh_orders.section_4(),
        refresh_orders.table_3(),
        refresh_orders.figure_7(),
        budget_tables.table_4(),
        budget_tables.figure_9(),
        budget_tables.table_5(),
        budget_tables.table_6(),
        budget_tables.weights(),
    )
    measured = (figure_11(history) for history in histories)
    return Report("cho", CITATION, sections, (*cho_figures.figures(), *measured))
