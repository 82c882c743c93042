"""Leases and observations over HTTP: what a crawler gets, and how its reports are answered."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.web.serving import NOW_S, TOKEN, Client, dashboard, engine_of, two_shops

PAGES = [f"https://h{number}.example/page" for number in range(3)]


def post(web: Client, path: str, body: object, status: int = 200) -> Any:
    """The answer to a request with the token."""
    answer = web.ask("POST", f"/api/v1/{path}", body, token=TOKEN)
    assert answer.status == status, answer.text
    return answer.json()


def test_a_crawler_leases_reports_and_reports_again(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        engine.add(PAGES, weight=3.0)
        lent = post(web, "leases", {"count": 2, "duration": "90s"})
        assert lent["retry_after"] == 0.0
        assert [lease["item"] for lease in lent["leases"]] == PAGES[:2]
        first, second = lent["leases"]
        token = first["lease"]
        assert first == {
            "item": PAGES[0],
            "source": "web",
            "group": "h0.example",
            "weight": 3.0,
            "last_poll": None,
            "lease": token,
            "until": NOW_S + 90.0,
            "not_before": NOW_S,
            "validators": {},
        }
        rows = [
            {"item": PAGES[0], "lease": token, "content_base64": base64.b64encode(b"\xff").decode()},
            {"item": PAGES[1], "lease": second["lease"], "status": 503, "retry_after": 60, "bytes": 10},
            {"item": PAGES[2], "changed": "perhaps"},
            "nonsense",
            {"item": PAGES[2], "lease": 99, "changed": True},
        ]
        found = post(web, "observations", {"observations": rows})
        results = ["recorded", "recorded", "invalid", "invalid", "conflict"]
        assert [answer["result"] for answer in found["answers"]] == results
        assert found["answers"][2]["problem"] == "row 3: changed is 'perhaps': give true or false"
        assert found["answers"][1]["next_poll"] == NOW_S + 60.0
        assert (found["recorded"], found["known"]) == (2, 0)
        again = post(web, "observations", {"observations": rows[:2]})
        assert again["answers"] == found["answers"][:2]
        assert (again["recorded"], again["known"]) == (0, 2)
        copy = engine.get(PAGES[0])
        assert copy is not None
        assert copy.content == b"\xff"


def test_leases_are_extended_and_given_back(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        engine.add(PAGES)
        (lease,) = post(web, "leases", {"count": 1})["leases"]
        held = {"leases": [{"item": lease["item"], "lease": lease["lease"]}]}
        assert post(web, "leases/extend", held | {"duration": "2h"}) == {"held": 1, "ended": []}
        assert engine.store.leases.until_s(1, NOW_S) == NOW_S + 7200.0
        assert post(web, "leases/release", held) == {"held": 1, "ended": []}
        assert post(web, "leases/release", held) == {"held": 0, "ended": [lease["item"]]}


def test_wrong_requests_are_refused_in_words(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        engine.add(PAGES)
        assert web.ask("POST", "/api/v1/leases", {}).status == 401
        assert web.ask("POST", "/api/v1/observations", {"observations": [{}]}).status == 401
        for body, status, words in (
            ({"count": 0}, 422, "count"),
            ({"count": 1001}, 422, "count"),
            ({"duration": "soon"}, 422, "duration"),
            ({"duration": "30d"}, 400, "at most 7 days"),
            ({"source": "nowhere"}, 400, "nowhere"),
        ):
            answer = web.ask("POST", "/api/v1/leases", body, token=TOKEN)
            assert (answer.status, words in answer.problem()) == (status, True)
        many = {"observations": [{"item": PAGES[0], "changed": True}] * 1001}
        assert web.ask("POST", "/api/v1/observations", many, token=TOKEN).status == 422
        assert [item.polls for item in engine.store.items.by_id([1, 2, 3])] == [0, 0, 0]
        assert engine.store.leases.open(NOW_S) == []


def test_reports_may_be_larger_than_other_requests(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        engine.add(PAGES)
        row = {"item": PAGES[0], "content": "x" * (3 << 20)}
        assert post(web, "observations", {"observations": [row]})["recorded"] == 1
        assert web.ask("POST", "/api/v1/observations", {"observations": [row]}).status == 401
        assert web.ask("POST", "/api/v1/items", {"keys": ["x" * (2 << 20)]}, token=TOKEN).status == 413


def test_leases_of_two_sources_with_one_key_are_told_apart(tmp_path: Path) -> None:
    with two_shops(tmp_path) as engine, dashboard(engine) as web:
        leases = post(web, "leases", {"count": 2})["leases"]
        assert [(lease["item"], lease["source"]) for lease in leases] == [("17", "a"), ("17", "b")]
        rows = [{"item": "17", "lease": lease["lease"], "source": lease["source"]} for lease in leases]
        bare = {"leases": [{"item": "17", "lease": leases[0]["lease"]}]}
        for path in ("leases/extend", "leases/release"):
            refused = post(web, path, bare, 409)
            assert "item '17' is in several sources: a, b" in refused["error"]["message"]
        assert post(web, "leases/release", {"leases": rows[:1]}) == {"held": 1, "ended": []}
        polls = [rows[1] | {"content": "of b"}, bare["leases"][0] | {"content": "of whom"}]
        found = post(web, "observations", {"observations": polls})
        assert [answer["result"] for answer in found["answers"]] == ["recorded", "invalid"]
        assert "item '17' is in several sources: a, b" in found["answers"][1]["problem"]
        copies = [engine.get("17", source=source) for source in ("a", "b")]
        assert copies[0] is None
        assert copies[1] is not None
        assert copies[1].content == b"of b"
