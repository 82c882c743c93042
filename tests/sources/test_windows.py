"""Windows: against a minute-by-minute reading of the week, and over clock changes."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.windows import CachedWindows, Windows, parse_window
from afresh.values.errors import UsageError

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
WINDOW = st.builds(
    lambda h1, m1, h2, m2, days: f"{h1:02}:{m1:02}-{h2:02}:{m2:02} {','.join(days)}",
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 23),
    st.integers(0, 59),
    st.lists(st.sampled_from(DAYS), min_size=1, unique=True),
)
TIMES = st.integers(0, 4_000_000_000).map(float)


def at(text: str, zone: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@given(st.lists(WINDOW, min_size=1, max_size=3), TIMES)
@settings(deadline=None)
def test_open_means_inside_a_window_of_its_day(texts: list[str], now_s: float) -> None:
    windows = Windows.parse(texts, "UTC")
    minute = (now_s // 60 + 3 * 1440) % (7 * 1440)  # of the week; 1970 began on a Thursday
    inside = any(
        (minute - (day * 1440 + window.opens_min)) % (7 * 1440) < window.length_min
        for window in map(parse_window, texts)
        for day in window.days
    )
    assert windows.is_open(now_s) == inside


@given(
    st.lists(WINDOW, min_size=1, max_size=3), TIMES, st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"])
)
@settings(deadline=None)
def test_the_next_opening_is_open_and_nothing_before_it_is(texts: list[str], now_s: float, zone: str) -> None:
    windows = Windows.parse(texts, zone)
    opens_s = windows.next_opening_s(now_s)
    assert opens_s >= now_s
    assert windows.is_open(opens_s)
    if opens_s > now_s:
        assert not any(windows.is_open(now_s + (opens_s - now_s) * k / 20) for k in range(20))
    closes_s = windows.closes_s(opens_s)
    assert closes_s > opens_s
    assert windows.is_open((opens_s + closes_s) / 2)


@given(st.lists(WINDOW, min_size=1, max_size=2), TIMES, st.lists(st.integers(-4000, 90_000), max_size=20))
@settings(deadline=None, max_examples=50)
def test_the_cached_answer_is_the_computed_one(texts: list[str], now_s: float, steps: list[int]) -> None:
    windows = Windows.parse(texts, "UTC")
    hours = CachedWindows(windows)
    for step in steps:
        now_s = max(0.0, now_s + step)
        assert hours.next_opening_s(now_s) == windows.next_opening_s(now_s)


def test_a_night_of_a_clock_change_is_longer_or_shorter() -> None:
    nights = Windows.parse(["22:00-06:00"], "Europe/Berlin")
    for evening, hours in (("2024-03-30T22:00", 7), ("2024-06-01T22:00", 8), ("2024-10-26T22:00", 9)):
        opens_s = at(evening, "Europe/Berlin")
        assert nights.next_opening_s(opens_s - 60) == opens_s
        assert nights.closes_s(opens_s) - opens_s == hours * 3600


def test_a_window_inside_the_skipped_hour_opens_the_next_time() -> None:
    windows = Windows.parse(["02:00-03:00 Sun"], "Europe/Berlin")
    before_s = at("2024-03-31T00:00", "Europe/Berlin")
    assert windows.next_opening_s(before_s) == at("2024-04-07T02:00", "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "opens", "closes"),
    [
        ("01:30-02:30", "2024-03-31T01:30", "2024-03-31T03:00"),
        ("02:15-04:00", "2024-03-31T03:00", "2024-03-31T04:00"),
        ("02:00-02:30", "2024-04-01T02:00", "2024-04-01T02:30"),
    ],
)
def test_when_clocks_are_put_forward_no_window_is_open_at_a_time_outside_it(
    text: str, opens: str, closes: str
) -> None:
    """After 01:59 comes 03:00."""
    windows = Windows.parse([text], "Europe/Berlin")
    opens_s = windows.next_opening_s(at("2024-03-31T00:00", "Europe/Berlin"))
    assert opens_s == at(opens, "Europe/Berlin")
    assert windows.closes_s(opens_s) == at(closes, "Europe/Berlin")


def test_when_clocks_are_put_back_a_window_opens_and_closes_the_first_time() -> None:
    windows = Windows.parse(["02:15-02:45"], "Europe/Berlin")
    opens_s = windows.next_opening_s(at("2024-10-27T00:00", "Europe/Berlin"))
    assert opens_s == at("2024-10-27T02:15", "Europe/Berlin")
    assert windows.closes_s(opens_s) - opens_s == 1800
    assert windows.next_opening_s(opens_s + 1800) == at("2024-10-28T02:15", "Europe/Berlin")


def test_no_window_means_always() -> None:
    always = Windows.parse([])
    assert (always.is_open(0.0), always.next_opening_s(5.0), always.closes_s(5.0)) == (
        True,
        5.0,
        float("inf"),
    )


@pytest.mark.parametrize(
    ("text", "days"),
    [("09:00-17:00 Mon-Fri", 5), ("00:00-24:00 Sat,Sun", 2), ("1:00-2:00 fri - mon", 4), ("0:00-0:00", 7)],
)
def test_days_are_read(text: str, days: int) -> None:
    assert len(parse_window(text).days) == days


@pytest.mark.parametrize(
    "text", ["", "nights", "25:00-26:00", "10:61-11:00", "24:00-01:00", "1:00-2:00 Moon"]
)
def test_text_that_is_no_window_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is not a window of time"):
        parse_window(text)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="is not a time zone"):
        Windows.parse([], "Mars/Olympus")
