"""The papers that can be reproduced, by short name. A new paper is one module and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from afresh.values.errors import one_of

if TYPE_CHECKING:
    from afresh.papers.cho_history import History
    from afresh.papers.report import Report

# name → the module whose ``report()`` reproduces the paper; imported when asked for: names alone are light
PAPERS: Mapping[str, str] = {
    "cho": "afresh.papers.cho",
    "razniewski": "afresh.papers.razniewski",
    "zhang": "afresh.papers.zhang",
}
_ON_HISTORIES = ("cho",)  # papers with a figure that needs real changes


def reproduce(names: Sequence[str] = (), histories: Sequence[History] = ()) -> tuple[Report, ...]:
    """The reports of the papers named, in that order, each once; of all known papers if none is named.

    Figures that need real changes are made of each of the ``histories``.

    >>> reproduce(["choo"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown paper 'choo': did you mean 'cho'? One of cho, razniewski...
    """
    wanted = dict.fromkeys(one_of("paper", name, PAPERS) for name in names or PAPERS)
    return tuple(_report(name, histories) for name in wanted)


def _report(name: str, histories: Sequence[History]) -> Report:
    build = cast("Callable[..., Report]", import_module(PAPERS[name]).report)
    return build(histories) if name in _ON_HISTORIES else build()
