"""What reproducing one paper yields: sections of checks, and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from afresh.papers.check import Check, CheckVerdict
from afresh.plots.panels import Panel


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure recomputed: what the paper shows, what ours shows, and the panels."""

    name: str
    title: str
    paper_shows: str
    ours_shows: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One table, example or section of a paper; ``note`` says how the numbers were read or made."""

    title: str
    checks: tuple[Check, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One paper, reproduced."""

    key: str
    citation: str
    sections: tuple[Section, ...]
    figures: tuple[PaperFigure, ...]

    def checks(self) -> Iterator[Check]:
        """Every check, in the paper's order."""
        for section in self.sections:
            yield from section.checks

    def count(self, verdict: CheckVerdict) -> int:
        """How many checks end in ``verdict``.

        >>> table = Section("Table 1", (Check("a", "0.5", 0.5), Check("b", "0.5", 0.7)))
        >>> Report("x", "X, 1999", (table,), ()).count(CheckVerdict.UNEXPLAINED)
        1
        """
        return sum(check.verdict is verdict for check in self.checks())
