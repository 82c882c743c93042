"""Requests to a host keep their distance, whatever happens."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.politeness import (
    HostCondition,
    HostState,
    Politeness,
    ready_s,
    record_end,
    record_start,
)

CONDITIONS: st.SearchStrategy[HostCondition] = st.sampled_from(["fine", "busy", "down"])

RULES = st.builds(
    Politeness,
    delay_s=st.floats(0, 100),
    concurrency=st.integers(1, 3),
    first_rest_s=st.floats(0.1, 100),
    longest_rest_s=st.floats(100, 1e5),
)

STEPS = st.lists(
    st.tuples(st.booleans(), CONDITIONS, st.none() | st.floats(0, 1e7), st.floats(0, 300)), max_size=40
)


@given(RULES, st.floats(0, 50), STEPS)
@settings(deadline=None)
def test_starts_keep_the_delay_and_never_exceed_the_number_at_once(
    rules: Politeness, crawl_delay_s: float, steps: list[tuple[bool, HostCondition, float | None, float]]
) -> None:
    host, now_s = HostState(crawl_delay_s=crawl_delay_s), 0.0
    starts: list[float] = []
    for start, verdict, retry_after_s, wait_s in steps:
        if start and ready_s(host, rules) != float("inf"):
            now_s = max(now_s, ready_s(host, rules))
            host = record_start(host, now_s)
            starts.append(now_s)
        elif host.in_flight:
            host = record_end(host, rules, now_s, verdict, retry_after_s)
        assert 0 <= host.in_flight <= rules.concurrency
        now_s += wait_s
    delay_s = max(rules.delay_s, crawl_delay_s)
    assert all(later - earlier >= delay_s * (1 - 1e-12) - 1e-9 for earlier, later in pairwise(starts))


@given(RULES, st.integers(1, 200))
@settings(deadline=None)
def test_back_offs_double_up_to_the_longest_and_end_with_one_good_answer(
    rules: Politeness, failures: int
) -> None:
    host, now_s = HostState(), 0.0
    rests = []
    for _ in range(failures):
        host = record_end(record_start(host, now_s), rules, now_s, "down")
        rests.append(ready_s(host, rules) - now_s)
        now_s = ready_s(host, rules)
    firsts = [rules.first_rest_s * 2**k for k in range(min(failures, 30))]
    expected = [max(min(rest, rules.longest_rest_s), rules.delay_s) for rest in firsts]
    assert rests[:30] == pytest.approx(expected)
    assert rests[-1] <= max(rules.longest_rest_s, rules.delay_s) * (1 + 1e-9)
    well = record_end(record_start(HostState(failures=failures), 0.0), rules, 0.0, "fine")
    assert (well.failures, ready_s(well, rules)) == (0, rules.delay_s)


@given(RULES, st.floats(0, 1e9))
@settings(deadline=None)
def test_retry_after_is_respected_up_to_the_longest_back_off(rules: Politeness, asked_s: float) -> None:
    host = record_end(record_start(HostState(), 0.0), rules, 0.0, "busy", asked_s)
    assert host.next_s >= min(asked_s, rules.longest_rest_s)
    assert host.next_s <= max(rules.longest_rest_s, rules.delay_s)
