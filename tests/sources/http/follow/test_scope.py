"""Which addresses belong to a site that is followed, and which names of a host are one site."""

from __future__ import annotations

import pytest

from afresh.sources.http.follow.addresses import form_of, normal_address
from afresh.sources.http.follow.scope import Scope
from afresh.sources.http.follow.settings import FollowSettings
from afresh.sources.http.settings import HttpSettings
from afresh.sources.settings import read_settings
from afresh.values.errors import UsageError


@pytest.mark.parametrize(
    ("start", "inside", "outside"),
    [
        ("https://a.test/docs/", ["/docs/", "/docs/x/y.html"], ["/", "/docs", "/docsets/"]),
        ("https://a.test/docs/index.html", ["/docs/index.html", "/docs/b.html"], ["/doc.html"]),
        ("https://a.test/docs", ["/docs", "/docs/b", "/docs?page=2"], ["/docs2", "/"]),
        ("https://a.test/", ["/", "/x"], []),
    ],
)
def test_pages_below_the_start_page_belong_to_the_site(
    start: str, inside: list[str], outside: list[str]
) -> None:
    scope = Scope(FollowSettings(start=(start,)))
    assert [path for path in inside + outside if scope.covers(f"https://a.test{path}")] == inside
    assert not any(scope.covers(f"{place}/docs/") for place in ("https://b.test", "https://a.test:8443"))


def test_files_that_are_no_pages_are_followed_only_if_a_pattern_names_them() -> None:
    start = ("https://a.test/",)
    assert not Scope(FollowSettings(start=start)).covers("https://a.test/all.zip")
    assert Scope(FollowSettings(start=start, include=("*.zip",))).covers("https://a.test/all.zip")


def test_names_of_a_host_are_one_site_once_one_redirects_to_the_other() -> None:
    scope = Scope(FollowSettings(start=("http://a.test/docs/",)))
    link = "https://www.a.test/docs/x"
    assert not scope.covers(link)
    assert scope.probe_for(link) == "https://www.a.test/docs/"  # its poll shows whether it redirects
    assert scope.is_probe("https://www.a.test/docs/")
    assert scope.learn_redirect("http://a.test/docs/", "https://www.a.test/docs/")
    assert scope.covers(link)
    assert scope.normal("http://a.test/docs/y") == "https://www.a.test/docs/y"
    assert scope.probe_for("https://www.a.test/blog/") is None
    assert not scope.learn_redirect("http://a.test/docs/z", "https://b.test/")  # another site


def test_a_redirect_that_is_turned_round_makes_no_circle() -> None:
    scope = Scope(FollowSettings(start=("http://a.test/",)))
    scope.learn_redirect("http://a.test/", "https://a.test/")
    scope.learn_redirect("https://a.test/", "http://a.test/")
    assert scope.normal("https://a.test/x") == "http://a.test/x"
    assert scope.normal("http://a.test/x") == "http://a.test/x"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://A.test:443", "https://a.test/"),
        ("http://a.test/x?#y", "http://a.test/x"),
        ("http://a.test/x;jsessionid=1A2B?b=2&PHPSESSID=3", "http://a.test/x?b=2"),
        ("http://a.test/%e2%82%ac/%41", "http://a.test/%E2%82%AC/A"),
        ("http://a.test/?sid=42", "http://a.test/?sid=42"),  # too short for the id of a session
        ("http://a.test/docs/%2e%2E/private/./x", "http://a.test/private/x"),
        ("http://a.test/docs/%2e%2e/%2e%2e/../x/.", "http://a.test/x/"),
        ("http://a.test//docs/.hidden/a..b", "http://a.test//docs/.hidden/a..b"),
        ("http://a.test/ü/\u20ac?q=ä{", "http://a.test/%C3%BC/%E2%82%AC?q=%C3%A4%7B"),
        ("ftp://a.test/", None),
    ],
)
def test_one_spelling(given: str, expected: str | None) -> None:
    assert normal_address(given) == expected


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/t/5f2b9c01d7/x", "/t/#/x"),
        ("/t/123E4567-e89b-12d3-a456-426614174000.html", "/t/#.html"),
        ("/t/sJ9dK2mZq0aLx8VtR3bY", "/t/#"),
        ("/t/python3.11/what-is-new-in-2024-for-readers", "/t/python#.#/what-is-new-in-#-for-readers"),
        ("/t/deadbeefcafe/internationalizations", "/t/deadbeefcafe/internationalizations"),
    ],
)
def test_identifiers_are_the_same_form(path: str, form: str) -> None:
    assert form_of(f"http://a.test{path}") == form


def test_an_escaped_way_out_of_the_folder_is_outside_the_scope() -> None:
    scope = Scope(FollowSettings(start=("http://a.test/docs/",)))
    address = scope.normal("http://a.test/docs/%2e%2e/private/x")
    assert address is not None
    assert scope.refusal(address) == "not below http://a.test/docs/"


def test_a_start_that_is_no_address_is_an_error() -> None:
    with pytest.raises(UsageError, match="follow: start: 'docs' is not an http or https address"):
        read_settings(HttpSettings, {"name": "web", "follow": "docs"})


def test_an_address_that_is_too_long_once_it_is_escaped_is_none() -> None:
    assert normal_address("http://a.test/" + "<" * 2000) == "http://a.test/" + "%3C" * 2000
    assert normal_address("http://a.test/" + "<" * 3000) is None
