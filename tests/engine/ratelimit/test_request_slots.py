"""The budget's promise: at most rate·T + burst requests in any window, however many workers share it."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.engine.ratelimit.gate import Gate
from afresh.engine.ratelimit.request_slots import UNCOUNTED_PER_S, Limits, Slots, window_size
from afresh.stores.shared_time import ReservationState
from afresh.values.outcome import Spent
from afresh.values.stored import RequestWindow

RATES = st.floats(1e-5, 1e4)
ASKS = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=60)
BEGIN = 1000.0


class Worker:
    """Starts requests as early as it may; ``late`` is how long after its reservation it looks again."""

    def __init__(self, rate: float, burst: float = 1.0) -> None:
        self.slots = Slots(Limits(requests=rate, burst=burst))
        self.last = RequestWindow(-math.inf, -math.inf)

    def start(
        self, pace: ReservationState, now: float, length_s: float, late_s: float
    ) -> tuple[float, ReservationState]:
        """The next start at ``now`` or later, and the pace after what it took to get there."""
        while (start := self.slots.ready_s(now)) == math.inf:
            limits = self.slots.limits
            count, slack_s = window_size(limits, length_s)
            window, pace = pace.reserve(count, limits.spacing_s, slack_s, now, limits.late_s)
            follows = window.first_s <= math.nextafter(self.last.until_s + limits.spacing_s, math.inf)
            joined = follows and not limits.late_s
            self.slots, self.last = self.slots.with_window(window, joined=joined), window
            now += late_s
        self.slots = self.slots.with_start(start)
        return start, pace


def fullest(starts: list[float], rate: float) -> float:
    """The largest excess of requests over rate·T + 1, over all windows that begin and end with a request."""
    times = np.sort(np.array(starts))
    level = np.arange(times.size) - rate * times
    return float(np.max(level - np.minimum.accumulate(level)))


@settings(deadline=None, max_examples=50)
@given(RATES, ASKS, st.floats(0.01, 5.0))
def test_no_window_holds_more_than_its_share(rate: float, gaps: list[float], length_s: float) -> None:
    worker, pace, now, starts = Worker(rate), ReservationState(), BEGIN, []
    for gap in gaps:
        now, pace = worker.start(pace, now + gap, length_s, 0.0)
        starts.append(now)
    assert fullest(starts, rate) <= 1e-9 * len(starts)


@settings(deadline=None, max_examples=50)
@given(
    st.floats(0.01, 1e4),
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(0.0, 2.0), st.floats(0.0, 0.015)), min_size=1, max_size=60
    ),
    st.floats(0.01, 2.0),
    st.one_of(st.just(1.0), st.floats(1.0, 50.0)),
)
def test_workers_keep_one_promise_together(
    rate: float, asks: list[tuple[int, float, float]], length_s: float, burst: float
) -> None:
    """Each asks in its own time, some minutes apart: they meet in the store alone, in whatever order."""
    workers, pace, now = [Worker(rate, burst) for _ in range(4)], ReservationState(), [BEGIN] * 4
    starts, latest = list[float](), BEGIN
    for who, gap, late_s in asks:
        asked = max(now[who] + gap, latest - 500.0)
        now[who], pace = workers[who].start(pace, asked, length_s, late_s)
        starts.append(now[who])
        latest = max(latest, asked)
    assert fullest(starts, rate) <= burst - 1.0 + 1e-5 * len(starts)


@settings(deadline=None, max_examples=50)
@given(st.floats(2.0, 200.0), st.lists(st.floats(0.0, 0.8), min_size=20, max_size=40))
def test_a_worker_that_is_late_makes_up_for_it(rate: float, gaps: list[float]) -> None:
    """It looks at the clock now and then, never later than the burst allows, and starts all that it may."""
    worker, pace, now, starts = Worker(rate, burst=rate + 1.0), ReservationState(), BEGIN, 0
    for gap in gaps:
        now += gap
        # A window of one slot at a time: none is reserved that is not used now.
        while pace.next_slot_s(1 / rate, now, worker.slots.limits.late_s) <= now:
            start, pace = worker.start(pace, now, 0.0, 0.0)
            assert start == now
            starts += 1
    assert starts >= rate * sum(gaps) - 1


@settings(deadline=None, max_examples=60)
@given(st.floats(0.02, 1e4), st.floats(0.0, 0.015))
def test_one_worker_alone_spends_it_all(rate: float, late_s: float) -> None:
    """Windows that follow each other are one: the slack of each costs nothing."""
    worker, pace, now = Worker(rate), ReservationState(), BEGIN
    starts: list[float] = []
    for _ in range(200):
        # As the engine does: the next window is asked for before its first request could start.
        ask = now if not starts else max(now, now + 1 / rate - 2 * late_s)
        now, pace = worker.start(pace, ask, 1.0, late_s)
        starts.append(now)
    assert (len(starts) - 1) / (starts[-1] - starts[0]) >= 0.99 * rate / (1 + rate * late_s)
    assert (starts[-1] - starts[0]) * rate >= 199 * (1 - 1e-9)


def test_a_window_that_somebody_came_before_is_not_joined() -> None:
    first, second = Worker(10.0), Worker(10.0)
    start, pace = first.start(ReservationState(), BEGIN, 1.0, 0.0)
    assert start == BEGIN
    start, pace = second.start(pace, BEGIN, 1.0, 0.0)
    assert start == pytest.approx(BEGIN + 0.9 + 0.022 + 0.1)
    for _ in range(9):
        start, pace = first.start(pace, start if start < BEGIN + 1 else BEGIN, 1.0, 0.0)
    assert start == pytest.approx(BEGIN + 0.9)
    start, _ = first.start(pace, start, 1.0, 0.0)
    assert start == pytest.approx(BEGIN + 2 * (0.9 + 0.022 + 0.1))


def test_idle_time_is_not_hoarded() -> None:
    worker, pace, now, starts = Worker(10.0), ReservationState(), BEGIN, []
    for gap in (0.0, 1000.0, 0.0, 0.0):
        now, pace = worker.start(pace, now + gap, 1.0, 0.0)
        starts.append(now)
    assert starts[2] - starts[1] == pytest.approx(0.1)


@settings(deadline=None, max_examples=50)
@given(RATES, RATES)
def test_a_lower_budget_counts_at_once(rate: float, other: float) -> None:
    slots = Slots(Limits(requests=rate)).with_window(RequestWindow(0.0, 1e6)).with_start(1000.0)
    lower = replace(slots, limits=Limits(requests=other))
    assert lower.ready_s(1000.0) >= min(1000.0 + (1 - 1e-12) / other, 1e6)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 10_000)), min_size=2, max_size=40))
def test_debts_are_paid_before_the_next_request(asks: list[tuple[float, int]]) -> None:
    limits = Limits(bytes=100.0)
    slots, now, spent, first = Slots(limits).with_window(RequestWindow(0.0, 1e9)), 0.0, 0, None
    for gap, size in asks:
        now = slots.ready_s(now + gap)
        first = now if first is None else first
        # Everything spent so far has been paid at the rate by the time the next request starts.
        assert spent <= 100.0 * (now - first) + 1e-6
        slots = slots.with_start(now).with_debt(now, limits.owed_s(Spent(bytes=size)))
        spent += size


def test_the_dearest_debt_decides() -> None:
    limits = Limits(bytes=100.0, seconds=0.5, money=1.0)
    assert limits.owed_s(Spent(bytes=50, seconds=2.0, money=1.0)) == 4.0


class Hands:
    """A clock, a line and claims for a gate: time stands still but for what is slept."""

    def __init__(self) -> None:
        self.now, self.pace, self.writes, self.owed, self.is_alone = 100.0, ReservationState(), 0, 0.0, True
        self.capped: dict[str, float] = {}
        self.given_back = list[tuple[RequestWindow, float]]()
        self.lost = 0

    def now_s(self) -> float:
        return self.now + 1e9

    def elapsed_s(self) -> float:
        self.now += 1e-5
        return self.now

    async def reserve(
        self, count: int, spacing_s: float, slack_s: float, late_s: float
    ) -> tuple[RequestWindow, float]:
        self.writes += 1
        window, self.pace = self.pace.reserve(count, spacing_s, slack_s, self.now_s(), late_s)
        return window, -1e9

    async def owe(self, owed_s: float) -> None:
        self.owed += owed_s

    async def give_back(self, window: RequestWindow, last_s: float) -> None:
        self.given_back.append((window, last_s))

    async def last_start_s(self, group: str) -> float:
        return self.capped.get(group, -math.inf)

    async def save_start(self, group: str, began_s: float) -> None:
        self.capped[group] = began_s

    def is_open(self, group: str) -> bool:
        self.lost -= bool(group)
        return self.lost < 0

    async def wait_until_open(self, group: str) -> None:
        del group


def admitted(hands: Hands, limits: Limits, asks: int, **caps: float) -> list[float]:
    """When requests start that are all asked for at once."""

    async def work() -> list[float]:
        gate, starts = Gate(hands, limits, hands, hands, caps), []
        for _ in range(asks):
            await gate.admit("a")
            starts.append(hands.now)
            gate.record_cost(Spent(bytes=10))
        await gate.close()
        return starts

    return asyncio.run(work())


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    made, sleep, ours = Hands(), asyncio.sleep, threading.get_ident()

    async def jump(seconds: float) -> None:
        if threading.get_ident() != ours:  # a server that runs beside this test, in a thread of its own
            await sleep(seconds)
            return
        made.now += seconds
        await sleep(0)

    monkeypatch.setattr("afresh.engine.ratelimit.gate.asyncio.sleep", jump)
    return made


def test_a_gate_writes_twice_a_second_and_spends_all(hands: Hands) -> None:
    starts = admitted(hands, Limits(requests=100.0), 500)
    assert fullest(starts, 100.0) <= 1e-6
    assert starts[-1] - starts[0] <= 1.02 * 499 / 100.0
    assert hands.writes <= 12


def test_a_budget_that_nobody_can_spend_costs_nothing(hands: Hands) -> None:
    admitted(hands, Limits(requests=UNCOUNTED_PER_S), 500)
    assert hands.writes == 0


def test_a_gate_beside_others_reserves_what_it_uses(hands: Hands) -> None:
    hands.is_alone = False
    admitted(hands, Limits(requests=100.0), 1)
    assert hands.pace.last_s - hands.now_s() < 0.2


def test_a_gate_tells_its_debts_to_the_store(hands: Hands) -> None:
    starts = admitted(hands, Limits(requests=100.0, bytes=100.0), 5)
    assert hands.owed == pytest.approx(0.5)
    assert starts[-1] - starts[0] == pytest.approx(0.4, rel=0.05)


def test_requests_of_one_poll_wait_for_each_other_s_debts_and_none_is_paid_twice(hands: Hands) -> None:
    async def work() -> list[float]:
        gate, starts = Gate(hands, Limits(requests=100.0, money=1.0), hands, hands), []
        for _ in range(3):
            for _hop in range(2):
                await gate.admit("a")
                starts.append(hands.now)
                gate.owe_ahead(Spent(requests=1, money=0.5))
            gate.record_cost(Spent(requests=2, money=1.0))
        await gate.close()
        return starts

    assert np.diff(asyncio.run(work())) == pytest.approx(0.5, rel=0.05)
    assert hands.owed == pytest.approx(3.0)


def test_what_requests_cost_says_how_many_may_start(hands: Hands) -> None:
    async def work() -> tuple[float, float]:
        gate = Gate(hands, Limits(requests=200.0, bytes=100.0), hands, hands)
        before = gate.starts_within(0.1)
        for _ in range(30):
            gate.record_cost(Spent(bytes=50))
        await gate.close()
        return before, gate.starts_within(0.1)

    assert asyncio.run(work()) == pytest.approx((20.0, 0.2), rel=0.01)


def test_a_group_lost_while_waiting_is_asked_for_again(hands: Hands) -> None:
    hands.lost = 1
    starts = admitted(hands, Limits(requests=100.0), 2)
    assert hands.lost < 0
    assert len(starts) == 2


def test_a_cap_spaces_the_requests_of_its_group(hands: Hands) -> None:
    starts = admitted(hands, Limits(requests=100.0), 4, a=2.0)
    assert np.diff(starts) == pytest.approx(0.5, rel=0.05)
    assert hands.capped["a"] == pytest.approx(starts[-1] + 1e9, abs=0.01)


def test_a_cap_counts_what_another_process_asked(hands: Hands) -> None:
    hands.capped["a"] = hands.now_s()
    begun: Callable[[], float] = hands.elapsed_s
    before = begun()
    (start,) = admitted(hands, Limits(requests=100.0), 1, a=0.1)
    assert start - before == pytest.approx(10.0, rel=0.01)
