"""The Sources page over real sources: hosts that lie or fail, views of PostgreSQL, records behind a box."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest
from markupsafe import escape
from playwright.sync_api import Browser, expect
from tests.engine.living import CLOCK
from tests.engine.warehouse import OF_A, House
from tests.servers.postgres import PostgresServer, running_postgres
from tests.servers.search_site import SearchSite, search_source
from tests.sources.searching import make_world
from tests.web.browser import PHONE, cut, page_of, serious
from tests.web.lying_hosts import BROKEN, CONSTANT, FUTURE, NOISY, SLOW, lying_hosts
from tests.web.serving import Client, dashboard

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.reading import read
from afresh.engine.state_names import NOTES
from afresh.sources.http.saved_state import read_state as read_http_notes
from afresh.sources.search.saved_state import read_state as read_search_notes

PATIENCE = 15
SAME = 0.05  # of rates learned within seconds, a moment later
LIARS = (NOISY, FUTURE, CONSTANT)

SETTINGS = """
[budget]
requests = "150/s"
[plan]
audit_share = 0.0
[[source]]
name = "hosts"
delay = 0
allow_private = true
[[source]]
name = "views"
kind = "view"
url = "{postgres}"
look_every = "0.1s"
[[source]]
name = "lost"
kind = "sql"
url = "postgresql://127.0.0.1:1/none"
query = "SELECT id, x FROM a"
key = "id"
"""


@dataclass(frozen=True)
class Stage:
    """A dashboard over everything, and what its API says of the sources."""

    web: Client
    port: int
    records: int

    def source(self, name: str) -> dict[str, Any]:
        """One source."""
        found: list[dict[str, Any]] = self.web.get("/api/v1/sources").json()["sources"]
        return next(source for source in found if source["name"] == name)

    def host(self, name: str) -> dict[str, Any]:
        """One host."""
        hosts: list[dict[str, Any]] = self.source("hosts")["hosts"]
        return next(host for host in hosts if host["name"] == f"{name}:{self.port}")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres() as found:
        yield found


def ran(engine: Engine, for_s: float) -> None:
    """Run in a thread of its own: the browser's driver has an event loop in this one."""
    thread = Thread(target=engine.run, kwargs={"for_s": for_s})
    thread.start()
    thread.join()


def has_learned(engine: Engine, port: int, records: int) -> bool:
    """Whether there is something to show; a busy machine takes longer."""
    kept = engine.store.state.get
    liars = read_http_notes(kept(NOTES + "hosts") or b"").untrusted_hosts()
    seen = read_search_notes(kept(NOTES + "papers") or b"").records
    views = {view.item: view for view in engine.status().views}
    refreshed = OF_A in views and views[OF_A].state == "fresh" and views[OF_A].rate_per_s > 0
    return liars >= {f"{host}:{port}" for host in LIARS} and len(seen) == records and refreshed


@pytest.fixture(scope="module")
def stage(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("sources")
    house = House(server, folder)
    world = make_world(folder, lasts_s=120.0, begin_s=CLOCK.now_s())
    with lying_hosts() as port, SearchSite(world.papers, CLOCK.now_s) as site:
        text = SETTINGS.format(postgres=server.url()) + search_source(site.url, world.relation)
        with make_engine(read(text), folder, seed=1) as engine:
            engine.add(f"http://{host}:{port}/x" for host in (NOISY, FUTURE, CONSTANT, BROKEN, SLOW))
            ran(engine, 1.5)
            house.write("a")
            for _ in range(PATIENCE):
                ran(engine, 1.5)
                if has_learned(engine, port, len(world.own)):
                    break
            with dashboard(engine) as web:
                yield Stage(web, port, len(world.own))


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


# The engine runs: two looks a moment apart may fall on either side of a plan, but not time and again.
@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("source", ["views", "papers", "hosts"])
def test_every_page_says_the_same_of_an_item(stage: Stage, source: str) -> None:
    views = {view["item"]: view for view in stage.source(source)["views"]}
    for listed in stage.web.get(f"/api/v1/items?source={source}&limit=5").json()["items"]:
        told = stage.web.get(f"/api/v1/item?{urlencode({'key': listed['key']})}").json()["item"]
        why = stage.web.engine.why(listed["key"])
        assert told["plan"] == listed["plan"]
        for name in ("rate_per_s", "rate_low_per_s", "rate_high_per_s", "interval_s"):
            assert told[name] == pytest.approx(listed[name], rel=SAME)
        if listed["interval_s"] is not None:
            assert listed["interval_s"] == pytest.approx(why.interval_s, rel=SAME)
        assert listed["rate_per_s"] == pytest.approx(why.rate_per_s, rel=SAME)
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


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_the_page_shows_it_all(browser: Browser, stage: Stage, look: str) -> None:
    options = {"viewport": PHONE} if look == "phone" else {"color_scheme": look}
    with page_of(browser, **options) as (page, ear):
        page.goto(stage.web.address + "sources")
        hosts = page.locator("[data-source=hosts]")
        expect(hosts).to_contain_text("its ETag changes while the content does not")
        expect(hosts).to_contain_text("2 s apart")
        expect(hosts).to_contain_text("left alone after")
        views = page.locator("[data-source=views]")
        expect(views).to_contain_text(OF_A)
        expect(views).to_contain_text("when it changes, about")
        papers = page.locator("[data-source=papers]")
        expect(papers).to_contain_text(f"{stage.records} of {stage.records} records seen (100.0 %)")
        expect(papers.get_by_role("region", name="Queries that bring the most")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert look != "phone" or cut(page) <= 0
        assert serious(page) == []
        assert ear.complaints == []
