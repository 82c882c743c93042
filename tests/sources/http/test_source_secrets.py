"""Headers and cookies of a source go to hosts that its settings or the user name, and to no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.servers.site import Answer, Seen, Site, page, redirect
from tests.sources.polling import lease_of, quick_settings, quick_source

from afresh.sources.http.source import HttpSource
from afresh.values.errors import UsageError

SECRETS: dict[str, Any] = {"headers": {"Authorization": "Bearer t0ken"}, "cookies": {"session": "s3cret"}}


def on_two_sites(
    visit: Callable[[Site, Site, Callable[..., HttpSource]], Awaitable[None]],
) -> tuple[Site, Site]:
    """Run ``visit`` with the user's own site, a foreign one, and a function that makes a source with
    secrets."""

    async def run() -> tuple[Site, Site]:
        async with Site() as own, Site() as foreign:
            made: list[HttpSource] = []

            def make(**changes: Any) -> HttpSource:
                made.append(quick_source(**SECRETS | changes))
                return made[-1]

            await visit(own, foreign, make)
            for source in made:
                await source.close()
            return own, foreign

    return asyncio.run(run())


def had_secrets(site: Site) -> dict[str, bool]:
    """Whether the last request for each path had a secret."""
    return {seen.path: bool({"authorization", "cookie"} & set(seen.headers)) for seen in site.seen}


def test_an_item_that_only_a_listing_names_is_polled_without_secrets() -> None:
    async def visit(own: Site, foreign: Site, make: Callable[..., HttpSource]) -> None:
        for site in (own, foreign):
            site.routes |= {"/added": page(b"a"), "/listed": page(b"l")}
        source = make(feeds=[f"{own.url}/feed"])
        for site in (own, foreign):
            await source.poll(lease_of(f"{site.url}/added"))
            await source.poll(lease_of(f"{site.url}/listed", listed=True))

    own, foreign = on_two_sites(visit)
    assert had_secrets(own) == {"/robots.txt": False, "/added": True, "/listed": True}
    assert had_secrets(foreign) == {"/robots.txt": False, "/added": True, "/listed": False}


def test_secret_hosts_names_further_hosts() -> None:
    async def visit(_: Site, foreign: Site, make: Callable[..., HttpSource]) -> None:
        foreign.routes |= {"/listed": page(b"l")}
        await make(secret_hosts=[foreign.url]).poll(lease_of(f"{foreign.url}/listed", listed=True))

    assert had_secrets(on_two_sites(visit)[1])["/listed"]
    with pytest.raises(UsageError, match="ftp://a"):
        quick_settings(secret_hosts=["ftp://a"])


def test_documents_that_a_page_or_robots_names_elsewhere_are_read_without_secrets() -> None:
    async def visit(own: Site, foreign: Site, make: Callable[..., HttpSource]) -> None:
        robots = f"User-agent: *\nDisallow:\nSitemap: {foreign.url}/map.xml"
        start = f"<link rel=alternate type=application/rss+xml href={foreign.url}/feed>"
        own.routes |= {"/robots.txt": page(robots.encode()), "/": page(start.encode())}
        foreign.routes |= {
            "/map.xml": page(b"<urlset><url><loc>/a</loc></url></urlset>"),
            "/feed": page(b"<rss><channel><item><link>/b</link></item></channel></rss>"),
        }
        async for _ in make(discover=[f"{own.url}/"]).listings():
            pass

    own, foreign = on_two_sites(visit)
    assert had_secrets(own)["/"]
    assert had_secrets(foreign) == {"/robots.txt": False, "/map.xml": False, "/feed": False}


def test_a_redirect_to_another_host_is_followed_without_secrets_even_if_the_settings_name_it() -> None:
    async def visit(own: Site, foreign: Site, make: Callable[..., HttpSource]) -> None:
        own.routes |= {"/p": redirect(f"{foreign.url}/p")}
        foreign.routes |= {"/p": page(b"x")}
        source = make(secret_hosts=[foreign.url])
        assert (await source.poll(lease_of(f"{own.url}/p"))).content == b"x"

    own, foreign = on_two_sites(visit)
    assert had_secrets(own)["/p"]
    assert not had_secrets(foreign)["/p"]


def test_a_host_that_wants_the_withheld_secrets_is_explained() -> None:
    async def wants(seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 200 if "authorization" in seen.headers else 401)

    async def visit(_: Site, foreign: Site, make: Callable[..., HttpSource]) -> None:
        foreign.routes |= {"/p": wants}
        listed = await make().poll(lease_of(f"{foreign.url}/p", listed=True))
        assert "secret_hosts" in listed.problem
        assert (await make().poll(lease_of(f"{foreign.url}/p"))).kind == "content"

    on_two_sites(visit)


def test_a_secret_that_a_server_reflects_in_a_redirect_is_neither_stored_nor_told() -> None:
    async def reflect(seen: Seen, answer: Answer) -> None:
        await answer.send(b"", 301, Location=f"/new?token={seen.headers['authorization'].split()[-1]}")

    async def visit(own: Site, _: Site, make: Callable[..., HttpSource]) -> None:
        own.routes |= {"/p": reflect, "/new": page(b"x")}
        fetched = await make().poll(lease_of(f"{own.url}/p"))
        assert fetched.content == b"x"
        assert fetched.moved_to is None
        assert "t0ken" not in repr(fetched)
        assert "t0ken" not in repr(dict(fetched.validators))

    on_two_sites(visit)
