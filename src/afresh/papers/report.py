"""What reproducing a paper yields: sections of printed numbers beside recomputed ones, and figures.

The printed text carries its own precision: ``1.15`` means half a unit in the second decimal, ``16e3`` half
a thousand, ``1/36`` is exact, ``< 1`` is a claim. Where a paper is known to err, a ``Correction`` holds the
right value as well as the reason, so that a recomputed value is still held to a number: a known reason
excuses the known difference and no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TypeVar

from afresh.plots.panels import Panel

Column = TypeVar("Column")

# Ties such as 62.5 against a printed 63 may land a rounding error on either side.
_SLACK = 1e-9


class CheckVerdict(Enum):
    """The result of comparing a recomputed number with the printed one."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Correction:
    """The value that is right where the paper prints another, to the digits written, and why they differ."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """A number as the paper prints it, and as afresh recomputes it.

    >>> Check("r for freshness 0.8", "0.46", 0.4642).verdict
    <CheckVerdict.AGREES: 'agrees'>
    >>> Check("half-life, age 50", "7.07", 7.101, "years", Correction("7.10", "rounded rate")).verdict
    <CheckVerdict.DIFFERS: 'differs'>
    >>> Check("half-life, age 50", "7.07", 8.2, "years", Correction("7.10", "rounded rate")).verdict
    <CheckVerdict.UNEXPLAINED: 'unexplained'>
    """

    name: str
    printed: str
    recomputed: float
    unit: str = ""
    correction: Correction | None = None

    @property
    def verdict(self) -> CheckVerdict:
        """Agrees at the printed precision, differs as the correction says, or is unexplained."""
        if self.correction is None:
            return CheckVerdict.AGREES if matches(self.printed, self.recomputed) else CheckVerdict.UNEXPLAINED
        known = matches(self.correction.value, self.recomputed)
        return CheckVerdict.DIFFERS if known else CheckVerdict.UNEXPLAINED

    @property
    def reason(self) -> str:
        """Why the numbers differ, where that is known."""
        if self.verdict is CheckVerdict.DIFFERS and self.correction is not None:
            return self.correction.reason
        if self.verdict is CheckVerdict.AGREES:
            return ""
        expected = self.printed if self.correction is None else self.correction.value
        return f"expected {expected} at the precision written"

    @property
    def printed_text(self) -> str:
        """The printed number for people: ``16e3`` as 16000."""
        plain = _is_claim(self.printed) or "/" in self.printed
        return self.printed if plain else format(Decimal(self.printed), "f")

    @property
    def recomputed_text(self) -> str:
        """The recomputed number with two digits more than were printed; a fraction over the same denominator.

        >>> Check("row (b)", "9/36", 0.25).recomputed_text, Check("NI", "16e3", 11350.39).recomputed_text
        ('9/36', '11350')
        >>> Check("ratio", "< 1", 0.97231).recomputed_text
        '0.97231'
        """
        if not math.isfinite(self.recomputed):
            return str(self.recomputed)
        if _is_claim(self.printed):
            return f"{self.recomputed:.5g}"
        if "/" in self.printed:
            denominator = int(self.printed.partition("/")[2])
            return f"{self.recomputed * denominator:.6g}/{denominator}"
        return f"{self.recomputed:.{max(0, 2 - _exponent(self.printed))}f}"


def corrected(name: str, printed: str, recomputed: float, right: str, reason: str, unit: str = "") -> Check:
    """A check of a number that the paper prints wrong: ``right`` is the value to the digits written."""
    return Check(name, printed, recomputed, unit, Correction(right, reason))


def matches(written: str, value: float) -> bool:
    """Whether ``value``, rounded to the precision of ``written``, is what is written.

    >>> matches("0.62", 0.6162), matches("0.12", 0.1287), matches("4e2", 406.0), matches("30/72", 30 / 72)
    (True, False, True, True)
    >>> matches("< 1", 0.99), matches("> 1", 0.99), matches("inf", math.inf)
    (True, False, True)
    """
    if _is_claim(written):
        bound = float(written[1:])
        return value < bound if written[0] == "<" else value > bound
    if "/" in written:
        return math.isclose(value, Fraction(written), rel_tol=_SLACK)
    target = Decimal(written)
    if not target.is_finite() or not math.isfinite(value):
        return value == float(target)
    half = 0.5 * 10.0 ** _exponent(written)
    return abs(value - float(target)) <= half * (1 + _SLACK)


def row(
    name: str,
    columns: Iterable[Column],
    printed: str,
    recomputed: Iterable[float],
    unit: str = "",
    corrections: Mapping[Column, Correction] | None = None,
) -> tuple[Check, ...]:
    """The checks of one table row: ``printed`` holds its cells, ``name`` has ``{}`` for the column.

    >>> [c.name for c in row("frequency of e{}", (1, 2), "1.15 1.36", (1.1499, 1.3584))]
    ['frequency of e1', 'frequency of e2']
    """
    known = corrections or {}
    cells = zip(columns, printed.split(), recomputed, strict=True)
    return tuple(
        Check(name.format(column), text, float(value), unit, known.get(column))
        for column, text, value in cells
    )


def _is_claim(written: str) -> bool:
    return written[0] in "<>"


def _exponent(written: str) -> int:
    """The power of ten of the last digit written: −2 for 1.15, 3 for 16e3."""
    return int(Decimal(written).as_tuple().exponent)


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure recomputed: what the paper shows, what ours shows, and the panels."""

    name: str
    title: str
    paper_shows: str
    ours_shows: str
    panels: tuple[Panel, ...]

    @classmethod
    def of(cls, name: str, title: str, paper_shows: str, ours_shows: str, *panels: Panel) -> PaperFigure:
        return cls(name, title, paper_shows, ours_shows, panels)


@dataclass(frozen=True, slots=True)
class Section:
    """One table, example or section of a paper; ``note`` says how the numbers were read or made."""

    title: str
    checks: tuple[Check, ...]
    note: str = ""

    @classmethod
    def of(cls, title: str, *checks: Check, note: str = "") -> Section:
        return cls(title, checks, note)


@dataclass(frozen=True, slots=True)
class Report:
    """One paper, reproduced."""

    key: str
    citation: str
    sections: tuple[Section, ...]
    figures: tuple[PaperFigure, ...]

    def checks(self) -> Iterator[Check]:
        for section in self.sections:
            yield from section.checks

    def count(self, verdict: CheckVerdict) -> int:
        """How many checks end in ``verdict``.

        >>> table = Section("Table 1", (Check("a", "0.5", 0.5), Check("b", "0.5", 0.7)))
        >>> Report("x", "X, 1999", (table,), ()).count(CheckVerdict.UNEXPLAINED)
        1
        """
        return sum(check.verdict is verdict for check in self.checks())
