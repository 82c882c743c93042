"""What is said of an item is the same on every page, and does not contradict itself."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.stores.backends import poll
from tests.web.serving import NOW_S, Client, dashboard, engine_of, filled

from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting.pulse import Pulse
from afresh.engine.scheduler.observed_staleness import pack_reports
from afresh.engine.state_names import PULSE, SHADOW_PRICE, STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport
from afresh.values.items import ItemChange

STATES = {
    name: f"https://a.example/{name.replace(' ', '-')}"
    for name in ("fresh", "stale", "left alone", "unknown")
}
NEVER = "https://a.example/never"


def seen(engine: Engine) -> None:
    """Items whose staleness is seen without polls, one in each state, and one that is polled as usual."""
    engine.add([*STATES.values(), "https://a.example/usual"])
    engine.observe(
        Reported(key, NOW_S - age_s, changed=age_s < 200)
        for age_s in (300.0, 100.0)
        for key in (*STATES.values(), "https://a.example/usual")
    )
    known: dict[str, Any] = {"rate_per_s": 0.01, "low_per_s": 0.005, "high_per_s": 0.02, "cost_s": 0.1}
    often: dict[str, Any] = {"rate_per_s": 0.216, "low_per_s": 0.145, "high_per_s": 0.324, "cost_s": 900.0}
    evidence = {
        STATES["fresh"]: StalenessReport(1.0, changed=False, **known),
        STATES["stale"]: StalenessReport(1.0, changed=True, stale_since_s=NOW_S - 40, **known),
        STATES["left alone"]: StalenessReport(1.0, changed=True, stale_since_s=NOW_S - 90, **often),
        STATES["unknown"]: StalenessReport(1.0, changed=False, known=False, **known),
    }
    engine.store.state.set({STALENESS_REPORTS + "web": pack_reports(evidence)})


def item_of(web: Client, key: str) -> Any:
    return web.get(f"/api/v1/item?{urlencode({'key': key})}").json()


def page_of_item(web: Client, key: str) -> str:
    return " ".join(web.get(f"/item?{urlencode({'key': key})}").text.split())


@pytest.mark.parametrize("state", STATES)
def test_what_is_seen_without_polls_is_said_the_same_everywhere(tmp_path: Path, state: str) -> None:
    with engine_of(tmp_path) as engine:
        seen(engine)
        with dashboard(engine) as web:
            (source,) = web.get("/api/v1/sources").json()["sources"]
            view = next(one for one in source["views"] if one["item"] == STATES[state])
            assert view["state"] == state
            listed = {one["key"]: one for one in web.get("/api/v1/items").json()["items"]}[STATES[state]]
            told = item_of(web, STATES[state])
            why = engine.why(STATES[state])
            for found in (listed, told["item"]):
                assert found["plan"] == state
                for ours, theirs in (("rate", "rate"), ("rate_low", "low"), ("rate_high", "high")):
                    assert found[f"{ours}_per_s"] == view[f"{theirs}_per_s"]
                if state != "unknown":  # that is guessed from polls, as of any other
                    assert found["interval_s"] == (why.interval_s if math.isfinite(why.interval_s) else None)
                    assert found["fresh"] == float(state == "fresh") == why.fresh_now
            assert (why.interval_s == math.inf) == (state == "left alone")
            assert (told["curves"] is None) == (state != "unknown")  # what is seen is not guessed
            page = page_of_item(web, STATES[state])
            assert ("fresh-chart" in page) == (state == "unknown")
            assert ("Seen without polls" in page) == (state != "unknown")
            shown = "given up" if state == "left alone" else state
            assert f'data-plan="{state}">{shown}<' in page
            assert ("Why so often" in page) == (state != "left alone")
            assert ("Why it is left alone" in page) == (state == "left alone")
            assert ("next never" in page) is False


def test_list_page_and_why_agree_beside_an_engine_of_another_budget(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        engine.store.state.set({PULSE: Pulse(NOW_S, NOW_S - 60.0, budget_per_s=0.1).pack()})
        with dashboard(engine) as web:
            # However many items are shown beside it, the same is said of each.
            for path in ("/api/v1/items?limit=2", "/api/v1/items?limit=1&text=042"):
                for listed in web.get(path).json()["items"]:
                    assert item_of(web, listed["key"])["item"] == listed
                    why = engine.why(listed["key"])
                    assert listed["worth"] == why.marginal
                    assert listed["fresh"] == why.fresh_now
                    assert listed["interval_s"] == (why.interval_s if math.isfinite(why.interval_s) else None)


def failed(engine: Engine, key: str, problem: str, times: int) -> None:
    """Polls of it that failed; the next is in an hour."""
    told: dict[str, Any] = {
        "observation": None,
        "problem": problem,
        "failures": times,
        "due_s": NOW_S + 3600.0,
    }
    poll(engine.store, key, NOW_S - 60.0, **told)


def test_an_item_without_a_copy_has_no_curve_and_says_that_its_polls_failed(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        engine.add([NEVER])
        assert "It has not been polled yet" in page_of_item(web, NEVER)
        failed(engine, NEVER, "503 Service Unavailable", 2)
        page = page_of_item(web, NEVER)
        assert "2 failures in a row" in page
        assert "not been polled yet" not in page
        assert "No poll has succeeded yet: 2 failed, the last with 503 Service Unavailable" in page
        assert "There is no copy yet: " in page
        for chart in ("fresh-chart", "worth-chart"):
            assert chart not in page
        assert item_of(web, NEVER)["curves"] is None


@pytest.mark.parametrize(
    "key", ["https://a.example/$(touch%20x)", "https://a.example/;reboot", "https://a.example/'&b"]
)
def test_commands_that_are_shown_can_be_pasted(tmp_path: Path, key: str) -> None:
    with engine_of(tmp_path) as engine:
        engine.add([key])
        failed(engine, key, "503", 1)
        told = ["; ".join(engine.why(key).reasons)]
        engine.set([key], ItemChange(status="paused"))
        told.append("; ".join(engine.why(key).reasons))
        for words in told:
            command = words.partition("afresh set ")[2]
            assert command
            assert shlex.split(command.partition(" --")[0]) == [key]


def test_a_plan_that_is_not_settled_yet_says_so(tmp_path: Path) -> None:
    key = "https://a.example/"
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        engine.add([key])
        engine.observe(Reported(key, NOW_S - age_s, changed=True) for age_s in (500.0, 400.0, 300.0))
        worth = engine.why(key).marginal
        for threshold, settled in ((worth / 30, False), (worth, True)):
            engine.store.state.set({SHADOW_PRICE: repr(threshold).encode()})
            assert ("Not settled yet" in page_of_item(web, key)) != settled


def test_dropped_and_futile_are_told_apart_and_counted_alike(tmp_path: Path) -> None:
    with engine_of(tmp_path, 'benefit = "0.00001/s"\n') as engine:
        filled(engine)
        with dashboard(engine) as web:
            plans = Counter(
                item["plan"]
                for text in ("/0", "/1", "plain", "script", "never")
                for item in web.get(f"/api/v1/items?text={text}&limit=200").json()["items"]
            )
            status = web.get("/api/v1/status").json()
            assert plans.total() == status["items"]
            assert plans["futile"] > 0
            assert plans["dropped"] == status["dropped"]
            # Two were polled twice only: whether they pay is a matter of their median or of their mean.
            assert plans["futile"] == pytest.approx(status["money"]["futile"], abs=2)
            assert f"{status['dropped']} given up, {status['money']['futile']} futile" in web.get("/").text
            futile = next(
                item for item in web.get("/api/v1/items").json()["items"] if item["plan"] == "futile"
            )
            page = page_of_item(web, futile["key"])
            assert "Why it is left alone" in page
            assert "no poll of it pays" in page
