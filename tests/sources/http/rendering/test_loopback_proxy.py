"""The proxy serves only visits that it knows, checks every address, and counts what a visit receives."""

from __future__ import annotations

import asyncio

import pytest
from tests.sources.http.rendering.app_site import AppSite

from afresh.sources.http.rendering.loopback_proxy import LoopbackProxy, Visit

WORDS = b"only words"


async def ask(
    proxy: LoopbackProxy, line: str, visit: Visit | None, rest: str = "", until: bytes = b""
) -> bytes:
    """Send one request to the proxy, and return what it answers, up to ``until`` or everything."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    known = f"Proxy-Authorization: {visit.credentials}\r\n" if visit is not None else ""
    writer.write(f"{line} HTTP/1.1\r\n{known}Proxy-Connection: keep-alive\r\nHost: x\r\n\r\n{rest}".encode())
    answer = await (reader.readuntil(until) if until else reader.read())
    writer.close()
    return answer


async def started(*, allow_private: bool) -> LoopbackProxy:
    proxy = LoopbackProxy(allow_private=allow_private)
    await proxy.start()
    return proxy


def test_requests_and_tunnels_of_a_visit_are_passed_on_and_counted() -> None:
    async def work() -> None:
        proxy, stranger = await started(allow_private=True), Visit(100)
        visit = proxy.open_visit(100_000)
        async with AppSite() as site:
            address = f"127.0.0.1:{site.port}"
            answer = await ask(proxy, f"GET http://{address}/file.txt", visit, until=WORDS)
            assert b"\r\nConnection: close\r\n" in answer
            assert visit.received > 10
            inside = f"GET /file.txt HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
            assert (await ask(proxy, f"CONNECT {address}", visit, inside, WORDS)).startswith(b"HTTP/1.1 200")
            assert [seen.path for seen in site.seen] == ["/file.txt"] * 2
            assert not any(name.lower().startswith("proxy") for seen in site.seen for name in seen.headers)
            for unknown in (None, stranger):
                assert b"407" in (await ask(proxy, f"GET http://{address}/file.txt", unknown))[:20]
            proxy.close_visit(visit)
            assert b"407" in (await ask(proxy, f"CONNECT {address}", visit))[:20]
            assert len(site.seen) == 2
        await proxy.close()
        await proxy.close()

    asyncio.run(work())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost", "[::1]", "0x7f000001", "metadata"])
def test_forbidden_addresses_are_refused_in_every_spelling(host: str) -> None:
    async def work() -> None:
        proxy = await started(allow_private=False)
        visit = proxy.open_visit(1000)
        async with AppSite() as site:
            assert b"403" in (await ask(proxy, f"GET http://{host}:{site.port}/shop", visit))[:20]
            assert b"403" in (await ask(proxy, f"CONNECT {host}:{site.port}", visit))[:20]
            assert site.seen == []
        assert list(visit.refused) == [host.strip("[]")]
        await proxy.close()

    asyncio.run(work())


def test_a_visit_that_receives_too_much_is_cut() -> None:
    async def work() -> None:
        proxy = await started(allow_private=True)
        visit = proxy.open_visit(200)
        async with AppSite() as site:
            site.routes["/large"] = site.routes["/list"]
            assert len(await ask(proxy, f"GET http://127.0.0.1:{site.port}/large", visit)) < 800
        assert visit.is_too_large
        await proxy.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    "line", ["GET /path", "GET ftp://a.test/", "NONSENSE", "CONNECT :80", "GET http://a:x/"]
)
def test_what_is_no_request_is_answered(line: str) -> None:
    async def work() -> None:
        proxy = await started(allow_private=True)
        answer = await ask(proxy, line, proxy.open_visit(1000))
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 502"))
        await proxy.close()

    asyncio.run(work())
