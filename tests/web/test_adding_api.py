"""Adding over the API: pages, documents and whole sites, what they would add, and what is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.living import engine_for
from tests.servers.site import Answer, Seen, Site, page
from tests.servers.threaded import served, sitemap
from tests.waiting import LIMIT_S
from tests.web.serving import TOKEN, Client, dashboard, engine_of

from afresh.engine.engine import Engine


@pytest.fixture
def site() -> Iterator[Site]:
    with served({f"/docs/{name}": page(name.encode()) for name in "abc"}) as found:
        found.routes["/map.xml"] = page(
            sitemap(found.url, "docs/a", "docs/b"), Content_Type="application/xml"
        )
        links = b'<a href="a#x">A</a><a href="a">A again</a><a href="c">C</a><a href="/else">not below</a>'
        found.routes["/docs/"] = page(links, Content_Type="text/html")
        yield found


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Client]:
    more = '[[source]]\nname = "numbers"\nkind = "python"\ncall = "builtins:ascii"\n'
    with engine_for(tmp_path, source=f"delay = 0\n{more}") as engine, dashboard(engine) as client:
        yield client


def post(web: Client, path: str, **body: Any) -> dict[str, Any]:
    answer = web.ask("POST", path, body, token=TOKEN)
    assert answer.status == 200, answer.text
    return dict(answer.json())


def keys(engine: Engine) -> set[str]:
    return {item.key for item in engine.store.items.by_id(range(1, 50))}


@pytest.mark.parametrize(
    ("kind", "path", "new", "more"),
    [
        ("sitemaps", "/map.xml", ["/docs/a", "/docs/b"], False),
        ("follow", "/docs/", ["/docs/", "/docs/a", "/docs/c"], True),
        ("keys", "/docs/a", ["/docs/a"], False),
    ],
)
def test_what_would_be_added_is_shown_and_then_added(
    web: Client, site: Site, kind: str, path: str, new: list[str], more: bool
) -> None:
    asked = {kind: [site.url + path], "source": "web"}
    found = post(web, "/api/v1/items/preview", **asked)
    assert found["shown"] == [site.url + one for one in new]
    assert (found["new"], found["known"], found["more"], found["problems"]) == (len(new), 0, more, {})
    assert keys(web.engine) == set()
    # What the preview asked for is paid from the budget.
    assert web.engine.store.ledger.total(0.0, np.inf).requests == len(site.seen)
    first = 1 if kind == "follow" else len(new)  # the other pages are found when a run polls the first
    assert post(web, "/api/v1/items", **asked) == {"new": first, "problems": {}}
    assert len(keys(web.engine)) == first
    again = post(web, "/api/v1/items/preview", **asked)
    assert (again["new"], again["known"]) == (len(new) - first, first)


def test_what_cannot_be_added_is_said_in_words(web: Client, site: Site) -> None:
    none = f"{site.url}/none.xml"
    for path in ("/api/v1/items/preview", "/api/v1/items"):
        found = post(web, path, sitemaps=[none, f"{site.url}/map.xml"])
        assert (found["new"], found["problems"]) == (2, {none: "404 Not Found"})
    for body, words in (
        ({}, "nothing to add"),
        ({"sitemaps": ["not an address"]}, "is not an http or https address"),
        ({"keys": ["tea"]}, "is not an http or https address"),
        ({"keys": ["https://a.test/"], "source": "wbe"}, "did you mean 'web'"),
        ({"follow": ["https://a.test/"], "source": "numbers"}, "it has no sitemaps or feeds"),
    ):
        for path in ("/api/v1/items/preview", "/api/v1/items"):
            answer = web.ask("POST", path, body, token=TOKEN)
            assert (answer.status, words in answer.problem()) == (400, True), answer.problem()
    too_many = {"follow": ["https://a.test/"] * 21}
    assert web.ask("POST", "/api/v1/items/preview", too_many, token=TOKEN).status == 422
    assert web.ask("POST", "/api/v1/items/preview", {"sitemaps": [none]}).status == 401


def test_private_addresses_are_refused_and_nothing_is_asked(tmp_path: Path, site: Site) -> None:
    words = "refused: 127.0.0.1 is a loopback address (allowed by --allow-private"
    with engine_of(tmp_path) as engine, dashboard(engine) as web:
        for path in ("/api/v1/items/preview", "/api/v1/items"):
            for kind in ("sitemaps", "feeds", "discover", "follow", "keys"):
                address = f"{site.url}/docs/"
                found = post(web, path, **{kind: [address]})
                assert found["problems"][address].startswith(words)
        assert keys(engine) == {f"{site.url}/docs/"}  # an item that the user names may be allowed later
    assert site.seen == []


class SlowDocument:
    """A sitemap that is sent when the test says so."""

    def __init__(self, root: str) -> None:
        self.url, self._root = f"{root}/slow.xml", root
        self.reading, self.go_on = threading.Event(), threading.Event()

    async def answer(self, _seen: Seen, answer: Answer) -> None:
        self.reading.set()
        await asyncio.to_thread(self.go_on.wait, LIMIT_S)
        await answer.send(sitemap(self._root, "docs/a"), Content_Type="application/xml")


@pytest.fixture
def slow(site: Site) -> Iterator[SlowDocument]:
    found = SlowDocument(site.url)
    site.routes["/slow.xml"] = found.answer
    yield found
    found.go_on.set()  # the site ends only when its answers have ended


def test_one_request_at_a_time_reads_documents(web: Client, slow: SlowDocument) -> None:
    asked = {"sitemaps": [slow.url], "source": "web"}
    found: list[dict[str, Any]] = []
    first = threading.Thread(target=lambda: found.append(post(web, "/api/v1/items/preview", **asked)))
    first.start()
    assert slow.reading.wait(LIMIT_S)
    answer = web.ask("POST", "/api/v1/items/preview", asked, token=TOKEN)
    slow.go_on.set()
    first.join()
    assert (answer.status, answer.problem()) == (409, "documents are being read for another request")
    assert (found[0]["new"], found[0]["problems"]) == (1, {})


def test_documents_are_not_read_for_long(
    web: Client, slow: SlowDocument, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document is not sent before the request has given up, however short or long that takes."""
    asked = {"sitemaps": [slow.url], "source": "web"}
    monkeypatch.setattr("afresh.web.adding_api.READING_S", 0.2)
    found = post(web, "/api/v1/items/preview", **asked)
    assert (found["new"], found["problems"]) == (0, {slow.url: "not everything was read within 0.2 s"})
    # Added all the same: a run reads what took too long.
    assert post(web, "/api/v1/items", **asked)["new"] == 0
    slow.go_on.set()
    web.engine.run(once=True)
    assert keys(web.engine) == {f"{site.url}/docs/a"}
