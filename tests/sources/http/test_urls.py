"""Web addresses: politeness groups, targets of redirects, and what is refused."""

from __future__ import annotations

from urllib.parse import urldefrag, urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.urls import display_url, host_group, origin, resolve_link
from afresh.values.errors import UsageError

PIECES = st.lists(
    st.sampled_from(
        [
            "http://",
            "https://",
            "a.test",
            "/",
            ".",
            "..",
            "x",
            "?",
            "#",
            ":80",
            "@",
            "%2F",
            " ",
            "é",
            "[",
            "\\",
        ]
    ),
    max_size=8,
).map("".join)


@pytest.mark.parametrize(
    ("url", "group"),
    [
        ("http://A.test/", "a.test"),
        ("https://a.test:443", "a.test"),
        ("http://a.test:443/", "a.test:443"),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
    ],
)
def test_groups(url: str, group: str) -> None:
    assert host_group(url) == group


@pytest.mark.parametrize(
    "url",
    ["", "a.test", "ftp://a.test/", "http://", "http://a.test:x/", "http://[::1", "http://a.test/a b",
     "http://a.test/\n", "http://u:p@a.test/", "http://a.test/" + "x" * 9000],
)  # fmt: skip
def test_addresses_that_cannot_be_polled_are_refused_without_passwords(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        host_group(url)
    assert "u:p" not in str(caught.value)
    assert len(str(caught.value)) < 400


@given(PIECES, st.sampled_from(["http://a.test/b/c", "https://b.test/?q"]))
@settings(deadline=None)
def test_a_redirect_leads_where_the_standard_says_or_nowhere(location: str, base: str) -> None:
    target = resolve_link(base, location)
    if target is not None:
        assert target == urldefrag(urljoin(base, location.strip()))[0].replace(" ", "%20")
        assert host_group(target)
        assert resolve_link(base, target) == target


def test_origins_tell_schemes_and_hosts_apart() -> None:
    urls = ["http://a.test/1", "http://a.test:80/2", "https://a.test/", "http://b.test/"]
    assert [origin(url) == origin(urls[0]) for url in urls] == [True, True, False, False]


def test_long_addresses_are_cut_for_people() -> None:
    assert len(display_url("http://a.test/" + "x" * 500)) == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("port", [1, 80, 443, 8000, 8443, 10000, 39061, 50000, 59999, 60000, 65535])
def test_a_port_belongs_to_the_group_unless_it_is_the_usual_one(scheme: str, port: int) -> None:
    usual = port == {"http": 80, "https": 443}[scheme]
    assert host_group(f"{scheme}://a.test:{port}/x") == ("a.test" if usual else f"a.test:{port}")


@pytest.mark.parametrize("port", ["65536", "99999", "x", "-1"])
def test_a_port_out_of_range_is_refused(port: str) -> None:
    with pytest.raises(UsageError):
        host_group(f"http://a.test:{port}/x")
