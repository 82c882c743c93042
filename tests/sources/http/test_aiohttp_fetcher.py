"""Where the fetcher may connect to: not to private networks, by whatever way; and DNS, TLS and proxies."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from tests.servers.site import Answer, Handler, Seen, Site, page, redirect
from tests.sources.http.fake_names import FakeNames
from tests.sources.polling import SetClock, lease_of, quick_settings

from afresh.sources.context import SourceContext
from afresh.sources.http.aiohttp_fetcher import (
    AiohttpFetcher,
    CheckedResolver,
    PrivateAddressError,
    describe_error,
)
from afresh.sources.http.fetcher import Reply, Request, ResponseLimits
from afresh.sources.http.source import HttpSource
from afresh.sources.http.statuses import host_condition
from afresh.sources.secrets import Secret

QUICK = ResponseLimits(connect_s=1.5, idle_s=1.0, total_s=1.5)
# A certificate that nobody has signed, for 127.0.0.1, good for nothing but this test.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBkTCCATagAwIBAgIUEwyoaVz0hKM4eROsRMgbQ+KMMNYwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTExNTIyMjgwM1oYDzIxMjYxMDIy
MjIyODAzWjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQQhVXZ0ov2zGwoi1ZchQ8Op3cIJNB0K0X0ncLVhrcae+6V2RKNAwI1
5Xv7ESQp8WPNbUCTkm01p/whWuZPyEuuo2QwYjAdBgNVHQ4EFgQUPL9nUw72JcWb
QDsSRKxqPWeZqWUwHwYDVR0jBBgwFoAUPL9nUw72JcWbQDsSRKxqPWeZqWUwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0kAMEYC
IQDjZOnNUpsk4cP3tqo8MEcTb6cf3Fkw5wJixzwDmLvI+gIhAKcPPL+GneanqDmz
nVdj06Ml61E+Wizr8ky1v4pxePk+
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgRxT1KOvpoQ+1lH9H
VNpzxCaHdwQiQoVqdasfD4U6lzyhRANCAAQQhVXZ0ov2zGwoi1ZchQ8Op3cIJNB0
K0X0ncLVhrcae+6V2RKNAwI15Xv7ESQp8WPNbUCTkm01p/whWuZPyEuu
-----END PRIVATE KEY-----
"""


def fetch(url: str, fetcher: AiohttpFetcher) -> Reply:
    async def run() -> Reply:
        try:
            return await fetcher.fetch(Request(url, limits=QUICK))
        finally:
            await fetcher.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://0.0.0.0/",
        "http://localhost/",
        "http://LOCALHOST./",
    ],
)
def test_private_addresses_and_names_of_this_machine_are_refused(url: str) -> None:
    reply = fetch(url, AiohttpFetcher())
    assert (reply.trouble, reply.status) == ("private", None)
    assert reply.problem.startswith("refused: ")


@pytest.mark.parametrize(
    "url", ["http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://0177.0.0.1/"]
)
def test_odd_spellings_of_private_addresses_are_not_fetched(url: str) -> None:
    assert fetch(url, AiohttpFetcher()).trouble in ("private", "url")


def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    reply = fetch("http://sly.test/", AiohttpFetcher(resolver=FakeNames({"sly.test": ["10.0.0.7"]})))
    assert reply.problem == "refused: sly.test leads to 10.0.0.7, a private address"


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    async def run() -> None:
        async with Site({"/": page(b"here")}) as site:
            names = FakeNames({"site.test": ["127.0.0.1", "127.9.9.9"]})
            fetcher = AiohttpFetcher(resolver=names, trusted_hosts=["site.test"])
            reply = await fetcher.fetch(Request(f"http://site.test:{site.port}/", limits=QUICK))
            await fetcher.close()
            assert (reply.body, names.asked) == (
                b"here",
                ["site.test"],
            )  # a second question would get 127.9.9.9

    asyncio.run(run())


@pytest.mark.parametrize("respect_robots", [True, False])
def test_a_name_that_leads_to_a_private_address_costs_no_part_of_the_budget(respect_robots: bool) -> None:
    admitted: list[str] = []

    async def admit(group: str) -> None:
        admitted.append(group)

    async def run() -> None:
        fetcher = AiohttpFetcher(resolver=FakeNames({"sly.test": ["10.0.0.7"]}))
        settings = quick_settings(allow_private=False, respect_robots=respect_robots)
        source = HttpSource(settings, SourceContext(admit=admit), fetcher)
        fetched = await source.poll(lease_of("http://sly.test/"))
        assert (fetched.kind, fetched.requests, admitted) == ("refused", 0, [])
        assert fetched.problem.startswith("refused: sly.test leads to 10.0.0.7, a private address")
        await source.close()

    asyncio.run(run())


def test_a_name_is_resolved_before_its_first_request_and_again_after_a_refusal() -> None:
    async def run() -> None:
        names = FakeNames({"rebind.test": ["8.8.8.8", "127.0.0.1"]})
        fetcher = AiohttpFetcher(resolver=names)
        url = "http://rebind.test/"
        assert await fetcher.check_url(url) is None
        assert await fetcher.check_url(url) is None
        assert len(names.asked) == 1
        reply = await fetcher.fetch(Request(url, limits=QUICK))
        refused = await fetcher.check_url(url)
        await fetcher.close()
        assert refused is not None
        assert reply.trouble == refused.trouble == "private"

    asyncio.run(run())


@pytest.mark.parametrize("respect_robots", [True, False])
def test_a_redirect_to_a_name_that_turns_private_after_its_check_is_refused(respect_robots: bool) -> None:
    async def run() -> None:
        async with Site({"/secret": page(b"inside")}) as site:
            site.routes["/p"] = redirect(f"http://rebind.test:{site.port}/secret")
            names = FakeNames({"site.test": ["127.0.0.1"], "rebind.test": ["8.8.8.8", "127.0.0.1"]})
            fetcher = AiohttpFetcher(resolver=names, trusted_hosts=["site.test"])
            settings = quick_settings(allow_private=False, respect_robots=respect_robots)
            source = HttpSource(settings, SourceContext(), fetcher)
            for asked in (2, 3):  # when it is checked, and when a connection is opened; then each is refused
                fetched = await source.poll(lease_of(f"http://site.test:{site.port}/p"))
                words = "refused: rebind.test leads to 127.0.0.1, a loopback address"
                assert (fetched.kind, fetched.problem) == ("refused", words)
                assert names.asked.count("rebind.test") <= asked
            await source.close()
            assert set(site.paths()) <= {"/robots.txt", "/p"}

    asyncio.run(run())


def test_a_name_that_cannot_be_resolved_fails_only_in_the_request() -> None:
    async def run() -> None:
        fetcher = AiohttpFetcher(resolver=FakeNames({}))
        assert await fetcher.check_url("http://nowhere.test/") is None
        reply = await fetcher.fetch(Request("http://nowhere.test/", limits=QUICK))
        await fetcher.close()
        assert reply.trouble == "dns"
        assert await fetcher.check_url("http://nowhere.test/") is None  # closed: nothing is looked up

    asyncio.run(run())


def test_every_answer_of_the_resolver_is_checked() -> None:
    async def run() -> None:
        names = CheckedResolver(FakeNames({"rebind.test": ["8.8.8.8", "127.0.0.1"]}))
        assert [answer["host"] for answer in await names.resolve("rebind.test")] == ["8.8.8.8"]
        with pytest.raises(
            PrivateAddressError, match=r"rebind\.test leads to 127\.0\.0\.1, a loopback address"
        ):
            await names.resolve("rebind.test")

    asyncio.run(run())


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.0.1",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.google.internal",
        "sly.test",
    ],
)
@pytest.mark.parametrize("respect_robots", [True, False])
def test_metadata_services_are_never_requested(host: str, respect_robots: bool) -> None:
    async def run() -> None:
        async with Site() as site:
            site.routes["/p"] = redirect(f"http://{host}/latest/")
            fetcher = AiohttpFetcher(allow_private=True, resolver=FakeNames({"sly.test": ["169.254.1.1"]}))
            settings = quick_settings(respect_robots=respect_robots)
            source = HttpSource(settings, SourceContext(), fetcher)
            for url in (f"{site.url}/p", f"http://{host}/"):
                fetched = await source.poll(lease_of(url))
                assert fetched.kind == "refused"
                assert fetched.problem.endswith(" address, never asked")
            await source.close()

    asyncio.run(run())


@pytest.mark.parametrize("respect_robots", [True, False])
@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest/", "http://localhost:{}/", "http://sly.test:{}/"]
)
def test_redirects_are_checked_like_first_requests(target: str, respect_robots: bool) -> None:
    async def run() -> None:
        async with Site({"/secret": page(b"inside")}) as site:
            site.routes["/p"] = redirect(target.format(site.port))
            names = FakeNames(
                {"site.test": ["127.0.0.1"], "sly.test": ["127.0.0.1"], "localhost": ["127.0.0.1"]}
            )
            fetcher = AiohttpFetcher(resolver=names, trusted_hosts=["site.test"])
            settings = quick_settings(allow_private=False, respect_robots=respect_robots)
            source = HttpSource(settings, SourceContext(), fetcher)
            fetched = await source.poll(lease_of(f"http://site.test:{site.port}/p"))
            await source.close()
            assert fetched.kind == "refused"
            assert fetched.problem.startswith("refused: ")
            assert set(site.paths()) <= {"/robots.txt", "/p"}

    asyncio.run(run())


def test_a_dns_server_out_of_reach_is_no_failure_of_the_host() -> None:
    away = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    reply = fetch("http://a.test/", AiohttpFetcher(resolver=FakeNames({}, missing=away)))
    assert (reply.trouble, reply.host_is_down) == ("local", False)
    assert reply.problem == "no address found for a.test: Temporary failure in name resolution"


@pytest.mark.parametrize(
    ("number", "trouble"),
    [
        (errno.ENETUNREACH, "local"),
        (errno.EMFILE, "local"),
        (errno.ECONNREFUSED, "connect"),
        (errno.EHOSTUNREACH, "connect"),
    ],
)
def test_a_missing_network_is_distinguished_from_a_host_that_is_down(number: int, trouble: str) -> None:
    key = ConnectionKey("a.test", 80, False, False, None, None, None)
    error = aiohttp.ClientConnectorError(key, OSError(number, "told by the kernel"))
    assert describe_error(error, QUICK, started=False) == (trouble, "cannot connect: told by the kernel")


def test_a_name_that_does_not_exist() -> None:
    reply = fetch("http://nowhere.test/", AiohttpFetcher(resolver=FakeNames({})))
    assert (reply.trouble, reply.problem) == ("dns", "no address found for nowhere.test: no such name")
    assert reply.host_is_down


@pytest.mark.parametrize(
    "url", ["", "ftp://a.test/", "http://", "http://a.test:99999/", "http://[x]/", "http://u:pw@a.test/"]
)
def test_text_that_is_no_address_is_refused_with_a_reason(url: str) -> None:
    reply = fetch(url, AiohttpFetcher(resolver=FakeNames({})))
    assert reply.trouble == "url"
    assert "not an address to fetch" in reply.problem
    assert "pw" not in reply.problem


def test_broken_tls_and_a_self_signed_certificate_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text(CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem")

    async def speak_plainly(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def run() -> tuple[Reply, Reply]:
        fetcher = AiohttpFetcher(allow_private=True)
        plain = await asyncio.start_server(speak_plainly, "127.0.0.1", 0)
        port = plain.sockets[0].getsockname()[1]
        async with plain, Site({"/": page(b"x")}, tls=context) as own:
            try:
                none = await fetcher.fetch(Request(f"https://127.0.0.1:{port}/", limits=QUICK))
                return none, await fetcher.fetch(Request(own.url + "/", limits=QUICK))
            finally:
                await fetcher.close()

    none, unsigned = asyncio.run(run())
    assert (none.trouble, unsigned.trouble) == ("tls", "tls")
    assert none.problem.startswith("TLS failed: ")
    assert unsigned.problem == "TLS certificate is not valid: self-signed certificate"


def test_a_proxy_carries_the_request_and_its_password_is_never_shown() -> None:
    asked: list[Seen] = []

    async def proxy(seen: Seen, answer: Answer) -> None:
        asked.append(seen)
        await answer.send(b"by proxy")

    async def run() -> tuple[Reply, Reply, Reply]:
        routes: dict[str, Handler] = {"http://far.test/p": proxy}
        async with Site(routes) as site:
            names = FakeNames({"proxy.test": ["127.0.0.1"]})
            secret = Secret(f"http://user:hunter2@proxy.test:{site.port}")
            fetcher = AiohttpFetcher(proxy=secret, resolver=names)
            replies = [
                await fetcher.fetch(Request(url, limits=QUICK))
                for url in ("http://far.test/p", "http://169.254.169.254/", "http://localhost/")
            ]
            await fetcher.close()
            return replies[0], replies[1], replies[2]

    far, metadata, local = asyncio.run(run())
    assert far.body == b"by proxy"
    assert asked[0].headers["proxy-authorization"].startswith("Basic ")
    assert (metadata.trouble, local.trouble) == ("private", "private")
    assert "hunter2" not in repr((far, metadata, local))


def test_only_one_file_knows_the_http_library() -> None:
    import afresh.sources

    folder = Path(afresh.sources.__path__[0])
    knowing = [path.name for path in folder.rglob("*.py") if "import aiohttp" in path.read_text("utf-8")]
    assert knowing == ["aiohttp_fetcher.py"]


def test_a_body_that_drips_ends_with_the_least_rate_and_its_host_rests() -> None:
    clock = SetClock()

    async def drip(_seen: Seen, answer: Answer) -> None:
        await answer.raw(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n")
        while True:
            clock.time_s += 1.0
            await answer.raw(b"x")

    async def run(least_rate: float) -> Reply:
        async with Site({"/p": drip}) as site:
            fetcher = AiohttpFetcher(allow_private=True, clock=clock)
            limits = ResponseLimits(least_rate=least_rate, max_bytes=200_000)
            try:
                return await fetcher.fetch(Request(f"{site.url}/p", limits=limits))
            finally:
                await fetcher.close()

    reply = asyncio.run(run(100.0))
    assert (reply.trouble, reply.problem) == ("slow", "came with fewer than 100 bytes per second")
    assert (reply.status, host_condition(reply)) == (200, "down")
    assert reply.seconds < 60.0


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "169.254.43518", "2852039166", "168.63.129.16"]
)
@pytest.mark.parametrize("allow_private", [False, True])
def test_no_spelling_of_an_address_passes_a_proxy(host: str, allow_private: bool) -> None:
    async def check() -> Reply | None:
        fetcher = AiohttpFetcher(proxy=Secret("http://proxy.test:3128"), allow_private=allow_private)
        try:
            return await fetcher.check_url(f"http://{host}/")
        finally:
            await fetcher.close()

    reply = asyncio.run(check())
    is_never = host in ("169.254.43518", "2852039166", "168.63.129.16")
    assert (reply is not None) == (is_never or not allow_private)
    assert reply is None or reply.trouble == "private"
