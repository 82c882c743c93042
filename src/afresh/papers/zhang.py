"""Zhang, Tang, Yang & Li, Self-Adaptive Estimation of View Change Frequency, 2007, reproduced."""

from __future__ import annotations

from afresh.papers import zhang_figures, zhang_pages, zhang_tables
from afresh.papers.report import Report

CITATION = (
    "Zhang, Tang, Yang & Li, Self-Adaptive Estimation of View Change Frequency in Web Warehouses, "
    "Journal of Software 18(2), 2007"
)


def report() -> Report:
    """Tables 1 and 2, the numbers in the text, and Figures 2 and 4.

    >>> from afresh.papers.check import Verdict
    >>> report().count(Verdict.UNEXPLAINED)
    0
    """
    pages = zhang_pages.trials()
    sections = (
        zhang_tables.section_2(),
        zhang_tables.table_1(),
        zhang_tables.polls_for_small_bias(),
        zhang_tables.table_2(),
        zhang_pages.figure_4(pages),
    )
    return Report("zhang", CITATION, sections, zhang_figures.figures(pages))
