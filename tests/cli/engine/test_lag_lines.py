"""``config check``, ``status`` and ``why`` say which target lags fit, and what is given up."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import write_settings

from afresh import Reported
from afresh.engine.app import open_engine
from afresh.engine.scheduler.observed_staleness import pack_reports
from afresh.engine.state_names import STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport

SETTINGS = """
[budget]
seconds = "300s/h"
[[source]]
name = "house"
kind = "view"
url = "postgresql:///nowhere"
target_lags = { "a" = "10m", "b" = "5m", "c" = "20s", "dayly" = "1h" }
[[source]]
name = "old"
kind = "view"
url = "postgresql:///nowhere"
objective = "freshness"
"""


def report(rate: float, cost_s: float) -> StalenessReport:
    return StalenessReport(5.0, True, time.time() - 60.0, True, rate, rate, rate, cost_s)


def fill(folder: Path) -> None:
    house = {"a": report(1 / 600, 2.0), "b": report(1 / 60, 5.0), "c": report(1 / 30, 8.0)}
    old = {"dear": report(1 / 5, 40.0), "cheap": report(1 / 600, 0.1)}
    with open_engine(folder) as engine:
        for source, reports in (("house", house), ("old", old)):
            engine.add(list(reports), source=source)
            engine.observe([Reported(key, time.time() - 99, content=b"", source=source) for key in reports])
            engine.store.state.set({STALENESS_REPORTS + source: pack_reports(reports)})


def test_targets_are_checked_beforehand(mirror: Afresh, tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)
    assert "not known yet" in mirror("config", "check").out
    fill(tmp_path)
    mistyped = mirror("config", "check", "--json")
    assert mistyped.code == 2
    told = json.loads(mistyped.out)
    words = "source house: no view is named like 'dayly'"
    assert (told["unmatched_target_lags"], told["problems"]) == ([words], [f"afresh.toml, line 8: {words}"])
    write_settings(tmp_path, SETTINGS.replace(', "dayly" = "1h"', ""))
    found = mirror("config", "check")
    assert found.code == 0
    checked = " ".join(found.out.split())
    assert "3 targets" in checked
    # To see a change takes 15 s, a refresh 8 s: more than 20 s. At 300 s/h 40 s are paid off in 8 minutes.
    assert "c no budget keeps its target of 20 s" in checked
    assert "b its target of 5 m does not fit" in checked
    assert "[budget] seconds =" in checked
    assert " a its target" not in checked
    told = json.loads(mirror("config", "check", "--json").out)
    assert told["target_lags"]["targets"] == 3
    assert [(each["item"], each["least_s"]) for each in told["target_lags"]["unfit"]] == [
        ("b", 20),
        ("c", 23),
    ]
    assert (told["unmatched_target_lags"], told["problems"]) == ([], [])
    status = json.loads(mirror("status", "--json").out)
    assert [each["item"] for each in status["target_lags"]["unfit"]] == ["b", "c"]
    objectives = {view["item"]: view["objective"] for view in status["views"]}
    assert objectives == {"a": "age", "b": "age", "c": "age", "cheap": "freshness", "dear": "freshness"}


def test_what_is_given_up_says_what_brings_it_back(mirror: Afresh, tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)
    fill(tmp_path)
    words = " ".join(mirror("why", "dear").out.split())
    assert "given up: refreshing it costs more than it gains" in words
    assert 'objective = "age" brings it back' in words
    assert "given up" not in mirror("why", "cheap").out


def test_a_fresh_view_of_unknown_rate_has_no_expected_time(mirror: Afresh, tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)
    fill(tmp_path)
    fresh = {"a": StalenessReport(5.0, False, cost_s=1.0)}
    with open_engine(tmp_path) as engine:
        engine.store.state.set({STALENESS_REPORTS + "house": pack_reports(fresh)})
    shown = " ".join(mirror("status").out.split())
    assert "next: when an engine runs and it changes; " in shown
    assert "never" not in shown


def test_the_longest_interval_is_shown_beside_what_is_given_up(mirror: Afresh, tmp_path: Path) -> None:
    write_settings(tmp_path, SETTINGS)
    fill(tmp_path)
    assert mirror("set", "dear", "--max-interval", "2h").code == 0
    status = " ".join(mirror("status").out.split())
    assert "but at least every 2 h (max_interval)" in status
    assert "refreshed at least every 2 h (max_interval); objective freshness" in status
    assert "at least every 2 h" in " ".join(mirror("why", "dear").out.split())
