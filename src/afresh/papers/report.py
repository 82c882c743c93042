"""The report on a reproduced paper: sections that compare printed with recomputed numbers, and figures.

A recomputed number may differ from the printed text by its precision: from ``1.15`` by half a unit of the
second decimal, from ``16e3`` by half a thousand. ``1/36`` is exact, and ``< 1`` only states a bound. If a
printed number is known to be wrong, a ``Correction`` states the right number and the reason, and the
recomputed number must agree with the right number.
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

# A number exactly between two roundings, such as 62.5 for a printed 63, agrees in spite of rounding errors.
_SLACK = 1e-9


class CheckVerdict(Enum):
    """The result of comparing a recomputed number with the printed one.
    AGREES: with the printed number. DIFFERS: it agrees with a known correction. UNEXPLAINED: with neither."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Correction:
    """The right number, as text, where the paper prints a wrong one, and the reason for the difference."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """A number as the paper prints it (text), and as afresh recomputes it.

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
        """Whether the recomputed number agrees with the printed or the corrected one, or is unexplained."""
        if self.correction is None:
            return CheckVerdict.AGREES if matches(self.printed, self.recomputed) else CheckVerdict.UNEXPLAINED
        known = matches(self.correction.value, self.recomputed)
        return CheckVerdict.DIFFERS if known else CheckVerdict.UNEXPLAINED

    @property
    def reason(self) -> str:
        """The reason for a known difference, or the number expected otherwise; empty if they agree."""
        if self.verdict is CheckVerdict.DIFFERS and self.correction is not None:
            return self.correction.reason
        if self.verdict is CheckVerdict.AGREES:
            return ""
        expected = self.printed if self.correction is None else self.correction.value
        return f"expected {expected} at the precision written"

    @property
    def printed_text(self) -> str:
        """The printed number without exponent: ``16e3`` becomes 16000."""
        plain = _is_claim(self.printed) or "/" in self.printed
        return self.printed if plain else format(Decimal(self.printed), "f")

    @property
    def recomputed_text(self) -> str:
        """The recomputed number as text, with two more digits than the printed one.
        A fraction keeps its denominator.

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


def corrected_check(
    name: str, printed: str, recomputed: float, right: str, reason: str, unit: str = ""
) -> Check:
    """Return the check of a number that the paper prints wrong; ``right`` is the right number."""
    return Check(name, printed, recomputed, unit, Correction(right, reason))


def matches(written: str, value: float) -> bool:
    """Return whether ``value`` agrees with the text ``written``, at the precision of this text.

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


def row_checks(
    name: str,
    columns: Iterable[Column],
    printed: str,
    recomputed: Iterable[float],
    unit: str = "",
    corrections: Mapping[Column, Correction] | None = None,
) -> tuple[Check, ...]:
    """Return the checks of one row of a printed table.
    ``printed`` are the row's cells, separated by spaces, ``recomputed`` the numbers of afresh. ``{}`` in
    ``name`` is replaced by the column. ``corrections`` are the known errors, by column.

    >>> [c.name for c in row_checks("frequency of e{}", (1, 2), "1.15 1.36", (1.1499, 1.3584))]
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
    """Return the power of ten of the last digit of a number: −2 for 1.15, 3 for 16e3."""
    return int(Decimal(written).as_tuple().exponent)


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A recomputed figure: what the paper's figure shows, what the recomputed one shows, and its panels."""

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
    """One table, example or section of a paper; ``note`` explains how the numbers were obtained."""

    title: str
    checks: tuple[Check, ...]
    note: str = ""

    @classmethod
    def of(cls, title: str, *checks: Check, note: str = "") -> Section:
        return cls(title, checks, note)


@dataclass(frozen=True, slots=True)
class Report:
    """The comparison of one paper with what afresh computes; ``key`` is the paper's short name."""

    key: str
    citation: str
    sections: tuple[Section, ...]
    figures: tuple[PaperFigure, ...]

    def checks(self) -> Iterator[Check]:
        for section in self.sections:
            yield from section.checks

    def count(self, verdict: CheckVerdict) -> int:
        """Return how many checks have this verdict.

        >>> table = Section("Table 1", (Check("a", "0.5", 0.5), Check("b", "0.5", 0.7)))
        >>> Report("x", "X, 1999", (table,), ()).count(CheckVerdict.UNEXPLAINED)
        1
        """
        return sum(check.verdict is verdict for check in self.checks())
