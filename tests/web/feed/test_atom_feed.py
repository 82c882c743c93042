"""``/changes.atom``: the newest changes for feed readers, and who may read the differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import feedparser  # type: ignore[import-untyped]
import pytest
from tests.web.serving import HOSTILE, PLAIN, TOKEN, Answer, Client, engine_of, filled

from afresh.engine.engine import Engine
from afresh.values.changes import FeedEntry
from afresh.web.app import make_app
from afresh.web.feed.atom_feed import FeedPlace, write_atom
from afresh.web.server import Server, listen

ATOM = {"a": "http://www.w3.org/2005/Atom"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_of(tmp_path) as found:
        filled(found)
        yield found


def texts(answer: Answer | bytes, path: str) -> list[str | None]:
    body = answer if isinstance(answer, bytes) else answer.body
    return [each.text for each in ElementTree.fromstring(body).findall(path, ATOM)]


def test_the_newest_changes_are_entries(engine: Engine) -> None:
    with Server(make_app(engine, TOKEN), listen("127.0.0.1", 0)) as server:
        client = Client(server, engine)
        answer = client.get("/changes.atom")
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("application/atom+xml")
        told = [f"{entry.kind}: {entry.key}" for entry in engine.feed.newest(50)]
        assert texts(answer, "a:entry/a:title") == told
        assert f"new: {HOSTILE}" in told
        assert len(set(texts(answer, "a:entry/a:id"))) == len(told) == 4
        assert texts(client.get("/changes.atom?limit=1"), "a:entry/a:title") == told[:1]
        assert texts(client.get("/changes.atom?source=nobody"), "a:entry") == []
        assert texts(answer, "a:entry/a:content") == []
        diff = "@@ -1,2 +1,2 @@\n first\n-line\n+<img src=x onerror=alert(1)>"
        assert texts(client.get("/changes.atom?content=diff"), "a:entry/a:content") == [diff, diff]
        for wrong in ("limit=0", "limit=201", "content=raw"):
            assert client.get(f"/changes.atom?{wrong}").status == 422
        assert 'href="/changes.atom"' in client.get("/").text
    assert f"changed: {PLAIN}" in told


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        (None, "/changes.atom", 401),
        (TOKEN, "/changes.atom", 200),
        (TOKEN, "/changes.atom?content=diff", 403),
    ],
)
def test_it_is_read_by_those_who_may_read_the_api(
    engine: Engine, token: str | None, path: str, status: int
) -> None:
    app = make_app(engine, TOKEN, read_token=True, content="nobody")
    with Server(app, listen("127.0.0.1", 0)) as server:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        assert Client(server, engine).get(path, **headers).status == status


def test_whatever_a_key_holds_it_is_xml() -> None:
    key = "a\x00\x1b<&>\uffff"
    entry = FeedEntry("1-1-00", 1, key, "web", "new", 1, 5.0, None, 1, None)
    found = write_atom([entry], [""], FeedPlace("http://localhost", "/changes.atom", "1"))
    assert texts(found, "a:entry/a:title") == ["new: a\\x00\\x1b<&>\ufffd"]
    assert texts(found, "a:updated") == ["1970-01-01T00:00:05Z"]
    empty = write_atom([], [], FeedPlace("http://localhost", "/changes.atom", "1", "büro 1"))
    assert texts(empty, "a:title") == ["afresh: changes of büro 1"]
    assert texts(empty, "a:id") == ["urn:afresh:changes:1:b%C3%BCro%201"]


def test_a_feed_reader_tells_the_feeds_of_projects_and_sources_apart(tmp_path: Path) -> None:
    seen = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        with engine_of(tmp_path / name) as engine:
            filled(engine)
            with Server(make_app(engine, TOKEN), listen("127.0.0.1", 0)) as server:
                client = Client(server, engine)
                for path in ("/changes.atom", "/changes.atom?source=web&limit=2"):
                    read = feedparser.parse(client.get(path).body)
                    assert not read.bozo
                    (own,) = (link.href for link in read.feed.links if link.rel == "self")
                    assert own == f"{server.address.rstrip('/')}{path}"
                    seen += [read.feed.id, *(entry.id for entry in read.entries)]
    names = [each for each in seen if "change:" not in each]
    assert len(set(names)) == len(names) == 4
    assert len({each for each in seen if "change:" in each}) == 8  # an entry is the same in both feeds
