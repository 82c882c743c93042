"""Razniewski, Optimizing Update Frequencies for Decaying Information, CIKM 2016, reproduced."""

from __future__ import annotations

from afresh.papers import razniewski_addresses as addresses
from afresh.papers import razniewski_bulk as bulk
from afresh.papers import razniewski_extensions as extensions
from afresh.papers import razniewski_figures
from afresh.papers import razniewski_lifetimes as lifetimes
from afresh.papers import razniewski_web as web
from afresh.papers.report import Report

CITATION = "Razniewski, Optimizing Update Frequencies for Decaying Information, CIKM 2016"


def report() -> Report:
    """§2, Tables 1–4, Examples 2–9, §8.1, §8.4, §9 and Figures 1, 2, 4, 5, 6 and 7.

    >>> from afresh.papers.check import Verdict
    >>> report().count(Verdict.UNEXPLAINED)
    0
    """
    sections = (
        addresses.two_doctors(),
        addresses.two_incomes(),
        addresses.table_1(),
        addresses.table_2(),
        addresses.example_3(),
        addresses.example_4(),
        addresses.example_5(),
        bulk.example_7(),
        extensions.example_8(),
        extensions.example_9(),
        lifetimes.section_8_1(),
        bulk.table_3(),
        lifetimes.table_3_again(),
        web.table_4(),
        bulk.section_8_4(),
        web.search_engine(),
    )
    figures = (*razniewski_figures.figures(), lifetimes.figure_7())
    return Report("razniewski", CITATION, sections, figures)
