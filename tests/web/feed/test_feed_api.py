"""``/api/v1/changes``: pages, long polling, cursors that are refused, and who may read contents."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.web.serving import PLAIN, TOKEN, Client, engine_of, filled

from afresh.engine.engine import Engine
from afresh.values.reported import Reported
from afresh.web.app import make_app
from afresh.web.server import Server, listen


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_of(tmp_path) as found:
        filled(found)
        yield found


@pytest.fixture
def client(engine: Engine) -> Iterator[Client]:
    with Server(make_app(engine, TOKEN), listen("127.0.0.1", 0)) as server:
        yield Client(server, engine)


def ask(client: Client, **given: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/changes?{urlencode(given)}")
    assert answer.status == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def observe(engine: Engine, content: bytes, age_s: float) -> None:
    engine.observe([Reported(PLAIN, engine.clock.now_s() - age_s, content=content)])


def test_pages_follow_each_other(client: Client) -> None:
    first = ask(client, limit=3)
    assert [row["kind"] for row in first["changes"]] == ["new", "new", "changed"]
    assert first["is_last"] is False
    rest = ask(client, since=first["cursor"])
    assert len(rest["changes"]) == 1
    assert rest["is_last"] is True
    assert ask(client, since=rest["cursor"]) == {"changes": [], "cursor": rest["cursor"], "is_last": True}
    assert ask(client, since="now")["cursor"] == rest["cursor"] == rest["changes"][-1]["cursor"]
    assert "content" not in first["changes"][0]
    assert ask(client, content="raw")["changes"][0]["content"] == "first\nline"
    assert ask(client, source="other")["changes"] == []


def test_a_request_that_waits_is_answered_by_the_next_change(client: Client, engine: Engine) -> None:
    cursor = ask(client, since="now")["cursor"]
    found: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: found.append(ask(client, since=cursor, wait="50s")))
    waiting.start()
    observe(engine, b"heard", 5.0)
    waiting.join(120)
    (answer,) = found
    assert [(row["item"], row["kind"]) for row in answer["changes"]] == [(PLAIN, "changed")]
    assert ask(client, since=answer["cursor"], wait="0.3s")["changes"] == []  # in vain


def test_cursors_that_cannot_be_followed_are_gone(client: Client, engine: Engine) -> None:
    start = ask(client, limit=1)["cursor"]
    engine.store.feed.trim(engine.clock.now_s())
    for cursor, words in ((start, "too old"), ("1-1-00000000", "not of this feed")):
        answer = client.get(f"/api/v1/changes?since={cursor}")
        assert (answer.status, answer.json()["error"]["code"]) == (410, "gone")
        assert words in answer.json()["error"]["message"]
        assert "start again" in answer.json()["error"]["message"]
    for wrong in ("since=x", "limit=0", "limit=1001", "wait=long", "content=pdf", "sinse=1"):
        assert client.get(f"/api/v1/changes?{wrong}").status in (400, 422)


@pytest.mark.parametrize(
    ("readers", "token", "status"),
    [("nobody", TOKEN, 403), ("token", None, 401), ("token", "wrong", 401), ("token", TOKEN, 200)],
)
def test_contents_are_for_those_whom_the_settings_name(
    engine: Engine, readers: Any, token: str | None, status: int
) -> None:
    app = make_app(engine, TOKEN, content=readers)
    with Server(app, listen("127.0.0.1", 0)) as server:
        client = Client(server, engine)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        for path in (f"/api/v1/copy?{urlencode({'key': PLAIN})}", "/api/v1/changes?content=raw"):
            assert client.get(path, **headers).status == status
        assert client.get("/api/v1/changes").status == 200
