"""The proxy serves only visits that it knows, checks every address, and counts what a visit receives."""

from __future__ import annotations

import asyncio

import pytest
from tests.sources.http.fake_names import FakeNames
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


@pytest.mark.parametrize("tunnel", [False, True])
def test_a_name_whose_address_turns_private_is_refused_and_none_is_asked_for_twice(tunnel: bool) -> None:
    """A name of an attacker (DNS rebinding): its first address is public, the next one is this machine."""

    async def work() -> None:
        async with AppSite() as site:
            opened: list[tuple[str, int]] = []

            async def connect(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                opened.append((address, port))  # nothing leaves this machine
                return await asyncio.open_connection("127.0.0.1", site.port)

            names = FakeNames({"rebind.test": ["8.8.8.8", "127.0.0.1", "10.0.0.7", "169.254.169.254"]})
            proxy = LoopbackProxy(resolver=names, connect=connect)
            await proxy.start()
            visit = proxy.open_visit(100_000)
            inside = "GET /file.txt HTTP/1.1\r\nHost: rebind.test\r\nConnection: close\r\n\r\n"
            line = "CONNECT rebind.test:80" if tunnel else "GET http://rebind.test/file.txt"
            rest = inside if tunnel else ""
            assert WORDS in await ask(proxy, line, visit, rest, until=WORDS)
            # The address that was checked is the one that is connected to: it is not resolved again.
            assert (opened, names.asked) == ([("8.8.8.8", 80)], ["rebind.test"])
            for reason in ("127.0.0.1, a loopback", "10.0.0.7, a private", "169.254.169.254, a link-local"):
                assert b"403" in (await ask(proxy, line, visit, rest))[:20]
                assert visit.refused["rebind.test"].startswith(f"rebind.test leads to {reason} address")
            assert (len(opened), len(site.seen)) == (1, 1)
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
