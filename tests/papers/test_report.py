"""A printed number holds the recomputed one to its precision; a known reason excuses one difference only."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.papers.report import Check, CheckVerdict, Correction, matches, row_checks


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_what_a_paper_rounds_agrees(value: float, decimals: int) -> None:
    assert matches(f"{value:.{decimals}f}", value)


@given(st.floats(-1e6, 1e6), st.integers(0, 6), st.floats(0.51, 100), st.sampled_from([-1, 1]))
def test_more_than_half_a_unit_off_differs(value: float, decimals: int, units: float, sign: int) -> None:
    written = f"{value:.{decimals}f}"
    off = float(Decimal(written)) + sign * units * 10.0**-decimals
    assert not matches(written, off)


@pytest.mark.parametrize(
    ("written", "value", "agrees"),
    [
        ("63", 62.5, True),
        ("0.12", 0.1287, False),
        ("16e3", 16331.0, True),
        ("16e3", 11350.0, False),
        ("1/36", 1 / 36, True),
        ("1/36", 1 / 36 + 1e-6, False),
        ("< 1", 1.0, False),
        ("< 1", math.nan, False),
        ("> 1", 1.2, True),
        ("inf", math.inf, True),
        ("inf", 1e300, False),
        ("0.24", math.inf, False),
        ("0.24", math.nan, False),
    ],
)
def test_precision_is_what_is_written(written: str, value: float, agrees: bool) -> None:
    assert matches(written, value) is agrees


def test_a_known_reason_excuses_only_the_known_difference() -> None:
    known = Correction("0.486", "a slip")
    excused, other, vanished = (Check("income", "0.42", x, "", known) for x in (0.4865, 0.55, 0.42))
    assert (excused.verdict, excused.reason) == (CheckVerdict.DIFFERS, "a slip")
    assert other.verdict is CheckVerdict.UNEXPLAINED
    assert other.reason == "expected 0.486 at the precision written"
    # a recomputed value that moves to the printed one has moved all the same
    assert vanished.verdict is CheckVerdict.UNEXPLAINED


def test_recomputed_numbers_are_shown_two_digits_further() -> None:
    shown = {
        ("0.57", 0.572912): "0.5729",
        ("4e2", 406.02): "406",
        ("10/36", 10 / 36): "10/36",
        ("0.24", math.inf): "inf",
        ("< 1", 0.99951): "0.99951",
    }
    assert {(p, v): Check("x", p, v).recomputed_text for p, v in shown} == shown


def test_printed_numbers_are_shown_in_full() -> None:
    assert [Check("x", p, 1.0).printed_text for p in ("16e3", "0.50", "9/36", "< 1")] == [
        "16000",
        "0.50",
        "9/36",
        "< 1",
    ]


def test_a_row_needs_as_many_cells_as_columns() -> None:
    with pytest.raises(ValueError, match="shorter"):
        row_checks("e{}", (1, 2, 3), "1.15 1.36", (1.0, 2.0, 3.0))
