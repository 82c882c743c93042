"""Durations, rates, budgets, sizes and shares as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.values.errors import UsageError
from afresh.values.units import (
    UNIT_SECONDS,
    format_duration,
    parse_budget,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size_rate,
)

numbers = st.floats(min_value=1e-6, max_value=1e9)
units = st.sampled_from(sorted(UNIT_SECONDS))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("6h", 21600),
        ("1d", 86400),
        ("2w", 1209600),
        ("1y", 365.25 * 86400),
        (".5h", 1800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@given(numbers, units)
def test_a_duration_is_its_number_times_its_unit(number: float, unit: str) -> None:
    assert parse_duration(f"{number!r}{unit}") == pytest.approx(number * UNIT_SECONDS[unit])


@given(numbers, units)
def test_a_rate_times_its_unit_is_its_number(number: float, unit: str) -> None:
    assert parse_rate(f"{number!r}/{unit}") * UNIT_SECONDS[unit] == pytest.approx(number)


@given(numbers, units, st.integers(1, 10**6))
def test_a_budget_per_item_grows_with_the_items(number: float, unit: str, items: int) -> None:
    each = parse_budget(f"{number!r}/item/{unit}")
    every = parse_budget(f"{number!r}/{unit}")
    assert each.total_per_second(items) == pytest.approx(items * every.total_per_second(items))


def test_no_budget_needs_no_unit() -> None:
    assert parse_budget("0").total_per_second(5) == 0
    assert parse_budget("0.0").total_per_second(5) == 0


def test_sizes_and_shares() -> None:
    assert parse_size_rate("10GB/d") == pytest.approx(1e10 / 86400)
    assert parse_size_rate("1KiB/s") == 1024
    assert parse_share("20m/h") == pytest.approx(1 / 3)
    assert parse_share("24h/d") == 1


@pytest.mark.parametrize("text", ["", "5", "5x", "h", "-5s", "5 5s", "1e999s", "nan s", "5sec"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "5", "5/x", "/d", "-5/d", "5d", "5/d/d", "5//d", "5GB/d", "5/item"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError):
        parse_budget(text)


@pytest.mark.parametrize("text", ["5/d", "5XB/d", "5GB", "5GB/item/d"])
def test_what_is_no_size_rate(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size_rate(text)


@pytest.mark.parametrize("text", ["61m/h", "20m", "20/h", "20GB/h"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(UsageError):
        parse_share(text)


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_a_duration_for_people_is_close_to_it(seconds: float) -> None:
    number, unit = format_duration(seconds).split()
    assert float(number) * UNIT_SECONDS[unit] == pytest.approx(seconds, rel=5e-3, abs=1e-300)


def test_for_ever_is_never() -> None:
    assert format_duration(float("inf")) == "never"


def test_rates_per_several_units() -> None:
    assert parse_rate("10/5m") == parse_rate("2/m")
    assert parse_budget("0.05/item/2d").per_second == parse_budget("0.025/item/d").per_second
    assert parse_size_rate("10GB/2d") == parse_size_rate("5GB/d")
    assert parse_share("20m/2h") == parse_share("10m/h")
    with pytest.raises(UsageError, match="per no time"):
        parse_rate("10/0m")
