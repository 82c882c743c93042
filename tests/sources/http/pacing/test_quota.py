"""A quota of the settings is never exceeded, and the requests are spread over its period."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.sources.http.pacing.quota import NOTHING_USED, QuotaRule, count_request, parse_quota
from afresh.sources.http.politeness import (
    HostState,
    Politeness,
    count_start,
    ready_s,
    record_end,
    record_start,
)
from afresh.sources.http.settings import HttpSettings
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError


@given(st.integers(1, 20), st.floats(1.0, 1e5), st.lists(st.floats(0, 1e4), max_size=60))
def test_requests_are_counted_in_periods_that_do_not_overlap(
    most: int, period_s: float, gaps: list[float]
) -> None:
    rule, used, now_s, ends = QuotaRule(most, period_s), NOTHING_USED, 1.7e9, list[float]()
    for gap_s in gaps:
        now_s += gap_s
        used = count_request(used, rule, now_s)
        assert now_s < used.until_s <= now_s + period_s
        ends.append(used.until_s)
    starts = sorted(set(ends))
    assert all(later - earlier >= period_s * (1 - 1e-9) for earlier, later in pairwise(starts))


@given(st.integers(1, 30), st.floats(1.0, 600.0), st.integers(1, 3))
@example(2, 30.0802752901227, 1)  # the wait ends a quarter of a microsecond before the period
def test_no_more_than_the_quota_starts_in_a_period(most: int, period_s: float, at_once: int) -> None:
    rules = Politeness(delay_s=0.0, concurrency=at_once, quota=QuotaRule(most, period_s))
    host, now_s, starts = HostState(), 0.0, list[float]()
    while len(starts) < 3 * most:
        now_s = max(now_s, ready_s(host, rules))
        host = count_start(record_start(host, now_s), rules, now_s, 1.7e9 + now_s)
        starts.append(now_s)
        host = record_end(host, rules, now_s, "fine")
    # Three quotas need more than two periods; a period begins with its first request.
    assert all(starts[n + most] - starts[n] >= period_s * (1 - 1e-6) for n in range(0, 2 * most, most))


def test_a_quota_may_end_at_a_time_of_day() -> None:
    rule = parse_quota("1000/1d at 08:00", "Europe/Berlin")
    midnight_s = 1704067200.0  # 2024-01-01 in UTC, an hour later in Berlin
    assert rule.end_s(midnight_s) == midnight_s + 7 * 3600
    assert rule.end_s(midnight_s + 7 * 3600) == midnight_s + 31 * 3600


@pytest.mark.parametrize(
    "text", ["5000", "0/1h", "5000/0h", "10/1h at 08:00", "10/1d at 25:00", "x/1h", "5/1q"]
)
def test_a_wrong_quota_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="source 'web': quota: ") as caught:
        read_settings(HttpSettings, {"kind": "http", "name": "web", "quota": text})
    hints = {"10/1h at 08:00": "the period must be a day", "10/1d at 25:00": "there is no time 25:00"}
    assert hints.get(text, "") in str(caught.value)
