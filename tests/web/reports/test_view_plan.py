"""The Plan and Now pages of views speak in seconds of refreshing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.web.serving import dashboard

from afresh import Reported
from afresh.engine.app import make_engine
from afresh.engine.scheduler.observed_staleness import pack_reports
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport
from afresh.values.items import ItemChange

SETTINGS = """
[budget]
seconds = "300s/h"
[[source]]
name = "house"
kind = "view"
url = "postgresql:///nowhere"
target_lags = { "a" = "10m", "c" = "1m" }
"""


def report(rate: float, cost_s: float) -> StalenessReport:
    return StalenessReport(5.0, True, 1.0, True, rate, rate, rate, cost_s)


def test_views_are_planned_in_seconds(tmp_path: Path) -> None:
    reports = {"a": report(1 / 600, 2.0), "b": report(1 / 60, 5.0), "c": report(1 / 30, 30.0)}
    with make_engine(parse_settings(SETTINGS), tmp_path, seed=1) as engine:
        engine.add(list(reports), source="house")
        engine.store.state.set({STALENESS_REPORTS + "house": pack_reports(reports)})
        with dashboard(engine) as web:
            plan, now = web.get("/plan").text, web.get("/").text
            found = web.get("/api/v1/plan").json()["views"]
    assert found["today"]["seconds_per_h"] == pytest.approx(300.0)
    assert [point["seconds_per_h"] for point in found["budgets"]] == [75.0, 150.0, 300.0, 600.0, 1200.0]
    ages = [point["age_s"] for point in found["budgets"]]
    assert ages == sorted(ages, reverse=True)
    assert (found["today"]["targets"], found["today"]["targets_kept"]) == (2, 1)
    # A change is seen after 7.5 s on average: however large the budget is, the age is not less.
    assert found["budgets"][-1]["age_s"] > (7.5**2 / 2) / 48.0
    assert "time until a change is seen" in plan
    assert found["budgets"][0]["targets_kept"] == 0  # a refresh of 30 s uses up 75 s an hour for 24 minutes
    assert "300 s an hour (today)" in plan
    assert "requests" not in plan
    assert "no random polls are made" in now
    assert "300 s of requests and refreshes an hour" in now
    assert "Seconds of refreshing per minute" in now


def test_the_longest_interval_is_shown_beside_what_is_given_up(tmp_path: Path) -> None:
    text = SETTINGS.replace('kind = "view"', 'kind = "view"\nobjective = "freshness"')
    reports = {"cheap": report(1 / 600, 0.1), "dear": report(1 / 5, 40.0)}
    with make_engine(parse_settings(text), tmp_path, seed=1) as engine:
        engine.add(list(reports), source="house")
        now_s = time.time()
        engine.observe([Reported(key, now_s - 99, content=b"", source="house") for key in reports])
        engine.set(["dear"], ItemChange(max_interval_s=7200.0))
        engine.store.state.set({STALENESS_REPORTS + "house": pack_reports(reports)})
        with dashboard(engine) as web:
            sources = web.get("/sources").text
    assert "given up: refreshing it costs more than it gains, but at least every 2 h" in sources
