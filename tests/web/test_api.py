"""The API answers what the engine knows, pages through it, and changes it with the token alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.stores.backends import poll
from tests.web.serving import HOSTILE, NOW_S, PLAIN, TOKEN, Client, dashboard, engine_of, filled

from afresh.engine.reporting.pulse import Pulse
from afresh.engine.state_names import BACKOFFS, PULSE, SOURCE_STATE


def item_path(key: str, path: str = "/api/v1/item") -> str:
    return f"{path}?{urlencode({'key': key})}"


def test_status_says_what_the_engine_says(web: Client) -> None:
    found, status = web.get("/api/v1/status").json(), web.engine.status()
    assert found["items"] == status.items == 123
    assert found["state"] == "none"
    assert found["time_s"] == status.time_s
    assert found["freshness"]["value"] == status.freshness.value
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


def test_the_plan_rises_with_the_budget(web: Client) -> None:
    found = web.get("/api/v1/plan").json()
    freshness = [point["freshness"] for point in found["budgets"]]
    assert freshness == sorted(freshness)
    assert found["today"]["requests_per_s"] == 2.0
    assert found["today"]["money_per_day"] == pytest.approx(172.8)
    assert min(freshness) < found["today"]["freshness"] < max(freshness)
    assert found["absorbed_per_s"] == 2.0
    dropped = [point["dropped"] for point in found["budgets"]]
    assert dropped == sorted(dropped, reverse=True)


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_what_is_said_of_a_budget_is_said_again_when_it_is_set(tmp_path: Path, objective: str) -> None:
    with engine_of(tmp_path) as engine:
        filled(engine)
        with dashboard(engine) as web:
            for budget in ("0.05/s", "20/s", "113/s"):
                asked = f"/api/v1/plan/at?budget={budget}&objective={objective}"
                then = web.get(asked).json()["then"]
                web.ask("PUT", "/api/v1/budget", {"requests": budget}, token=TOKEN)
                status = web.get("/api/v1/status").json()
                found = web.get(f"/api/v1/plan?objective={objective}").json()
                assert found["today"] == pytest.approx(then)
                freshness = [point["freshness"] for point in found["budgets"]]
                assert freshness == sorted(freshness)
                now = found["now"]
                assert now["dropped"] == status["dropped"]
                assert now["freshness"] == status["freshness"]["value"]
                assert now["age_s"] == status["age_s"]


def test_what_a_budget_is_worth_in_money(tmp_path: Path) -> None:
    more = 'benefit = "0.02/s"\nstale_cost = "0.01/s"\n'
    with engine_of(tmp_path, more) as engine:
        filled(engine)
        with dashboard(engine) as web:
            found = web.get("/api/v1/plan").json()
            assert found["earns"]
            income = [point["income_per_day"] for point in found["budgets"]]
            # Each right copy earns 0.02 and each wrong one loses 0.01: the optimum of that, not of freshness.
            assert income == sorted(income)
            cost = [point["money_per_day"] for point in found["budgets"]]
            assert cost == sorted(cost)
            beyond = [web.get(f"/api/v1/plan/at?budget={most}/s").json()["then"] for most in (500, 1000)]
            assert cost[-1] == beyond[0]["money_per_day"] == beyond[1]["money_per_day"] < 86400 * 0.001 * 128
            weight = 122 + 2.5
            assert income[-1] < 86400 * 0.02 * weight
            assert income[0] > -86400 * 0.01 * weight
            now = found["today"]
            right = (now["income_per_day"] + now["money_per_day"]) / 86400 / weight
            assert right == pytest.approx(0.03 * now["freshness"] - 0.01, rel=1e-6)
            other = web.get("/api/v1/plan/at?budget=0.05/s").json()
            assert other["then"]["income_per_day"] < other["today"]["income_per_day"]
            assert "Net income a day" in web.get("/plan").text


def test_without_prices_the_plan_says_how_to_set_them(web: Client) -> None:
    found = web.get("/api/v1/plan").json()
    assert not found["earns"]
    assert found["today"]["income_per_day"] is None
    assert 'benefit = "0.01/d"' in web.get("/plan").text


@pytest.mark.parametrize("objective", ["freshness", "age", "harmonic", "missed", "lag"])
def test_every_objective_has_a_plan(web: Client, objective: str) -> None:
    found = web.get(f"/api/v1/plan?objective={objective}").json()
    assert found["objective"] == objective
    assert len(found["dot_rate"]) == len(found["dot_key"]) == 123
    assert max(found["curve_frequency"]) > 0


def test_another_budget_drops_and_brings_back(web: Client) -> None:
    less = web.get("/api/v1/plan/at?budget=0.01/s").json()
    more = web.get("/api/v1/plan/at?budget=500/s").json()
    assert less["gone"] > 0
    assert less["back"] == 0
    assert less["then"]["freshness"] < less["today"]["freshness"] < more["then"]["freshness"]
    assert more["gone"] == 0
    assert 0 < len(less["gone_named"]) <= 8


def test_without_items_every_budget_gives_the_same(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        other = web.get("/api/v1/plan/at?budget=5/s").json()
        assert (other["back"], other["gone"], other["then"]["freshness"]) == (0, 0, 1.0)
        assert web.get("/api/v1/plan").json()["budgets"] == []
        assert "Nothing to plan yet" in web.get("/plan").text


def test_sources_are_listed_without_secrets(tmp_path: Path) -> None:
    more = 'headers = {Authorization = "Bearer hush-hush"}\n'
    with engine_of(tmp_path, more) as engine, dashboard(engine) as web:
        for path in ("/api/v1/sources", "/sources"):
            answer = web.get(path)
            assert answer.status == 200
            assert "hush" not in answer.text
        assert [source["name"] for source in web.get("/api/v1/sources").json()["sources"]] == ["web"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/item?key=nothing", 404),
        ("/api/v1/items?sort=colour", 422),
        ("/api/v1/items?limit=0", 422),
        ("/api/v1/items?cursor=rubbish", 400),
        ("/api/v1/plan?objective=speed", 400),
        ("/api/v1/plan/at?budget=2", 400),
        ("/api/v1/plan/at?budget=0/s", 400),
        ("/api/v1/items?source=nope", 404),
        ("/api/v1/items?limits=5", 422),
        ("/api/v1/status?verbose=1", 422),
        ("/api/v1/nothing", 404),
        ("/nothing", 404),
    ],
)
def test_errors_have_one_shape(web: Client, path: str, status: int) -> None:
    answer = web.get(path)
    assert answer.status == status
    assert answer.problem()


def test_a_cursor_of_another_query_is_refused(web: Client) -> None:
    cursor = web.get("/api/v1/items?sort=key&limit=5").json()["cursor"]
    assert web.get(f"/api/v1/items?sort=key&limit=5&{urlencode({'cursor': cursor})}").status == 200
    answer = web.get(f"/api/v1/items?sort=due&limit=5&{urlencode({'cursor': cursor})}")
    assert answer.status == 400
    assert "another query" in answer.problem()


@pytest.mark.parametrize("path", ["/", "/items", "/metrics", "/healthz", "/api/v1/status"])
def test_head_is_answered_like_get_without_the_body(web: Client, path: str) -> None:
    answer = web.ask("HEAD", path)
    assert answer.status == 200
    assert answer.body == b""
    assert answer.headers["content-type"] == web.get(path).headers["content-type"]


def test_a_browser_that_errs_gets_a_page(web: Client) -> None:
    for path, status, title in (
        ("/nope", 404, "Not found"),
        ("/items?sort=colour", 400, "Refused"),
        ("/items?source=nope", 404, "Not found"),
        (f"/items?text={'a' * 600}", 422, "Refused"),
    ):
        answer = web.get(path, Accept="text/html,*/*")
        assert answer.status == status
        assert f"<title>{title} · afresh</title>" in answer.text


def test_actions_change_the_store(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        added = web.ask("POST", "/api/v1/items", {"keys": ["https://a.example/"], "weight": 2}, token=TOKEN)
        assert added.json() == {"new": 1}
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
        assert [notice.count for notice in engine.store.notices.open()] == [1]
        assert web.get("/api/v1/status").json()["budget_per_s"] == 7.0


def test_the_engine_shows_as_running_stopped_or_lost(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        for pulse, state in (
            (Pulse(NOW_S, NOW_S - 60), "running"),
            (Pulse(NOW_S, NOW_S - 60, stopped=True), "stopped"),
            (Pulse(NOW_S - 600, NOW_S - 900), "lost"),
        ):
            engine.store.state.set({PULSE: pulse.pack()})
            with dashboard(engine) as web:
                assert web.get("/readyz").json() == {"ok": True, "engine": state}
                assert web.get("/api/v1/status").json()["state"] == state


def test_metrics_are_prometheus_text(web: Client) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    found = {family.name: family for family in text_string_to_metric_families(web.get("/metrics").text)}
    wanted = (
        "freshness_ratio age_seconds audited_freshness_ratio lag_seconds budget_requests_per_second "
        "store_latency_seconds items engine_state"
    )
    assert {f"afresh_{name}" for name in wanted.split()} <= set(found)
    items = {sample.labels["status"]: sample.value for sample in found["afresh_items"].samples}
    assert set(items) == {"active", "paused", "gone", "refused"}  # an alarm needs the zeros too
    assert sum(items.values()) == 123


def test_healthy_without_a_store_but_not_ready(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    with dashboard(engine) as web:
        engine.close()
        assert web.get("/healthz").status == 200
        ready = web.get("/readyz")
        assert ready.status == 503
        assert "closed" in ready.problem()
        for path in ("items", "status", "course", "sources"):
            assert web.get(f"/api/v1/{path}").status == 503
        assert "closed" in web.get("/items").text
        assert "data-recovers" in web.get("/items").text


def test_metrics_say_nothing_of_before_while_the_store_is_out_of_reach(tmp_path: Path) -> None:
    engine = engine_of(tmp_path)
    filled(engine)
    with dashboard(engine) as web:
        assert "afresh_freshness_ratio 0." in web.get("/metrics").text
        engine.close()
        lines = [line for line in web.get("/metrics").text.splitlines() if not line.startswith("#")]
        assert "afresh_store_latency_seconds NaN" in lines
        assert 'afresh_engine_state{state="no store"} 1.0' in lines
        assert {line.partition("{")[0].partition(" ")[0] for line in lines} == {
            "afresh_store_latency_seconds",
            "afresh_engine_state",
        }


def test_the_budget_shown_is_that_of_the_engine_that_runs(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine:
        engine.store.state.set({PULSE: Pulse(NOW_S, NOW_S - 60, budget_per_s=5.0).pack()})
        with dashboard(engine) as web:
            assert web.get("/api/v1/status").json()["budget_per_s"] == 5.0
            assert web.get("/api/v1/plan").json()["today"]["requests_per_s"] == 5.0
            assert "afresh_budget_requests_per_second 5.0" in web.get("/metrics").text


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
    noisy = [[0.0, 0.0, 9.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0, 4, ""]
    notes = {"v": 1, "robots": [], "honesty": {"liar.example": noisy}}
    with engine_of(tmp_path) as engine:
        engine.add(f"https://{host}.example/{page}" for host in range(60) for page in range(2))
        engine.add(["https://liar.example/"])
        engine.store.state.set({SOURCE_STATE + "web": json.dumps(notes).encode()})
        with dashboard(engine) as web:
            source = web.get("/api/v1/sources").json()["sources"][0]
            assert source["hosts"][0]["name"] == "liar.example"
            assert source["hosts"][0]["validators"]
            assert source["more_hosts"] == 11
