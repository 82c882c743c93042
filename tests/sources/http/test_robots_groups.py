"""The groups of this program say the same as the whole file."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from afresh.sources.http.robots_groups import own_groups

FIELDS = [
    "User-agent",
    "user agent",
    "Disallow",
    "Allow",
    "Crawl-delay",
    "Sitemap",
    "Host",
    "disalow",
    "foo",
    "",
    "#",
]
VALUES = ["*", "afresh", "other", "a", "afresh*", "AFRESH", "/a", "/*b$", "/", "", "http://a.test/s.xml", "3"]
lines = st.builds(
    lambda field, colon, value, end: field + colon + value + end,
    st.sampled_from(FIELDS),
    st.sampled_from([":", ": ", " ", " : ", ""]),
    st.sampled_from(VALUES),
    st.sampled_from(["", "", " # why"]),
)


@given(st.lists(lines, max_size=14).map("\n".join))
@settings(max_examples=100)
def test_the_parser_reads_the_same_from_own_groups_as_from_the_file(text: str) -> None:
    whole, own = Protego.parse(text), Protego.parse(own_groups(text, "afresh"))
    for path in ("", "a", "ab", "x"):
        url = f"http://a.test/{path}"
        assert own.can_fetch(url, "afresh") == whole.can_fetch(url, "afresh")
    assert own.crawl_delay("afresh") == whole.crawl_delay("afresh")
    assert list(own.sitemaps) == list(whole.sitemaps)
