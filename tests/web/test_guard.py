"""What must not pass: other names, other sites, no token, too much at once, odd paths, HTML in names."""

from __future__ import annotations

import hmac
import socket
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from tests.web.serving import HOSTILE, PLAIN, TOKEN, Client, dashboard, engine_of

from afresh.web.bounded_connection import MOST_CONNECTIONS
from afresh.web.guard import MOST_BODY_BYTES

WRITES: list[tuple[str, str, object]] = [
    ("POST", "/api/v1/items", {"keys": ["https://x.example/"]}),
    ("PATCH", f"/api/v1/item?{urlencode({'key': PLAIN})}", {"weight": 9}),
    ("POST", f"/api/v1/item/poll?{urlencode({'key': PLAIN})}", None),
    ("POST", "/api/v1/notices", {"keys": [PLAIN]}),
    ("PUT", "/api/v1/budget", {"requests": "9/s"}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
@pytest.mark.parametrize("given", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], "ä" * 20])
def test_nothing_is_written_without_the_token(
    web: Client, method: str, path: str, body: object, given: str | None
) -> None:
    before = web.engine.store.items.edits(0).number
    headers = {} if given is None else {"Authorization": f"Bearer {given}".encode().decode("latin-1")}
    answer = web.ask(method, path, body, headers=headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.problem()
    assert web.engine.store.items.edits(0).number == before
    assert web.engine.current().budget.requests == 2.0


def test_the_token_is_compared_in_a_time_that_tells_nothing(
    web: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, token: bytes) -> bool:
        asked.append((given, token))
        return hmac.compare_digest(given, token)

    monkeypatch.setattr("afresh.web.token.hmac", SimpleNamespace(compare_digest=compare))
    for method, path, body in WRITES:
        asked.clear()
        web.ask(method, path, body, token="wrong")
        assert asked == [(b"wrong", TOKEN.encode())]  # so, and in no other way beside it


def test_a_project_without_a_token_is_read_only(tmp_path: Path) -> None:
    with engine_of(tmp_path) as engine, dashboard(engine, token=None) as web:
        assert "Read only" in web.get("/").text
        for method, path, body in WRITES:
            assert web.ask(method, path, body, token="anything-at-all-here").status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8321", "", "a b", "127.0.0.1@evil.example", "x/y"]
)
def test_another_name_is_refused(web: Client, host: str) -> None:
    for path in ("/", "/api/v1/status", "/live", "/metrics"):
        answer = web.get(path, Host=host)
        assert answer.status in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:8321"])
def test_our_own_names_are_answered(web: Client, host: str) -> None:
    assert web.get("/healthz", Host=host).status == 200


def test_a_request_without_host_is_refused(web: Client) -> None:
    name, port = web.host.split(":")
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://[::1"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_can_change_nothing_even_with_the_token(web: Client, headers: dict[str, str]) -> None:
    for method, path, body in WRITES:
        assert web.ask(method, path, body, headers=headers, token=TOKEN).status == 403


@pytest.mark.parametrize("path", ["/", "/changes.atom?content=diff", "/api/v1/changes?wait=60s", "/live"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_cannot_keep_the_server_busy(web: Client, path: str, site: str) -> None:
    sent = {"Sec-Fetch-Site": site}
    for more in ({"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, {"Sec-Fetch-Mode": "cors"}, {}):
        assert web.ask("GET", path, headers=sent | more).status == 403
    framed = sent | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert web.ask("GET", path, headers=framed).status == 403


def test_a_link_of_another_site_may_be_followed(web: Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert web.ask("GET", "/", headers=link).status == 200
    assert web.ask("GET", "/", headers={"Sec-Fetch-Site": "none"}).status == 200


@pytest.mark.parametrize("given", ["", "Authorization: Bearer wrong\r\n"])
@pytest.mark.parametrize("path", ["/api/v1/observations", "/api/v1/items"])
def test_no_body_is_read_without_the_token(web: Client, path: str, given: str) -> None:
    name, port = web.host.split(":")
    head = f"POST {path} HTTP/1.1\r\nHost: {web.host}\r\n{given}Content-Length: 900000\r\n\r\n"
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


def test_a_form_of_another_site_is_refused(web: Client) -> None:
    kinds = ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x")
    for kind in kinds:
        sent = {"Content-Type": kind, "Origin": "https://evil.example"}
        assert web.ask("POST", "/api/v1/items", headers=sent, raw=b"keys=x").status == 403
        # And without an Origin, as an old browser would send it: it brings no token.
        assert web.ask("POST", "/api/v1/items", headers={"Content-Type": kind}, raw=b"keys=x").status == 401
        assert (
            web.ask("POST", "/api/v1/items", headers={"Content-Type": kind}, raw=b"x", token=TOKEN).status
            == 422
        )


def test_a_body_beyond_the_bound_is_refused(web: Client) -> None:
    large = b'{"keys": ["' + b"x" * MOST_BODY_BYTES + b'"]}'
    sent = {"Content-Type": "application/json"}
    assert web.ask("POST", "/api/v1/notices", headers=sent, raw=large, token=TOKEN).status == 413


def test_a_body_of_unsaid_length_is_read_up_to_the_bound(web: Client) -> None:
    name, port = web.host.split(":")
    head = f"POST /api/v1/notices HTTP/1.1\r\nHost: {web.host}\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(head.encode())
        for _ in range(MOST_BODY_BYTES // 0x10000 + 1):
            connection.sendall(chunk)
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come_is_not_waited_for(web: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.web.guard.MOST_BODY_S", 0.2)
    name, port = web.host.split(":")
    head = f"POST /api/v1/notices HTTP/1.1\r\nHost: {web.host}\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += "Content-Length: 100\r\n\r\n{"
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    "place", ["[" * 8000, "[1, " + "9" * 40 + "]", "[" + "9" * 4000 + ", 1]", "[1]", "{}"]
)
@pytest.mark.parametrize("path", ["/items", "/api/v1/items"])
def test_a_cursor_that_is_none_is_refused(web: Client, path: str, place: str) -> None:
    mark = web.get("/api/v1/items?limit=1").json()["cursor"].partition("[")[0]
    answer = web.get(f"{path}?{urlencode({'cursor': mark + place})}")
    assert answer.status == 400
    assert len(answer.body) < 20_000


@pytest.mark.parametrize(
    "path",
    [
        "/static/../afresh.toml",
        "/static/..%2f..%2fweb.token",
        "/static/%2e%2e/%2e%2e/web.token",
        "/static//etc/passwd",
        "/static/web.token",
        "/web.token",
        "/afresh.db",
        "//etc/passwd",
        "/static/afresh.css%00.js",
    ],
)
def test_only_our_own_files_are_served(web: Client, path: str) -> None:
    answer = web.get(path)
    assert answer.status == 404
    assert b"root:" not in answer.body


def test_every_answer_carries_the_guards(web: Client) -> None:
    for path in (
        "/",
        "/items",
        "/plan",
        "/sources",
        "/api/v1/status",
        "/static/afresh.css",
        "/nothing",
        "/healthz",
    ):
        headers = web.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_names_and_copies_with_html_are_harmless(web: Client) -> None:
    item = web.get(f"/item?{urlencode({'key': HOSTILE})}")
    assert item.status == 200
    pages = [item.text, web.get("/items?text=script").text, web.get("/plan").text]
    pages.append(web.get(f"/items?{urlencode({'text': HOSTILE})}").text)
    pages.append(web.get(f"/item?{urlencode({'key': '<script>alert(2)</script>'})}").text)
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in item.text
    assert "&lt;script&gt;alert" in item.text


def test_reading_may_need_the_token_too(tmp_path: Path) -> None:
    basic = {"Authorization": f"Basic {b64encode(f'me:{TOKEN}'.encode()).decode()}"}
    with engine_of(tmp_path) as engine, dashboard(engine, read_token=True) as web:
        for path in (
            "/",
            "/api/v1/status",
            "/metrics",
            "/live",
            "/static/afresh.css",
            "/api/v1/openapi.json",
        ):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic bWU6d3Jvbmc="}):
                refused = web.ask("GET", path, headers=headers)
                assert (refused.status, refused.headers["www-authenticate"][:5]) == (401, "Basic"), path
            if path != "/live":
                assert web.ask("GET", path, token=TOKEN).status == 200
                assert web.ask("GET", path, headers=basic).status == 200
        for method, path, body in WRITES:  # a browser sends a password by itself, so it changes nothing
            assert web.ask(method, path, body, headers=basic).status == 401
        assert web.get("/healthz").status == web.get("/readyz").status == 200


def test_idle_connections_keep_nobody_out_and_end(web: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.web.bounded_connection.HEAD_S", 0.2)
    name, port = web.host.split(":")
    idle = [socket.create_connection((name, int(port)), timeout=30) for _ in range(MOST_CONNECTIONS + 20)]
    try:
        idle[-1].sendall(b"GET / HTTP/1.1\r\nHost: ")  # a head that never ends
        assert web.get("/healthz").status == 200
        assert web.get("/").status == 200
        assert [connection.recv(1) for connection in idle] == [b""] * len(idle)
    finally:
        for connection in idle:
            connection.close()
