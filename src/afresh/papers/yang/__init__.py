"""Yang et al., Optimizing Content Freshness of Relations Extracted From the Web, SIGMOD 2010, reproduced."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.papers.report import Report
from afresh.papers.yang import content_lag, probe_experiments
from afresh.papers.yang.probe_experiments import SearchRecords

CITATION = (
    "Yang, Wang, Lim & Wang, Optimizing Content Freshness of Relations Extracted From the Web Using Keyword "
    "Search, SIGMOD 2010"
)


def report(records: Sequence[SearchRecords] = ()) -> Report:
    """Return the report on Tables 2 and 3 and Figure 2, and on Figures 3 to 5 for each of the ``records``.

    >>> from afresh.papers.report import CheckVerdict
    >>> report().count(CheckVerdict.UNEXPLAINED)
    0
    """
    courses = content_lag.simulate_courses()
    sections = (
        content_lag.table_2(),
        content_lag.table_3(),
        content_lag.expected_lag_section(),
        content_lag.section(courses),
    )
    measured = tuple(figure for given in records for figure in probe_experiments.figures(given))
    return Report("yang", CITATION, sections, (content_lag.figure_2(courses), *measured))
