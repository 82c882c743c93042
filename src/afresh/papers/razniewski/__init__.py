"""Razniewski, Optimizing Update Frequencies for Decaying Information, CIKM 2016, reproduced."""

from __future__ import annotations

from afresh.papers.razniewski import bulk_updates, club_lifetimes, doctor_addresses, razniewski_figures
from afresh.papers.report import Report

CITATION = "Razniewski, Optimizing Update Frequencies for Decaying Information, CIKM 2016"


def report() -> Report:
    """§2, Tables 1–4, Examples 2–9, §8.1, §8.4, §9 and Figures 1, 2, 4, 5, 6 and 7.

    >>> from afresh.papers.report import CheckVerdict
    >>> report().count(CheckVerdict.UNEXPLAINED)
    0
    """
    sections = (
        doctor_addresses.two_doctors(),
        doctor_addresses.two_incomes(),
        doctor_addresses.table_1(),
        doctor_addresses.table_2(),
        doctor_addresses.example_3(),
        doctor_addresses.example_4(),
        doctor_addresses.example_5(),
        bulk_updates.example_7(),
        doctor_addresses.example_8(),
        doctor_addresses.example_9(),
        club_lifetimes.section_8_1(),
        bulk_updates.table_3(),
        club_lifetimes.table_3_again(),
        bulk_updates.table_4(),
        bulk_updates.section_8_4(),
        bulk_updates.search_engine(),
    )
    figures = (*razniewski_figures.figures(), club_lifetimes.figure_7())
    return Report("razniewski", CITATION, sections, figures)
