"""The Sources page over real sources: hosts that lie or fail, views of PostgreSQL, records behind a box."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from markupsafe import escape
from tests.engine.warehouse import OF_A
from tests.stores.backends import poll
from tests.web.lying_hosts import BROKEN, CONSTANT, FUTURE, NOISY, SLOW
from tests.web.serving import NOW_S, dashboard, engine_of
from tests.web.stage import Stage

from afresh.engine.state_names import BACKOFFS, SOURCE_STATE

pytestmark = pytest.mark.waits(together="stage")  # test_browser.py looks at it too


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (NOISY, "its ETag changes while the content does not: no longer sent"),
        (FUTURE, "its Last-Modified is in the future: not believed as a date"),
        (CONSTANT, "its ETag stays while the content changes: no longer sent"),
    ],
)
def test_validators_that_lie_are_named(stage: Stage, host: str, words: str) -> None:
    assert words in stage.host(host)["validators"]
    assert words in stage.web.get("/sources").text


def test_how_a_host_is_treated(stage: Stage) -> None:
    slow, broken = stage.host(SLOW), stage.host(BROKEN)
    assert (slow["delay_s"], slow["robots"]) == (2.0, "robots.txt is followed")
    assert not slow["validators"]
    assert broken["robots"] == "no robots.txt"
    assert "503" in broken["problem"]
    assert broken["failures"] >= 1
    assert broken["rests_until_s"] > stage.now_s + 300
    assert stage.host(NOISY)["delay_s"] == 0.0


def test_views_say_how_stale_how_often_how_dear_and_what_is_next(stage: Stage) -> None:
    views = {view["item"]: view for view in stage.source("views")["views"]}
    assert set(views) == {"public.of_a", "public.of_b", "public.of_both"}
    view = views[OF_A]
    assert view["state"] == "fresh"
    assert view["refreshed_s"] > stage.now_s - 300
    assert 0 < view["cost_s"] < 10
    assert 0 <= view["low_per_s"] <= view["rate_per_s"] <= view["high_per_s"]
    assert view["next_s"] is not None
    assert views == {view["item"]: view for view in stage.web.get("/api/v1/status").json()["views"]}


@pytest.mark.parametrize("source", ["views", "papers", "hosts"])
def test_every_page_says_the_same_of_an_item(stage: Stage, source: str) -> None:
    views = {view["item"]: view for view in stage.source(source)["views"]}
    items = stage.web.get(f"/api/v1/items?source={source}&limit=5").json()["items"]
    assert items
    for listed in items:
        told = stage.web.get(f"/api/v1/item?{urlencode({'key': listed['key']})}").json()["item"]
        assert told.keys() == listed.keys()
        for name, value in listed.items():
            # Beliefs are in single precision, and where arrays lie in memory decides how sums are rounded.
            precision = 0.01 if name == "worth" else 1e-9
            number = isinstance(value, float)
            assert told[name] == (pytest.approx(value, rel=precision) if number else value), name
        why = stage.web.engine.why(listed["key"])
        rates = listed["rate_per_s"], listed["rate_low_per_s"], listed["rate_high_per_s"]
        assert rates == pytest.approx((why.rate_per_s, why.rate_low, why.rate_high), rel=1e-9)
        interval_s = why.interval_s if math.isfinite(why.interval_s) else None
        assert listed["interval_s"] == (interval_s and pytest.approx(interval_s, rel=1e-9))
        if view := views.get(listed["key"]):
            assert listed["plan"] == view["state"]
            assert listed["rate_per_s"] == pytest.approx(view["rate_per_s"], rel=1e-9)


def test_searches_say_what_they_reached_and_by_which_queries(stage: Stage) -> None:
    search = stage.source("papers")["search"]
    assert search["records"] == stage.records
    assert search["seen"] == stage.records
    assert 0.5 * stage.records < search["by_queries"] <= stage.records
    first = search["shown"][0]
    assert first["brings"] >= 2
    assert first["total"] >= first["brings"]
    assert first["asked"] >= 1
    assert {scale["attribute"] for scale in search["scales"]} == {"authors", "title"}
    for scale in search["scales"]:
        assert scale["low"] <= scale["times"] <= scale["high"]
    assert stage.source("views")["search"] is None


def test_a_source_out_of_reach_says_why(stage: Stage) -> None:
    problem = stage.source("lost")["problem"]
    assert "Connection refused" in problem
    assert escape(problem) in stage.web.get("/sources").text


def test_sources_are_listed_without_secrets(tmp_path: Path) -> None:
    more = 'headers = {Authorization = "Bearer hush-hush"}\n'
    with engine_of(tmp_path, more) as engine, dashboard(engine) as web:
        for path in ("/api/v1/sources", "/sources"):
            answer = web.get(path)
            assert answer.status == 200
            assert "hush" not in answer.text
        assert [source["name"] for source in web.get("/api/v1/sources").json()["sources"]] == ["web"]


def test_hosts_left_alone_are_said_in_words(tmp_path: Path) -> None:
    rest = ["a.example", NOW_S + 600.0, 3, "429 Too Many <b>Requests</b>"]
    with engine_of(tmp_path) as engine:
        engine.add(["https://a.example/", "https://b.example/"])
        engine.store.state.set({BACKOFFS + "web": json.dumps([rest]).encode()})
        with dashboard(engine) as web:
            hosts = web.get("/api/v1/sources").json()["sources"][0]["hosts"]
            assert [host["name"] for host in hosts] == ["a.example", "b.example"]
            assert hosts[0]["problem"] == rest[3]
            assert hosts[0]["rests_until_s"] == rest[1]
            assert hosts[1]["rests_until_s"] is None
            for path in ("/", "/sources"):
                page = web.get(path).text
                assert "429 Too Many &lt;b&gt;Requests" in page
                assert "in 10 m" in page


def test_a_host_is_not_blamed_for_what_one_of_its_items_does(tmp_path: Path) -> None:
    told: dict[str, Any] = {"observation": None, "problem": "404 Not Found", "failures": 2}
    with engine_of(tmp_path) as engine:
        engine.add(f"https://a.example/{page}" for page in range(154))
        engine.add(["https://down.example/"])
        poll(engine.store, "https://a.example/7", 1000.0, due_s=2000.0, **told)
        poll(engine.store, "https://down.example/", 1000.0, due_s=2000.0, **told)
        with dashboard(engine) as web:
            (source,) = web.get("/api/v1/sources").json()["sources"]
            a, down = source["hosts"]
            assert (a["name"], a["problem"]) == ("a.example", "")
            assert (a["failing"], a["failing_of"]) == (1, "404 Not Found")
            assert (down["name"], down["failing"]) == ("down.example", 1)
            page = web.get("/sources").text
            assert '<span class="warn">1 of 154 items: 404 Not Found</span>' in page
            assert '<span class="bad">all of its items: 404 Not Found</span>' in page


def test_of_many_hosts_those_that_lie_are_shown(tmp_path: Path) -> None:
    noisy = [[0.0, 9.0], [0.0, 0.0], [0.0, 0.0], ""]
    notes = {"v": 1, "robots": [], "trust": {"liar.example": noisy}}
    with engine_of(tmp_path) as engine:
        engine.add(f"https://{host}.example/{page}" for host in range(60) for page in range(2))
        engine.add(["https://liar.example/"])
        engine.store.state.set({SOURCE_STATE + "web": json.dumps(notes).encode()})
        with dashboard(engine) as web:
            source = web.get("/api/v1/sources").json()["sources"][0]
            assert source["hosts"][0]["name"] == "liar.example"
            assert source["hosts"][0]["validators"]
            assert source["more_hosts"] == 11
