"""Listings of a site: robots.txt and a start page lead to sitemaps and feeds, each is read once."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

from tests.servers.site import Site, page
from tests.sources.polling import quick_source

from afresh.values.listing import Listing


def sitemap(*urls: str, tag: str = "url") -> bytes:
    entries = "".join(f"<{tag}><loc>{url}</loc></{tag}>" for url in urls)
    root = "urlset" if tag == "url" else "sitemapindex"
    return f"<{root}>{entries}</{root}>".encode()


def read(pages: dict[str, bytes], **changes: Any) -> tuple[list[Listing], Site]:
    """Serve ``pages`` ({} is the site's address) and read the listings that the settings name."""

    async def run() -> tuple[list[Listing], Site]:
        async with Site() as site:
            here = site.url.encode()
            site.routes |= {path: page(body.replace(b"{}", here)) for path, body in pages.items()}
            named = {
                name: [site.url + path for path in paths]
                for name, paths in changes.items()
                if name != "max_listings"
            }
            source = quick_source(**(changes | named))
            listings = [listing async for listing in source.listings()]
            await source.close()
            return listings, site

    return asyncio.run(run())


def paths(listing: Listing) -> list[str]:
    return ["/" + entry.key.split("/", 3)[3] for entry in listing.entries]


def test_a_start_page_leads_to_sitemaps_and_feeds() -> None:
    pages = {
        "/robots.txt": b"User-agent: *\nDisallow:\nSitemap: {}/index.xml",
        "/": b'<link rel="alternate" type="application/atom+xml" href="/feed"><p>hello',
        "/index.xml": sitemap("{}/1.xml", "{}/2.xml.gz", tag="sitemap"),
        "/1.xml": sitemap("{}/a", "{}/b"),
        "/2.xml.gz": gzip.compress(sitemap("/c")),
        "/feed": b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/news"/></entry></feed>',
    }
    listings, site = read(pages, discover=["/"])
    found = {listing.origin.removeprefix(site.url): (listing.kind, paths(listing)) for listing in listings}
    assert found == {
        "/": ("page", ["/"]),
        "/index.xml": ("sitemap", []),
        "/feed": ("feed", ["/news"]),
        "/1.xml": ("sitemap", ["/a", "/b"]),
        "/2.xml.gz": ("sitemap", ["/c"]),
    }
    assert [listing.complete for listing in listings] == [False, False, False, True, True]
    assert all(listing.problem == "" for listing in listings)
    assert sum(listing.requests for listing in listings) == len(site.seen) == 6


def test_a_site_that_names_nothing_is_asked_for_sitemap_xml_and_reported() -> None:
    listings, site = read({"/": b"<p>bare"}, discover=["/"])
    words = "no sitemap or feed found: add pages with --file, or follow links with --follow"
    assert [(listing.origin, listing.problem) for listing in listings] == [
        (f"{site.url}/", ""),
        (f"{site.url}/", words),  # known only after the sitemap was asked for
    ]
    assert site.paths()[-1] == "/sitemap.xml"
    assert sum(listing.requests for listing in listings) == len(site.seen) == 3
    feed = {
        "/": b'<link rel="alternate" type="application/rss+xml" href="/f">',
        "/f": b"<rss><channel/></rss>",
    }
    assert not any(listing.problem for listing in read(feed, discover=["/"])[0])


def test_a_site_whose_sitemap_only_was_guessed_is_not_said_to_have_none() -> None:
    listings, _ = read({"/": b"<p>bare", "/sitemap.xml": sitemap("{}/a")}, discover=["/"])
    assert [(paths(listing), listing.problem) for listing in listings] == [(["/"], ""), (["/a"], "")]


def test_circles_and_deep_nesting_of_sitemaps_end() -> None:
    pages = {f"/{i}.xml": sitemap(f"{{}}/{i + 1}.xml", "{}/0.xml", tag="sitemap") for i in range(20)}
    listings, site = read(pages, sitemaps=["/0.xml"])
    assert len(listings) == 4
    assert "nested more than 3 deep" in listings[-1].problem
    assert len(site.seen) == 5


def test_the_number_of_documents_is_bounded() -> None:
    pages = {"/i.xml": sitemap(*(f"{{}}/{i}.xml" for i in range(50)), tag="sitemap")}
    pages |= {f"/{i}.xml": sitemap(f"{{}}/p{i}") for i in range(50)}
    listings, site = read(pages, sitemaps=["/i.xml"], max_listings=10)
    assert len(site.seen) == 11
    assert "more than 10 documents" in listings[-1].problem


def test_a_sitemap_lists_pages_of_its_own_host_only() -> None:
    listings, _ = read({"/s.xml": sitemap("{}/mine", "http://victim.test/")}, sitemaps=["/s.xml"])
    assert paths(listings[0]) == ["/mine"]
    assert listings[0].problem == "1 entries of other hosts left out"
    assert listings[0].complete


def test_a_document_that_is_missing_or_broken_is_reported_and_removes_no_item() -> None:
    listings, _ = read(
        {"/half.xml": sitemap("{}/a")[:-5]}, sitemaps=["/none.xml", "/half.xml"], feeds=["/feed"]
    )
    none, half, feed = listings
    assert (none.problem, none.complete) == ("404 Not Found", False)
    assert "not well-formed" in half.problem
    assert (paths(half), half.complete) == (["/a"], False)
    assert feed.problem == "404 Not Found"
