"""The papers that can be reproduced, by short name. A new paper is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from afresh.values.errors import one_of

if TYPE_CHECKING:
    from afresh.papers.cho.change_gaps import ChangeLog
    from afresh.papers.report import Report
    from afresh.papers.yang.probe_experiments import SearchRecords

# name → the module whose ``report()`` reproduces the paper; imported when asked for: names alone are light
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
    """The reports of the papers named, in that order, each once; of all known papers if none is named.

    Figures that need real changes are made of each of the ``histories``, those that need records to search
    of each of the ``records``.

    >>> reproduce(["choo"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown paper 'choo': did you mean 'cho'? One of cho, razniewski...
    """
    wanted = dict.fromkeys(one_of("paper", name, PAPERS) for name in names or PAPERS)
    return tuple(_report(name, histories, records) for name in wanted)


def _report(name: str, histories: Sequence[ChangeLog], records: Sequence[SearchRecords]) -> Report:
    build = cast("Callable[..., Report]", import_module(PAPERS[name]).report)
    if name in ON_RECORDS:
        return build(records)
    return build(histories) if name in ON_HISTORIES else build()
