"""Zhang, Tang, Yang & Li, Self-Adaptive Estimation of View Change Frequency, 2007, reproduced."""

from __future__ import annotations

from afresh.papers.report import Report
from afresh.papers.zhang import bias_tables, simulated_pages, views_and_periods, zhang_figures

CITATION = (
    "Zhang, Tang, Yang & Li, Self-Adaptive Estimation of View Change Frequency in Web Warehouses, "
    "Journal of Software 18(2), 2007"
)


def report() -> Report:
    """Return the report on Tables 1 and 2, the numbers in the text, and Figures 2 and 4.

    >>> from afresh.papers.report import CheckVerdict
    >>> report().count(CheckVerdict.UNEXPLAINED)
    0
    """
    pages = simulated_pages.run_trials()
    sections = (
        bias_tables.section_2(),
        bias_tables.table_1(),
        bias_tables.polls_for_small_bias(),
        bias_tables.table_2(),
        views_and_periods.step_3(),
        views_and_periods.section_4(),
        simulated_pages.figure_4(pages),
    )
    return Report("zhang", CITATION, sections, zhang_figures.figures(pages))
