"""The Now page's own figures: what of the budget was used, in the time that an engine ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.web.serving import engine_of

from afresh.engine.reporting.pulse import FIELDS, Pulse
from afresh.values.outcome import Spent
from afresh.web.now_view import fields, ran_s
from afresh.web.watching import Look, Watcher


@pytest.fixture
def look(tmp_path: Path) -> Look:
    with engine_of(tmp_path) as engine:
        return Watcher(engine).look()


def ran(look: Look, spans: list[tuple[float, float]], requests: int, *, stopped: bool = False) -> Look:
    """A look at an engine that ran in these spans of seconds ago, with a sign of life every ten."""
    now_s = look.time_s
    times = np.concatenate([now_s - np.append(np.arange(begin, end, -10.0), end) for begin, end in spans])
    course = np.zeros((times.size, len(FIELDS)))
    course[:, 0] = times
    begin, end = spans[-1]
    pulse = Pulse(now_s - end, now_s - begin, stopped=stopped)
    status = replace(look.status, spent_last_hour=Spent(requests=requests))
    return replace(look, pulse=pulse, course=course, status=status)


@pytest.mark.parametrize(
    ("spans", "requests", "share", "words"),
    [
        ([(13.0, 0.0)], 25, "96.2 %", "25 requests, 0 B in 13 s of running so far"),
        ([(7200.0, 0.0)], 7000, "97.2 %", "7,000 requests, 0 B in the last hour"),
        ([(3000.0, 2400.0), (30.0, 0.0)], 1200, "95.2 %", "1,200 requests, 0 B in 10.5 m of running so far"),
        (
            [(60.0, 0.0)],
            2400,
            "2000.0 %",
            "2,400 requests, 0 B in 1 m of running so far; the budget was larger before",
        ),
        ([(0.5, 0.0)], 1, "–", "1 request, 0 B in 0.5 s of running so far"),
    ],
)
def test_the_budget_used_is_that_of_the_time_it_ran(
    look: Look, spans: list[tuple[float, float]], requests: int, share: str, words: str
) -> None:
    found = fields(ran(look, spans, requests))
    assert (found["budget-share"], found["budget-detail"]) == (share, words)


def test_a_stopped_engine_is_not_said_to_leave_its_budget(look: Look) -> None:
    stopped = ran(look, [(900.0, 800.0)], 200, stopped=True)
    assert ran_s(stopped) == pytest.approx(100.0)
    assert fields(stopped)["budget-share"] == "100.0 %"


def test_before_any_engine_ran_there_is_nothing_to_say(look: Look) -> None:
    assert fields(look)["budget-share"] == "–"
    assert fields(look)["budget-detail"] == "0 requests, 0 B in the last hour"


def test_every_range_says_its_level(look: Look) -> None:
    assert fields(look)["freshness-range"].endswith("with 95 % probability")
