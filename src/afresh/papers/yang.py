"""Yang et al., Optimizing Content Freshness of Relations Extracted From the Web, SIGMOD 2010, reproduced."""

from __future__ import annotations

from collections.abc import Sequence

from afresh.papers import yang_freshness, yang_probes, yang_tables
from afresh.papers.report import Report
from afresh.papers.yang_records import Records

CITATION = (
    "Yang, Wang, Lim & Wang, Optimizing Content Freshness of Relations Extracted From the Web Using Keyword "
    "Search, SIGMOD 2010"
)


def report(records: Sequence[Records] = ()) -> Report:
    """Tables 2 and 3, Figure 2, the orders of its curves; Figures 3 to 5 re-run on ``records``.

    >>> from afresh.papers.check import Verdict
    >>> report().count(Verdict.UNEXPLAINED)
    0
    """
    courses = yang_freshness.courses()
    sections = (
        yang_tables.table_2(),
        yang_tables.table_3(),
        yang_tables.expected_lag_section(),
        yang_freshness.section(courses),
    )
    measured = tuple(figure for given in records for figure in yang_probes.figures(given))
    return Report("yang", CITATION, sections, (yang_freshness.figure_2(courses), *measured))
