"""The figures of the dashboard: each is on the page and in the metrics, and the budget used is right."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.web.serving import Client, engine_of

from afresh.engine.reporting.pulse import FIELDS, Pulse
from afresh.values.outcome import Spent
from afresh.web.reports.dashboard_figures import CARDS, FIGURES, page_texts, running_s
from afresh.web.snapshot_cache import StatusSnapshot, read_snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> StatusSnapshot:
    with engine_of(tmp_path) as engine:
        return read_snapshot(engine)


def with_runs(
    snapshot: StatusSnapshot, spans: list[tuple[float, float]], requests: int, *, stopped: bool = False
) -> StatusSnapshot:
    """Return a snapshot of an engine that ran in these spans of seconds ago, seen every ten seconds."""
    now_s = snapshot.time_s
    times = np.concatenate([now_s - np.append(np.arange(begin, end, -10.0), end) for begin, end in spans])
    course = np.zeros((times.size, len(FIELDS)))
    course[:, 0] = times
    begin, end = spans[-1]
    pulse = Pulse(now_s - end, now_s - begin, stopped=stopped)
    status = replace(snapshot.status, spent_last_hour=Spent(requests=requests))
    return replace(snapshot, pulse=pulse, course=course, status=status)


@pytest.mark.parametrize(
    ("spans", "requests", "share", "words"),
    [
        ([(13.0, 0.0)], 25, "96.2 %", "25 requests, 0 B in 13 s of running so far"),
        ([(7200.0, 0.0)], 7000, "97.2 %", "7,000 requests, 0 B in the last hour"),
        (
            [(3000.0, 2400.0), (30.0, 0.0)],
            1200,
            "95.2 %",
            "1,200 requests, 0 B in 10.5 min of running so far",
        ),
        (
            [(60.0, 0.0)],
            2400,
            "2000.0 %",
            "2,400 requests, 0 B in 1 min of running so far; the budget was larger before",
        ),
        ([(0.5, 0.0)], 1, "–", "1 request, 0 B in 0.5 s of running so far"),
    ],
)
def test_the_budget_used_is_that_of_the_time_it_ran(
    snapshot: StatusSnapshot, spans: list[tuple[float, float]], requests: int, share: str, words: str
) -> None:
    found = page_texts(with_runs(snapshot, spans, requests))
    assert (found["budget-share"], found["budget-detail"]) == (share, words)


def test_a_stopped_engine_is_not_said_to_leave_its_budget(snapshot: StatusSnapshot) -> None:
    stopped = with_runs(snapshot, [(900.0, 800.0)], 200, stopped=True)
    assert running_s(stopped) == pytest.approx(100.0)
    assert page_texts(stopped)["budget-share"] == "100.0 %"


def test_before_any_engine_ran_there_is_nothing_to_say(snapshot: StatusSnapshot) -> None:
    assert page_texts(snapshot)["budget-share"] == "–"
    assert page_texts(snapshot)["budget-detail"] == "0 requests, 0 B in the last hour"


def test_every_range_says_its_level(snapshot: StatusSnapshot) -> None:
    assert page_texts(snapshot)["freshness-range"].endswith("with 95 % probability")


def test_every_figure_is_on_the_page_and_in_the_metrics(web: Client) -> None:
    page, metrics = web.get("/").text, web.get("/metrics").text
    texts = page_texts(read_snapshot(web.engine))
    for card in CARDS:
        assert f'<p class="big" data-field="{card.figure}">{texts[card.figure]}</p>' in page
        assert card.detail.format_map(texts) == re.sub("<[^>]*>", "", _detail_of(page, card.title))
    for figure in FIGURES:
        assert figure.name in texts or not figure.name
        assert f"\nafresh_{figure.metric} " in metrics or not figure.metric


def _detail_of(page: str, title: str) -> str:
    return page.partition(f"<h2>{title}</h2>")[2].partition('<p class="soft">')[2].partition("</p>")[0]
