"""The papers that can be reproduced, by short name. A new paper takes one package and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from afresh.values.errors import one_of

if TYPE_CHECKING:
    from afresh.papers.cho.cho_figures import ChangeLog
    from afresh.papers.report import Report
    from afresh.papers.yang.probe_experiments import SearchRecords

# The package whose ``report()`` reproduces the paper. It is imported when needed, because that takes long.
PAPERS: Mapping[str, str] = {
    "cho": "afresh.papers.cho",
    "razniewski": "afresh.papers.razniewski",
    "yang": "afresh.papers.yang",
    "zhang": "afresh.papers.zhang",
}
ON_HISTORIES = ("cho",)  # papers with a figure that needs real changes
ON_RECORDS = ("yang",)  # papers with a figure that needs real records to search


def reproduce(
    names: Sequence[str] = (), histories: Sequence[ChangeLog] = (), records: Sequence[SearchRecords] = ()
) -> tuple[Report, ...]:
    """Return the reports of the named papers, in the order of ``names``, or of all papers if none is named.
    Figures that need recorded changes are made for each of the ``histories``, and figures that need
    searchable records for each of the ``records``.

    >>> reproduce(["choo"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown paper 'choo': did you mean 'cho'? One of cho, razniewski...
    """
    wanted = dict.fromkeys(one_of("paper", name, PAPERS) for name in names or PAPERS)
    builds = {name: cast("Callable[..., Report]", import_module(PAPERS[name]).report) for name in wanted}
    given = dict.fromkeys(ON_HISTORIES, (histories,)) | dict.fromkeys(ON_RECORDS, (records,))
    return tuple(build(*given.get(name, ())) for name, build in builds.items())
