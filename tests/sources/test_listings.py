"""Sitemaps and feeds: what they list, what is wrong with them, and what is new since the last time."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.listings.feeds import read_feed
from afresh.sources.http.listings.sitemaps import MAX_ENTRIES, read_sitemap, w3c_date_s
from afresh.values.listing import ListingEntry, compare_listing

AT = "http://a.test/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET = f"""<?xml version="1.0" encoding="UTF-8"?><urlset {NAMESPACE}>
<url><loc> http://a.test/1?a=1&amp;b=2 </loc><lastmod>2024-05-01T10:00:00+02:00</lastmod>
<changefreq>Daily</changefreq><priority>0.8</priority></url>
<url><loc>http://a.test/2</loc><lastmod>soon</lastmod><changefreq>often</changefreq><priority>9</priority></url>
<url><loc>/3</loc></url></urlset>""".encode()
INDEX = (
    f"<sitemapindex {NAMESPACE}><sitemap><loc>http://a.test/1.xml.gz</loc></sitemap></sitemapindex>".encode()
)
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
<entry><id>1</id><title>One</title><link href="/1"/><updated>2024-05-01T00:00:00Z</updated></entry>
<entry><id>2</id><title>Two</title><link href="http://b.test/2"/></entry></feed>"""


@pytest.mark.parametrize("packed", [URLSET, gzip.compress(URLSET), b"\xef\xbb\xbf" + URLSET])
def test_a_sitemap_plain_gzipped_or_marked(packed: bytes) -> None:
    sitemap = read_sitemap(packed, AT)
    assert sitemap.problem == ""
    one, two, three = sitemap.entries
    assert one.key == "http://a.test/1?a=1&b=2"
    assert (one.modified_s, one.priority) == (1714550400.0, 0.8)
    assert one.prior_rate_per_s == pytest.approx(1 / 86400)
    assert (two.mark, two.modified_s, two.prior_rate_per_s, two.priority) == ("soon", None, None, None)
    assert three == ListingEntry("http://a.test/3")


def test_an_index_names_sitemaps() -> None:
    sitemap = read_sitemap(INDEX, AT)
    assert (sitemap.children, sitemap.entries) == (("http://a.test/1.xml.gz",), ())


def test_a_plain_list_of_addresses() -> None:
    sitemap = read_sitemap(b"http://a.test/1\r\nhttps://a.test/2\n\n", AT)
    assert [entry.key for entry in sitemap.entries] == ["http://a.test/1", "https://a.test/2"]


def test_what_came_before_a_mistake_is_kept() -> None:
    sitemap = read_sitemap(URLSET[:-30], AT)
    assert len(sitemap.entries) == 2
    assert "not well-formed XML" in sitemap.problem
    half = gzip.compress(URLSET)
    assert "breaks off" in read_sitemap(half[:-9], AT).problem


@pytest.mark.parametrize(
    "evil",
    [
        b'<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>http://a.test/&a;</loc></url></urlset>',
        b'<!DOCTYPE x SYSTEM "http://evil.test/x.dtd"><urlset/>',
        b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><urlset><url><loc>&f;</loc></url></urlset>',
    ],
)
def test_dtds_and_entities_are_refused(evil: bytes) -> None:
    assert read_sitemap(evil, AT).problem == "refused: XML with a DTD or entities"
    assert read_sitemap(evil, AT).entries == ()


def test_a_bomb_is_stopped() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 50_000_000)
    assert "decompression bomb" in read_sitemap(bomb, AT).problem


def test_entries_are_bounded_and_fields_too() -> None:
    many = b"<urlset>" + b"<url><loc>/x</loc></url>" * (MAX_ENTRIES + 1) + b"</urlset>"
    sitemap = read_sitemap(many, AT)
    assert len(sitemap.entries) == MAX_ENTRIES
    assert "the rest is not read" in sitemap.problem
    long = b"<urlset><url><loc>/" + b"x" * 5_000_000 + b"</loc></url></urlset>"
    assert read_sitemap(long, AT).problem == "some entries have no valid address"


@given(st.binary(max_size=400))
@settings(deadline=None)
def test_no_bytes_make_sitemaps_or_feeds_fail(body: bytes) -> None:
    for part in (body, b"<urlset><url><loc>" + body, b"<rss version='2.0'><channel><item>" + body):
        assert isinstance(read_sitemap(part, AT).problem, str)
        assert isinstance(read_feed(part, AT).problem, str)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970", 0.0),
        ("1970-02", 2678400.0),
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T00:00:01.5", 1.5),
        ("9", None),
    ],
)
def test_w3c_dates(text: str, seconds: float | None) -> None:
    assert w3c_date_s(text) == seconds


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


def test_a_feeds_own_pace() -> None:
    rss = "<rss version='2.0' xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'><channel>{}</channel></rss>"
    paces = {
        "<ttl>30</ttl>": 1800.0,
        "<ttl>soon</ttl>": None,
        "<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>": 21600.0,
        "": None,
    }
    for inside, pace_s in paces.items():
        assert read_feed(rss.format(inside).encode(), AT).again_after_s == pace_s


def test_feeds_with_entities_are_refused_and_pages_are_no_feeds() -> None:
    assert "refused" in read_feed(b'<!DOCTYPE r [<!ENTITY a "b">]><rss/>', AT).problem
    assert read_feed(b"<html><p>hello</p></html>", AT).problem == "not a feed: neither RSS nor Atom"


def test_a_body_that_is_the_name_of_a_file_opens_no_file(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(ATOM)
    assert read_feed(str(path).encode(), AT).entries == ()


KEYS = st.sampled_from("abcdef")


@given(
    st.dictionaries(KEYS, st.sampled_from(["", "1", "2"])),
    st.dictionaries(KEYS, st.sampled_from(["", "1", "2"])),
)
@settings(deadline=None)
def test_news_turn_the_old_list_into_the_new(before: dict[str, str], now: dict[str, str]) -> None:
    entries = [ListingEntry(key, mark) for key, mark in now.items()]
    found = compare_listing(before, entries, complete=True)
    assert set(before) - set(found.deaths) | set(found.births) == set(now)
    assert set(found.notices) == {
        key for key in set(before) & set(now) if now[key] and now[key] != before[key]
    }
    assert compare_listing(before, entries, complete=False).deaths == ()
    assert compare_listing(now, entries, complete=True) == compare_listing({}, [], complete=True)
