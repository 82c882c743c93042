"""A learned pace falls after refusals, rises slowly, and gets most of what a server allows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.http.pacing.pace import Pace, after_answer, fall, rise
from afresh.sources.http.politeness import HostState, Politeness, ready_s, record_end, record_start

PER_S = st.floats(1e-4, 1e4)
PACES = st.builds(Pace, PER_S, PER_S, st.integers(0, 1000))
RULES = Politeness(delay_s=0.0)


@dataclass
class Server:
    """Answers ``limit`` requests within any ``window_s`` seconds and refuses the others."""

    limit: int
    window_s: float
    retry_after_s: float | None = None
    answered: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    _counted: deque[float] = field(default_factory=deque)

    def answers(self, now_s: float) -> bool:
        while self._counted and self._counted[0] <= now_s - self.window_s:
            self._counted.popleft()
        taken = len(self._counted) < self.limit
        if taken:
            self._counted.append(now_s)
        (self.answered if taken else self.refused).append(now_s)
        return taken


def ask(server: Server, budget_per_s: float, for_s: float, rules: Politeness = RULES) -> HostState:
    """Ask as often as budget and politeness allow, for some seconds; each answer takes 1 ms."""
    host, now_s = HostState(), 0.0
    while now_s < for_s:
        host = record_start(host, now_s)
        if server.answers(now_s):
            host = record_end(host, rules, now_s + 0.001, "fine")
        else:
            host = record_end(host, rules, now_s + 0.001, "limited", server.retry_after_s, "429")
        now_s = max(now_s + 1.0 / budget_per_s, ready_s(host, rules))
    return host


@given(PACES, PER_S)
def test_a_refusal_lowers_the_pace_but_at_most_halves_it(pace: Pace, measured_per_s: float) -> None:
    after = fall(pace, min(measured_per_s, pace.per_s))
    assert 0.5 * pace.per_s <= after.per_s <= 0.85 * pace.per_s
    assert after.answers == 0


@given(PACES, st.floats(0, 1e5))
def test_good_answers_raise_the_pace_slowly_until_it_is_forgotten(pace: Pace, gap_s: float) -> None:
    after = after_answer(pace, gap_s)
    if after is None:
        assert rise(pace).per_s > 2 * pace.refused_per_s
    elif gap_s * pace.per_s > 1.5:
        assert after == pace
    else:
        assert 0 < after.per_s - pace.per_s <= 0.0025 + 1e-9
    # Up to the pace that was refused it takes a minute at that pace, and at least a hundred answers.
    r = pace.refused_per_s
    assert 0.15 * r / (rise(pace).per_s - pace.per_s) >= 0.9 * max(60 * r, 100)


@pytest.mark.parametrize("retry_after_s", [None, 0.0, 1.0])
@pytest.mark.parametrize(
    ("limit", "window_s", "budget_per_s"),
    [(6, 1.0, 6.3), (6, 1.0, 8.0), (6, 1.0, 80.0), (2, 1.0, 50.0), (20, 1.0, 30.0), (90, 15.0, 8.0)],
)
def test_most_of_the_limit_is_used_and_refusals_are_rare(
    limit: int, window_s: float, budget_per_s: float, retry_after_s: float | None
) -> None:
    server = Server(limit, window_s, retry_after_s)
    ask(server, budget_per_s, 300.0)
    late = [time_s for time_s in server.refused if time_s > 60.0]
    assert len(server.answered) >= 0.84 * 300.0 * limit / window_s
    assert len(late) <= 3 * 4


def test_a_host_that_refuses_everything_is_asked_ever_more_rarely() -> None:
    server = Server(0, 1.0, retry_after_s=1.0)
    ask(server, 8.0, 86400.0)
    assert len(server.refused) <= 16
    assert server.refused[1] < 1.1  # what the host asked for is taken as given, once


def test_refusals_of_requests_under_way_count_once() -> None:
    rules, host = Politeness(delay_s=0.0, concurrency=4), HostState()
    for start_s in (0.0, 0.1, 0.2, 0.3):
        host = record_start(host, start_s)
    for start_s in (0.0, 0.1, 0.2, 0.3):
        host = record_end(host, rules, 0.5, "limited", 2.0, "429", started_s=start_s)
    assert (host.failures, host.next_s, host.in_flight) == (1, 2.5, 0)
    assert host.pace == Pace(0.85, 1.0)
