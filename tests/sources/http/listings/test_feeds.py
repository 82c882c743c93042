"""Feeds: what they list, how often they ask to be read, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

from afresh.sources.http.listings.feeds import read_feed
from afresh.values.listing import compare_listing

AT = "http://a.test/feed.xml"
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
<entry><id>1</id><title>One</title><link href="/1"/><updated>2024-05-01T00:00:00Z</updated></entry>
<entry><id>2</id><title>Two</title><link href="http://b.test/2"/></entry></feed>"""


def test_an_atom_feed() -> None:
    feed = read_feed(ATOM, "http://a.test/feed")
    assert [entry.key for entry in feed.entries] == ["http://a.test/1", "http://b.test/2"]
    assert feed.entries[0].modified_s == 1714521600.0
    assert feed.problem == ""
    changed = read_feed(ATOM.replace(b"One", b"One, corrected"), "http://a.test/feed")
    before = {entry.key: entry.mark for entry in feed.entries}
    assert compare_listing(before, changed.entries, complete=False).notices == ("http://a.test/1",)


def test_an_entry_with_a_publishing_date_only() -> None:
    rss = b"<rss version='2.0'><channel><item><link>http://a.test/1</link>%s</item></channel></rss>"
    dated = rss % b"<pubDate>Wed, 01 May 2024 00:00:00 GMT</pubDate>"
    assert [entry.modified_s for entry in read_feed(dated, AT).entries] == [1714521600.0]


def test_a_feed_says_how_often_it_is_to_be_read() -> None:
    rss = "<rss version='2.0' xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'><channel>{}</channel></rss>"
    intervals = {
        "<ttl>30</ttl>": 1800.0,
        "<ttl>soon</ttl>": None,
        "<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>": 21600.0,
        "": None,
    }
    for inside, interval_s in intervals.items():
        assert read_feed(rss.format(inside).encode(), AT).again_after_s == interval_s


def test_feeds_with_entities_are_refused_and_pages_are_no_feeds() -> None:
    assert "refused" in read_feed(b'<!DOCTYPE r [<!ENTITY a "b">]><rss/>', AT).problem
    assert read_feed(b"<html><p>hello</p></html>", AT).problem == "not a feed: neither RSS nor Atom"


def test_a_body_that_is_the_name_of_a_file_opens_no_file(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(ATOM)
    assert read_feed(str(path).encode(), AT).entries == ()


def test_the_hub_of_a_feed_is_found_in_atom_and_rss() -> None:
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="http://plain.test/"/>
    <link rel="hub" href="https://hub.test/"/><link rel="self" href="/feed"/></feed>"""
    found = read_feed(atom, "http://a.test/x")
    assert (found.hub, found.topic) == ("https://hub.test/", "http://a.test/feed")
    rss = b"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
    <atom:link rel="hub" href="https://hub.test/"/></channel></rss>"""
    assert (read_feed(rss, "http://a.test/x").hub, read_feed(rss, "http://a.test/x").topic) == (
        "https://hub.test/",
        "",
    )
    for hub in ("ftp://hub.test/", "javascript:x", "https://hub.test/" + "x" * 3000, ""):
        none = f'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="{hub}"/></feed>'
        assert read_feed(none.encode(), "http://a.test/x").hub == ""
