"""The figures of the dashboard: each is on the page and in the metrics, and the budget used is right."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.web.serving import Client, engine_of

from afresh.cli.engine.status_commands import _describe_budget
from afresh.engine.reporting.pulse import Pulse
from afresh.values.outcome import Spent
from afresh.web.reports.dashboard_figures import CARDS, FIGURES, page_texts
from afresh.web.snapshot_cache import StatusSnapshot, read_snapshot


@pytest.fixture
def snapshot(tmp_path: Path) -> StatusSnapshot:
    with engine_of(tmp_path) as engine:
        return read_snapshot(engine)


def with_run(snapshot: StatusSnapshot, run: Pulse, *, seconds_per_s: float = math.inf) -> StatusSnapshot:
    """Return a snapshot of an engine with this run, and with 307 requests in the last hour."""
    limits = replace(snapshot.status.limits, seconds=seconds_per_s)
    spent = Spent(requests=307, bytes=1000, seconds=20.0)
    status = replace(snapshot.status, run=run, limits=limits, spent_last_hour=spent, budget_per_s=2.0)
    return replace(snapshot, pulse=run, status=status)


def run_of(snapshot: StatusSnapshot, **more: Any) -> Pulse:
    """Return the pulse of an engine that has run for 100 s with a budget of 2/s."""
    now_s = snapshot.time_s
    return replace(Pulse(now_s, now_s - 100.0, requests=144, budget_per_s=2.0), **more)


LATELY = "307 requests, 1 kB in the last hour"


@pytest.mark.parametrize(
    ("more", "share", "words"),
    [
        ({}, "72.0 %", f" by this run; not used: 28% for other reasons; {LATELY}"),
        ({"requests": 210}, "100.0 %", f" by this run; {LATELY}"),  # the rest came from the burst
        (
            {"unspent": {"hosts": 50, "machine": 6, "lent": 1}},
            "72.0 %",
            f" by this run; not used: 25% hosts at their limit, 3% machine or answers too slow; {LATELY}",
        ),
        (
            {"stopped": True, "unspent": {"hosts": 56}},
            "72.0 %",
            f" by the last run; not used: 28% hosts at their limit; {LATELY}",
        ),
        (
            {"budget_per_s": 4.0, "unspent": {"hosts": 256}},
            "36.0 %",
            f" by this run, which had 4/s; not used: 64% hosts at their limit; {LATELY}",
        ),
        ({"budget_per_s": 0.001}, "–", f"; {LATELY}"),  # not even one request was allowed so far
    ],
)
def test_the_budget_used_is_that_of_the_run(
    snapshot: StatusSnapshot, more: dict[str, Any], share: str, words: str
) -> None:
    found = page_texts(with_run(snapshot, run_of(snapshot, **more)))
    assert (found["budget-share"], found["budget-detail"]) == (share, words)


def test_the_page_and_the_command_say_the_same_of_the_budget(snapshot: StatusSnapshot) -> None:
    run = run_of(snapshot, unspent={"hosts": 56})
    line = _describe_budget(replace(with_run(snapshot, run).status, time_s=snapshot.time_s), 2.0)
    assert "72% used by this run (not used: 28% hosts at their limit); 307 requests in the last hour" in line


def test_seconds_count_where_the_budget_limits_them(snapshot: StatusSnapshot) -> None:
    run = run_of(snapshot, seconds=5.0, unspent_seconds={"nothing": 4.0, "hosts": 1.0})
    found = page_texts(with_run(snapshot, run, seconds_per_s=0.1))
    assert found["budget-share"] == "50.0 %"
    unused = "40% no stale view worth a refresh, 10% waits for the database"
    assert found["budget-detail"] == f" by this run; not used: {unused}; 20 s in the last hour"


def test_before_any_engine_ran_there_is_nothing_to_say(snapshot: StatusSnapshot) -> None:
    assert page_texts(snapshot)["budget-share"] == "–"
    assert page_texts(snapshot)["budget-detail"] == "; 0 requests, 0 B in the last hour"


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
