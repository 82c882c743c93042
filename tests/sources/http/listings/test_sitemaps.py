"""Sitemaps: what they list and what is wrong with them."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.listings.feeds import read_feed
from afresh.sources.http.listings.sitemaps import MAX_ENTRIES, read_sitemap, w3c_date_s
from afresh.values.listing import ListingEntry

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


@pytest.mark.parametrize("packed", [URLSET, gzip.compress(URLSET), b"\xef\xbb\xbf" + URLSET])
def test_a_sitemap_may_be_plain_gzipped_or_have_a_byte_order_mark(packed: bytes) -> None:
    sitemap = read_sitemap(packed, AT)
    assert sitemap.problem == ""
    one, two, three = sitemap.entries
    assert one.key == "http://a.test/1?a=1&b=2"
    assert one.modified_s == 1714550400.0
    assert one.prior_rate_per_s == pytest.approx(1 / 86400)
    assert (two.mark, two.modified_s, two.prior_rate_per_s) == ("soon", None, None)
    assert three == ListingEntry("http://a.test/3")


def test_an_index_names_sitemaps() -> None:
    sitemap = read_sitemap(INDEX, AT)
    assert (sitemap.children, sitemap.entries) == (("http://a.test/1.xml.gz",), ())


def test_a_plain_list_of_addresses() -> None:
    sitemap = read_sitemap(b"http://a.test/1\r\nhttps://a.test/2\n\n", AT)
    assert [entry.key for entry in sitemap.entries] == ["http://a.test/1", "https://a.test/2"]


def test_entries_before_an_error_are_kept() -> None:
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


def test_a_bomb_in_a_bomb_is_stopped_by_what_was_received() -> None:
    inner = gzip.compress(b"http://a.test/1\n" * 6_000_000)  # 96 MB
    wire = gzip.compress(inner)
    tracemalloc.start()
    sitemap = read_sitemap(inner, AT, len(wire))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(wire) < 2_000
    assert "decompression bomb" in sitemap.problem
    assert peak < 40_000_000


def test_lines_are_read_as_they_arrive() -> None:
    text = "http://a.test/é\r\nhttp://a.test/2\rhttp://a.test/" + "x" * 100_000 + "\nhttp://a.test/3"
    for encoding in ("utf-8", "utf-16"):
        sitemap = read_sitemap(gzip.compress(text.encode(encoding)), AT)
        assert [entry.key for entry in sitemap.entries] == [
            "http://a.test/é",
            "http://a.test/2",
            "http://a.test/3",
        ]
        assert sitemap.problem == "some entries have no valid address"


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
