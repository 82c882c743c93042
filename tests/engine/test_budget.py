"""The budget's promise: at most rate·T + 1 requests in any window, whatever is asked, restarts included."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.engine.budget import Limits, Pacer, Reserve, resumed
from afresh.values.outcome import Spent

RATES = st.floats(1e-5, 1e4)
ASKS = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60)


def starts_of(pacer: Pacer, gaps: list[float], begin: float = 1000.0) -> list[float]:
    """When requests start that are asked for at these gaps, as early as the pacer lets them."""
    now, starts = begin, []
    for gap in gaps:
        now = pacer.ready_s(now + gap)
        pacer = pacer.started(now)
        starts.append(now)
    return starts


def fullest(starts: list[float], rate: float) -> float:
    """The largest excess of requests over rate·T + 1, over all windows that begin and end with a request."""
    return max(
        (last - first + 1) - rate * (starts[last] - starts[first]) - 1
        for first in range(len(starts))
        for last in range(first, len(starts))
    )


@settings(deadline=None, max_examples=150)
@given(RATES, ASKS)
def test_no_window_holds_more_than_its_share(rate: float, gaps: list[float]) -> None:
    starts = starts_of(Pacer(Limits(requests=rate)), gaps)
    assert fullest(starts, rate) <= 1e-9 * len(starts)


@settings(deadline=None, max_examples=80)
@given(RATES, RATES, ASKS)
def test_a_lower_budget_counts_at_once(rate: float, other: float, gaps: list[float]) -> None:
    pacer = Pacer(Limits(requests=rate)).started(1000.0)
    assert pacer.limited(Limits(requests=other)).ready_s(1000.0) >= 1000.0 + (1 - 1e-12) / other
    assert fullest(starts_of(pacer.limited(Limits(requests=other)), gaps), other) <= 1e-9 * len(gaps)


def test_idle_time_is_not_hoarded() -> None:
    starts = starts_of(Pacer(Limits(requests=10.0)), [0.0, 1000.0, 0.0, 0.0])
    assert starts[2] - starts[1] == pytest.approx(0.1)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 10_000)), min_size=2, max_size=40))
def test_debts_are_paid_before_the_next_request(asks: list[tuple[float, int]]) -> None:
    pacer, now, spent, first = Pacer(Limits(bytes=100.0)), 0.0, 0, None
    for gap, size in asks:
        now = pacer.ready_s(now + gap)
        first = now if first is None else first
        # Everything spent so far has been paid at the rate by the time the next request starts.
        assert spent <= 100.0 * (now - first) + 1e-6
        pacer = pacer.started(now).paid(now, Spent(bytes=size))
        spent += size


def test_the_dearest_debt_decides() -> None:
    pacer = Pacer(Limits(bytes=100.0, seconds=0.5, money=1.0)).paid(
        0.0, Spent(bytes=50, seconds=2.0, money=1.0)
    )
    assert pacer.ready_s(0.0) == 4.0


@settings(deadline=None, max_examples=100)
@given(st.floats(1e-3, 10), st.floats(0, 50), st.floats(0, 1), st.floats(0, 1000))
def test_a_restart_keeps_the_promise(rate: float, down_s: float, ahead_s: float, elapsed_s: float) -> None:
    """The last request was at 1000, the store was told that one may start until 1000 + ahead."""
    reserve = Reserve.unpack(Reserve(1000.0 + ahead_s).pack())
    now_s = 1000.0 + down_s
    pacer = resumed(Limits(requests=rate), reserve, now_s, elapsed_s)
    start_s = pacer.ready_s(elapsed_s) - elapsed_s + now_s
    assert start_s - 1000.0 >= 1 / rate - 1e-6
    assert start_s <= max(now_s, 1000.0 + ahead_s + 1 / rate) + 1e-6


def test_a_first_start_does_not_wait() -> None:
    assert resumed(Limits(requests=1e-6), Reserve(), 5.0, 7.0).ready_s(7.0) == 7.0


def test_a_clock_set_back_does_not_lock_the_budget() -> None:
    pacer = resumed(Limits(requests=1.0), Reserve(1e9, 1e9), 1000.0, 0.0)
    assert pacer.ready_s(0.0) == 86400.0
    assert math.isinf(Pacer(Limits()).started_s)
