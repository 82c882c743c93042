"""One visit of a page: which of its requests are sent, that all of them count, and what is not waited for."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha1

import pytest
from tests.servers.site import Answer, Seen, page
from tests.sources.http.rendering.test_rendering_fetcher import Rendering, with_browser
from tests.sources.polling import lease_of

# An event source stays open for ever, and so does the answer to /news, as those of chats do.
_EVERYTHING = """<!doctype html><html><head><title>All</title></head><body><p id=said></p><script>
const said = document.getElementById("said"), add = word => { said.textContent += word + " "; };
new EventSource("/events");
window.open("/window");
const link = document.createElement("a");
Object.assign(link, {href: "/file.bin", download: "x"});
document.body.append(link);
link.click();
const inner = document.createElement("iframe");
inner.src = "/inner";
document.body.append(inner);
fetch("/first").then(answer => answer.text()).then(add);
new Worker("/worker.js").onmessage = message => add(message.data);
add(typeof SharedWorker);
</script></body></html>"""
_WORKER = b'fetch("/from-worker").then(answer => answer.text()).then(postMessage)'
_SOCKET = b"""<!doctype html><html><body><p id=said></p><script>
const socket = new WebSocket("ws://" + location.host + "/socket");
socket.onmessage = message => { said.textContent = message.data; };
</script></body></html>"""
_MANY = b"<!doctype html><body><script>for (let i = 0; i < 30; i++) fetch('/some')</script></body>"
_FOR_NEWS = b"<!doctype html><html><body><p>words</p><script>fetch('/news')</script></body></html>"


async def _hang(_seen: Seen, answer: Answer) -> None:
    await answer.hang()


async def _events(_seen: Seen, answer: Answer) -> None:
    await answer.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
    await answer.hang()


async def _forward(seen: Seen, answer: Answer) -> None:
    target = {"/first": "/second", "/second": "/third"}[seen.path]
    await answer.send(b"", 302, Location=target)


async def _socket(seen: Seen, answer: Answer) -> None:
    key = {name.lower(): value for name, value in seen.headers.items()}["sec-websocket-key"]
    accept = b64encode(sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    head = f"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}"
    await answer.raw(head.encode() + b"\r\n\r\n\x81\x04news")
    await answer.hang()


def test_every_request_of_a_page_counts_whatever_sends_it() -> None:
    async def visit(given: Rendering) -> None:
        site = given.site
        site.routes |= {
            "/": page(_EVERYTHING.encode()),
            "/first": _forward,
            "/second": _forward,
            "/third": page(b"redirected"),
            "/inner": page(b"<p>inner"),
            "/file.bin": page(b"x", Content_Type="application/octet-stream"),
            "/worker.js": page(_WORKER, Content_Type="text/javascript"),
            "/from-worker": page(b"worked"),
            "/events": _events,
            "/socket": _socket,
            "/sockets": page(_SOCKET),
        }
        found = await given.source.poll(lease_of(f"{site.url}/"))
        assert found.content is not None, found.problem
        (said,) = [part for part in found.content.decode().split("<p ") if "said" in part[:10]]
        assert set(said.partition(">")[2].partition(" <")[0].split()) >= {"redirected", "worked", "undefined"}
        own = {"/", "/inner", "/file.bin", "/worker.js", "/from-worker", "/events"}
        assert set(site.paths()) == {*own, "/first", "/second", "/third"}  # and no /window
        assert found.requests == len(site.paths())
        site.seen.clear()
        found = await given.source.poll(lease_of(f"{site.url}/sockets"))
        assert b">news</p>" in (found.content or b"")
        assert found.requests == len(site.paths()) == 2

    with_browser(visit, respect_robots=False)


def test_a_request_that_stays_open_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.http.rendering.visit_requests._LONGEST_WAIT_S", 0.2)

    async def visit(given: Rendering) -> None:
        given.site.routes |= {"/": page(_FOR_NEWS), "/news": _hang}
        found = await given.source.poll(lease_of(f"{given.site.url}/"))
        assert b"words" in (found.content or b""), found.problem

    with_browser(visit, timeout="1h")


def test_a_page_that_sends_too_many_requests_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.http.rendering.page_visit.MOST_REQUESTS", 20)

    async def visit(given: Rendering) -> None:
        given.site.routes |= {"/": page(_MANY), "/some": page(b"x"), "/window": page(b"")}
        found = await given.source.poll(lease_of(f"{given.site.url}/"))
        assert found.kind == "failed"
        assert found.problem == "not rendered: the page sends more than 20 requests"
        assert len(given.site.paths()) <= found.requests == 20

    with_browser(visit, respect_robots=False, timeout="1h")


def test_an_answer_that_is_a_file_is_taken_as_it_is() -> None:
    async def visit(given: Rendering) -> None:
        given.site.routes["/"] = page(b"<p>a file", Content_Disposition='attachment; filename="a.html"')
        found = await given.source.poll(lease_of(f"{given.site.url}/"))
        assert (found.kind, found.content) == ("content", b"<p>a file")

    with_browser(visit)
