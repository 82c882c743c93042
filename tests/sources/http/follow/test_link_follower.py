"""Links of hostile pages cost the event loop nothing, and what comes back from the parser is limited."""

from __future__ import annotations

import asyncio

import pytest

from afresh.sources.http.fetcher import Reply
from afresh.sources.http.follow import scope
from afresh.sources.http.follow.addresses import normal_address
from afresh.sources.http.follow.link_follower import FollowedPage, LinkFollower
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.follow.site_page import SiteRules, read_site_page
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.values.lease import Lease

HOME = "http://a.test/"
HTML = {"content-type": "text/html"}


def follow(body: bytes) -> FollowedPage:
    async def main() -> FollowedPage:
        with ParserPool(1).joined() as parsers:
            follower = LinkFollower(FollowSettings(start=(HOME,)), parsers)
            lease = Lease(1, HOME, "web", "a.test", 0, 0.0)
            return await follower.follow(lease, HOME, Reply(status=200, headers=HTML, body=body))

    return asyncio.run(main())


def test_no_link_of_a_large_page_is_looked_at_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 links of 900 characters each stopped all polls for ten seconds."""
    looked_at = 0

    def counted(address: str, dropped: tuple[str, ...] = ()) -> str | None:
        nonlocal looked_at
        looked_at += 1
        return normal_address(address, dropped)

    monkeypatch.setattr(scope, "normal_address", counted)
    page = b"".join(b"<a href=/%s%d>" % (b"%41" * 20, number) for number in range(3_000))
    found = follow(page)
    assert found.links is not None
    assert len(found.links.keys) == 3_000
    assert looked_at < 10


def test_a_base_that_makes_short_links_long_ends_with_words() -> None:
    base = b'<base href="http://a.test/%s/">' % (b"a" * 7_000)
    page = base + b"".join(b"<a href=%d>" % number for number in range(20_000))
    with pytest.raises(ParseBudgetError, match=r"memory|processor"):
        follow(page)


def test_traps_of_one_page_are_few() -> None:
    rules = SiteRules(FollowSettings(start=(HOME,)), {}, HOME)
    page = b"".join(b"<a href=/%s%d>" % (b"a" * 1_100, number) for number in range(300))
    found = read_site_page(page, "text/html", HOME, rules)
    assert (len(found.links), len(found.traps)) == (0, 100)
