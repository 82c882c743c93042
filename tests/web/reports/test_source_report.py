"""The Sources page over real sources: hosts that lie or fail, views of PostgreSQL, records behind a box."""

from __future__ import annotations

import math
from urllib.parse import urlencode

import pytest
from markupsafe import escape
from tests.engine.living import CLOCK
from tests.engine.warehouse import OF_A
from tests.web.lying_hosts import BROKEN, CONSTANT, FUTURE, NOISY, SLOW
from tests.web.stage import Stage

pytestmark = pytest.mark.xdist_group("browser")  # test_browser.py looks at the same stage


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
    assert broken["rests_until_s"] > CLOCK.now_s() + 300
    assert stage.host(NOISY)["delay_s"] == 0.0


def test_views_say_how_stale_how_often_how_dear_and_what_is_next(stage: Stage) -> None:
    views = {view["item"]: view for view in stage.source("views")["views"]}
    assert set(views) == {"public.of_a", "public.of_b", "public.of_both"}
    view = views[OF_A]
    assert view["state"] == "fresh"
    assert view["refreshed_s"] > CLOCK.now_s() - 300
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
        assert told == listed
        why = stage.web.engine.why(listed["key"])
        assert (listed["rate_per_s"], listed["rate_low_per_s"], listed["rate_high_per_s"]) == (
            why.rate_per_s,
            why.rate_low,
            why.rate_high,
        )
        assert listed["interval_s"] == (why.interval_s if math.isfinite(why.interval_s) else None)
        if view := views.get(listed["key"]):
            assert (listed["plan"], listed["rate_per_s"]) == (view["state"], view["rate_per_s"])


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
