"""The API answers what the engine knows, pages through it, and changes it with the token alone."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.web.serving import HOSTILE, NOW_S, PLAIN, TOKEN, Client, dashboard, engine_of, two_shops

from afresh.engine.external_polls import Reported
from afresh.engine.reporting.pulse import Pulse
from afresh.engine.state_names import PULSE


def item_path(key: str, path: str = "/api/v1/item") -> str:
    return f"{path}?{urlencode({'key': key})}"


def test_status_says_what_the_engine_says(web: Client) -> None:
    found, status = web.get("/api/v1/status").json(), web.engine.status()
    assert found["items"] == status.items == 123
    assert found["state"] == "none"
    assert found["time_s"] == status.time_s
    assert found["freshness"]["value"] == status.freshness.value
    assert found["uniform_needs"]["value"] == status.uniform_needs.value
    assert found["audited"] == {"value": None, "low": 0.0, "high": 1.0, "n": 0} or found["audited"]["n"] == 0
    assert found["absorbed_per_s"] == pytest.approx(2.0)


@pytest.mark.parametrize("sort", ["id", "key", "weight", "due", "changed", "failures"])
@pytest.mark.parametrize("descending", ["false", "true"])
def test_paging_meets_every_item_once(web: Client, sort: str, descending: str) -> None:
    seen: list[str] = []
    cursor = None
    while True:
        asked = {"sort": sort, "descending": descending, "limit": "50"} | (
            {"cursor": cursor} if cursor else {}
        )
        page = web.get(f"/api/v1/items?{urlencode(asked)}").json()
        seen += [item["key"] for item in page["items"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 123


def test_search_finds_by_any_part(web: Client) -> None:
    found = web.get("/api/v1/items?text=other.ex").json()["items"]
    assert [item["key"] for item in found] == ["https://other.example/never"]
    assert found[0]["plan"] == "new"
    assert found[0]["polled_s"] is None


def test_one_item_is_explained(web: Client) -> None:
    found = web.get(item_path(PLAIN)).json()
    assert [version["number"] for version in found["versions"]] == [2, 1]
    assert [poll["changed"] for poll in found["polls"]][-1] is True
    fresh, worth = found["curves"]["fresh"], found["curves"]["worth"]
    assert fresh[0] == pytest.approx(1.0)
    assert fresh == sorted(fresh, reverse=True)
    assert worth[0] == pytest.approx(0.0)
    assert worth[-1] > found["threshold"] > 0
    low, rate, high = (found["item"][name] for name in ("rate_low_per_s", "rate_per_s", "rate_high_per_s"))
    assert 0 < low < high
    assert rate > low
    assert found["reasons"]


def test_a_copy_is_a_download_and_never_a_page(web: Client) -> None:
    answer = web.get(item_path(HOSTILE, "/api/v1/copy"))
    assert answer.body == b"first\n<img src=x onerror=alert(1)>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert web.get(item_path(HOSTILE, "/api/v1/copy") + "&version=1").body == b"first\nline"
    assert web.get(item_path(HOSTILE, "/api/v1/copy") + "&version=99").status == 404


def test_a_cursor_of_another_query_is_refused(web: Client) -> None:
    cursor = web.get("/api/v1/items?sort=key&limit=5").json()["cursor"]
    assert web.get(f"/api/v1/items?sort=key&limit=5&{urlencode({'cursor': cursor})}").status == 200
    answer = web.get(f"/api/v1/items?sort=due&limit=5&{urlencode({'cursor': cursor})}")
    assert answer.status == 400
    assert "another query" in answer.problem()


def test_actions_change_the_store(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        added = web.ask("POST", "/api/v1/items", {"keys": ["https://a.example/"], "weight": 2}, token=TOKEN)
        assert added.json() == {"new": 1, "problems": {}}
        path = item_path("https://a.example/")
        assert web.ask("PATCH", path, {"weight": 5}, token=TOKEN).json()["weight"] == 5
        assert web.ask("PATCH", path, {"status": "paused"}, token=TOKEN).json()["status"] == "paused"
        refused = web.ask("POST", item_path("https://a.example/", "/api/v1/item/poll"), token=TOKEN)
        assert refused.status == 409
        assert "paused" in refused.problem()
        assert web.get(path).json()["item"]["status"] == "paused"
        page = web.get(item_path("https://a.example/", "/item")).text
        assert "while it is paused" in page
        assert "<time data-due" not in page
        assert web.ask("PATCH", path, {"status": "active"}, token=TOKEN).status == 200
        polled = web.ask("POST", item_path("https://a.example/", "/api/v1/item/poll"), token=TOKEN)
        assert polled.json()["status"] == "active"
        assert polled.json()["due_s"] == NOW_S
        asked = web.ask("PUT", "/api/v1/budget", {"requests": "7/s"}, token=TOKEN)
        assert asked.json() == {"requests_per_s": 7.0}
        assert engine.current().budget.requests == 7.0
        keys = ["https://a.example/", "https://b.example/", "https://a.example/"]
        noticed = web.ask("POST", "/api/v1/notices", {"keys": keys}, token=TOKEN)
        assert noticed.json() == {"noticed": 1, "unknown": ["https://b.example/"]}
        assert [(notice.count, notice.origin) for notice in engine.store.notices.open()] == [(1, "webhook")]
        assert web.get("/api/v1/status").json()["budget_per_s"] == 7.0


def test_the_budget_shown_is_that_of_the_engine_that_runs(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        engine.store.state.set({PULSE: Pulse(NOW_S, NOW_S - 60, budget_per_s=5.0).pack()})
        with dashboard(engine) as web:
            assert web.get("/api/v1/status").json()["budget_per_s"] == 5.0
            assert web.get("/api/v1/plan").json()["today"]["requests_per_s"] == 5.0
            assert "afresh_budget_requests_per_second 5.0" in web.get("/metrics").text


def test_views_made_from_items_are_on_the_page_and_in_the_api(tmp_path: Path) -> None:
    table = f"[[view]]\nname = 'front <page>'\nitems = ['{PLAIN}', 'https://nowhere/']\n"
    engine = engine_of(tmp_path, table)
    engine.add([PLAIN])
    with engine, dashboard(engine) as web:
        (view,) = web.get("/api/v1/status").json()["item_views"]
        assert (view["name"], view["items"], view["unknown"]) == ("front <page>", 2, 1)
        assert (view["fresh"], view["polled_s"]) == (0.0, None)
        page = web.get("/").text
        assert "front &lt;page&gt;" in page
        assert "2 items, 1 of them not known" in page
        assert 'data-field="view-0">0.0 %<' in page


def test_a_clock_on_a_page_is_named_with_the_line_that_leaves_it_out(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        pages = [PLAIN, f"{PLAIN}2"]
        engine.add(pages)
        for hour in range(5):
            page = f"<p>{'text ' * 50}</p><b class=clock>{hour}:00</b>".encode()
            for url in pages:
                engine.observe([Reported(url, NOW_S - 900 + hour, content=page, media_type="text/html")])
        with dashboard(engine) as web:
            (hint,) = web.get("/api/v1/status").json()["noise"]
            assert (hint["line"], hint["items"]) == ('drop = [".clock"]', 2)
            assert "leave it out by drop = [&#34;.clock&#34;]" in web.get("/").text


def test_without_views_their_table_is_hidden(web: Client) -> None:
    assert web.get("/api/v1/status").json()["item_views"] == []
    assert re.search(r'id="item-views" data-mark="[0-9a-f]+" hidden', web.get("/").text)


def test_a_key_of_two_sources_is_a_conflict_until_the_source_is_named(tmp_path: Path) -> None:
    with two_shops(tmp_path) as engine, dashboard(engine) as web:
        engine.observe([Reported("17", NOW_S, content=b"of b", source="b")])
        for method, path, body in (
            ("GET", "item", None),
            ("GET", "copy", None),
            ("PATCH", "item", {"weight": 3.0}),
            ("POST", "item/poll", None),
        ):
            refused = web.ask(method, f"/api/v1/{path}?key=17", body, token=TOKEN)
            assert refused.status == 409
            assert refused.json()["error"]["code"] == "conflict"
            assert "item '17' is in several sources: a, b" in refused.problem()
            missing = web.ask(method, f"/api/v1/{path}?key=17&source=c", body, token=TOKEN)
            assert (missing.status, missing.problem()) == (404, "there is no item '17' of the source 'c'")
        assert web.get("/api/v1/item?key=17&source=b").json()["item"]["source"] == "b"
        assert web.get("/api/v1/copy?key=17&source=b").body == b"of b"
        changed = web.ask("PATCH", "/api/v1/item?key=17&source=b", {"weight": 3.0}, token=TOKEN).json()
        assert (changed["source"], changed["weight"]) == ("b", 3.0)
        polled = web.ask("POST", "/api/v1/item/poll?key=17&source=b", token=TOKEN).json()
        assert polled["source"] == "b"
        assert [item.weight for item in engine.store.items.by_id([1, 2])] == [1.0, 3.0]
        for more, counts in (({"source": "b"}, {2: 1}), ({}, {1: 1, 2: 2})):
            told = web.ask("POST", "/api/v1/notices", {"keys": ["17"], **more}, token=TOKEN).json()
            assert told == {"noticed": 1, "unknown": []}
            assert {notice.item_id: notice.count for notice in engine.store.notices.open()} == counts


def test_pages_lead_to_the_item_of_each_source(tmp_path: Path) -> None:
    with two_shops(tmp_path) as engine, dashboard(engine) as web:
        listed = web.get("/items").text
        assert "/item?key=17&amp;source=a" in listed
        assert "/item?key=17&amp;source=b" in listed
        assert 'data-key="17" data-source="b"' in web.get("/item?key=17&source=b").text
        refused = web.get("/item?key=17")
        assert (refused.status, "several sources: a, b" in refused.text) == (409, True)
