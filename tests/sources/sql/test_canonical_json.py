"""Rows as text: they are equal where the database says so, and only there."""

from __future__ import annotations

import json
import sqlite3
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.sql.canonical_json import row_json, value_json

SQLITE_VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53).map(float),
    st.text(),
    st.binary(),
)
NUMBERS = st.one_of(st.integers(), st.decimals(allow_nan=False, allow_infinity=False))


@given(SQLITE_VALUES, SQLITE_VALUES)
def test_two_values_have_one_text_just_where_sqlite_calls_them_equal(one: object, other: object) -> None:
    connection = sqlite3.connect(":memory:")
    try:
        (same,) = connection.execute("SELECT ? IS ?", (one, other)).fetchone()
        # and the same number as an integer and as a real
        (alike,) = connection.execute("SELECT ?1 IS CAST(?1 AS REAL)", (one,)).fetchone()
    finally:
        connection.close()
    assert (value_json(one) == value_json(other)) == bool(same)
    if isinstance(one, int) and alike and abs(one) < 2**63 - 1024:
        assert value_json(one) == value_json(float(one))


@given(NUMBERS, st.integers(0, 30))
def test_the_scale_of_a_number_does_not_count(number: int | Decimal, zeros: int) -> None:
    sign, digits, exponent = Decimal(number).as_tuple()
    scaled = Decimal((sign, (*digits, *[0] * zeros), int(exponent) - zeros))
    assert value_json(scaled) == value_json(number)
    assert Decimal(value_json(number)) == Decimal(number)


@given(NUMBERS, NUMBERS)
def test_other_numbers_have_other_texts(one: int | Decimal, other: int | Decimal) -> None:
    assert (value_json(one) == value_json(other)) == (one == other)


def test_nothing_the_empty_text_and_zero_differ() -> None:
    values: list[object] = [None, "", 0, "0", b"", b"0", False, "null", [], {}]
    assert len({value_json(value) for value in values}) == len(values)


@pytest.mark.parametrize("cls", [float, Decimal])
def test_what_is_no_number_equals_itself(cls: type[float | Decimal]) -> None:
    assert [value_json(cls(text)) for text in ("nan", "-inf", "inf", "-0")] == [
        '{"number":"NaN"}',
        '{"number":"-Infinity"}',
        '{"number":"Infinity"}',
        "0",
    ]


def test_the_order_of_columns_and_of_json_keys_does_not_count() -> None:
    row = [("b", {"y": [Decimal("1.50")], "x": None}), ("a", True)]
    assert row_json(row) == row_json(list(reversed(row))) == b'{"a":true,"b":{"x":null,"y":[1.5]}}'


def test_text_that_is_no_unicode_is_still_json() -> None:
    assert json.loads(row_json([("a", b"\xff".decode("utf-8", "surrogateescape"))])) == {"a": "\udcff"}
