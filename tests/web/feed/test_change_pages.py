"""The pages of changes and differences: filters, paging, escaping, and who may see contents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.web.serving import HOSTILE, PLAIN, TOKEN, Answer, Client, engine_of, filled

from afresh.engine.engine import Engine
from afresh.values.reported import Reported
from afresh.web.app import make_app
from afresh.web.server import Server, listen

CONTENT = "onerror=alert(1)"
HTML = {"Accept": "text/html"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_of(tmp_path) as found:
        filled(found)
        yield found


@pytest.fixture
def client(engine: Engine) -> Iterator[Client]:
    with Server(make_app(engine, TOKEN), listen("127.0.0.1", 0)) as server:
        yield Client(server, engine)


def observe(engine: Engine, content: bytes, age_s: float, media_type: str = "text/html") -> None:
    reported = Reported(PLAIN, engine.clock.now_s() - age_s, content=content, media_type=media_type)
    engine.observe([reported])


def listed(answer: Answer) -> list[str]:
    assert answer.status == 200
    return re.findall(r'<li data-cursor="([^"]+)"', answer.text)


def diff_of(client: Client, **given: Any) -> Answer:
    return client.get(f"/diff?{urlencode({'key': PLAIN, 'source': 'web'} | given)}", **HTML)


def test_the_newest_changes_are_listed_and_filtered(client: Client, engine: Engine) -> None:
    cursors = [entry.cursor for entry in engine.feed.newest(50)]
    assert listed(client.get("/changes")) == cursors
    assert len(cursors) == 4
    assert listed(client.get("/changes?kind=changed")) == cursors[:2]
    assert len(listed(client.get("/changes?text=PLAIN"))) == 2
    assert len(listed(client.get("/changes?text=*/plain&min_change=1"))) == 2  # of unknown size
    assert "No change matches" in client.get("/changes?text=nowhere").text
    assert "<script>alert" not in client.get("/changes").text
    engine.remove([PLAIN])
    first = client.get("/changes?kind=removed")
    assert len(listed(first)) == 1
    assert f">{PLAIN}</a>" not in first.text  # an item that is no more has no page
    for wrong, status in (
        ("kind=moved", 400),
        ("min_change=2", 422),
        ("source=nope", 404),
        ("before=x", 400),
    ):
        assert client.get(f"/changes?{wrong}", **HTML).status == status


def test_older_changes_are_on_the_next_pages(client: Client, engine: Engine) -> None:
    for number in range(60):
        observe(engine, b"%d" % number, 100.0 - number)
    first = client.get("/changes")
    assert len(listed(first)) == 50
    (link,) = re.findall(r'rel="next" href="([^"]+)"', first.text)
    second = client.get(link.replace("&amp;", "&"))
    assert len(listed(second)) == 14
    assert "These are older changes" in second.text
    assert 'rel="next"' not in second.text
    assert listed(first) + listed(second) == [entry.cursor for entry in engine.feed.newest(200)]


def test_any_two_versions_are_compared(client: Client, engine: Engine) -> None:
    observe(engine, b"first\nthird", 100.0)
    newest = diff_of(client)
    assert "From version 2 to 3." in newest.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in newest.text
    assert "<img src=x" not in newest.text
    wide = diff_of(client, old=1, new=3, layout="sides")
    assert "From version 1 to 3." in wide.text
    assert 'class="sides"' in wide.text
    assert "From version 3 to 1." in diff_of(client, old=3, new=1).text
    assert "Their lines are equal" in diff_of(client, old=2, new=2).text
    for wrong, status in (({"old": 9}, 404), ({"key": "nobody"}, 404), ({"layout": "up"}, 422)):
        answer = diff_of(client, **wrong)
        assert answer.status == status
        assert "data-problem" in answer.text


def test_what_is_not_text_is_not_shown(client: Client, engine: Engine) -> None:
    observe(engine, bytes(range(256)) * 8, 100.0, "image/png")
    answer = diff_of(client)
    assert "The copies are not text" in answer.text
    assert 'class="diff"' not in answer.text
    only = f"/diff?{urlencode({'key': 'https://example.org/003', 'source': 'web'})}"
    assert "There is no copy yet" in client.get(only, **HTML).text


def test_the_api_has_what_the_pages_show(client: Client, engine: Engine) -> None:
    found = client.get("/api/v1/changes/newest?limit=3").json()
    rest = client.get(f"/api/v1/changes/newest?before={found['cursor']}").json()
    assert [row["cursor"] for row in found["changes"] + rest["changes"]] == [
        entry.cursor for entry in engine.feed.newest(50)
    ]
    assert rest["cursor"] is None
    diff = client.get(f"/api/v1/diff?{urlencode({'key': HOSTILE})}").json()
    assert (diff["old"], diff["new"], len(diff["versions"])) == (1, 2, 2)
    assert [(line["kind"], line["text"]) for line in diff["lines"]] == [
        ("same", "first"),
        ("removed", "line"),
        ("added", "<img src=x onerror=alert(1)>"),
    ]
    foreign = client.get("/api/v1/changes/newest?before=1-1-00000000")
    assert foreign.status == 410


@pytest.mark.parametrize(
    ("readers", "token", "status"),
    [("nobody", TOKEN, 403), ("token", None, 401), ("token", TOKEN, 200), ("everybody", None, 200)],
)
def test_contents_are_shown_to_those_who_may_read_them(
    engine: Engine, readers: Any, token: str | None, status: int
) -> None:
    with Server(make_app(engine, TOKEN, content=readers), listen("127.0.0.1", 0)) as server:
        client = Client(server, engine)
        headers = HTML | ({} if token is None else {"Authorization": f"Bearer {token}"})
        query = urlencode({"key": PLAIN, "source": "web"})
        for path in (f"/diff?{query}", f"/api/v1/diff?key={PLAIN}"):
            answer = client.get(path, **headers)
            assert answer.status == status
            assert (CONTENT in answer.text) == (status == 200)
        if status == 401:  # a browser asks its user for the token
            assert client.get(f"/diff?{query}", **HTML).headers["www-authenticate"].startswith("Basic")
        item = client.get(f"/item?{query}", **headers)
        assert item.status == 200
        assert (CONTENT in item.text) == (status == 200)
        assert ("download</a>" in item.text) == (status == 200)
        assert client.get("/changes", **headers).status == 200
