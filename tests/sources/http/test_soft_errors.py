"""Pages with status 200 that are not the page asked for, and pages that only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.soft_errors import ReceivedPage, SoftError, find_soft_error
from afresh.sources.linear_pattern import compile_pattern

HERE = "http://a.test/page"


def seen(
    html: str, arrived: str | None = None, *, asked: str = HERE, has_other_copy: bool = False
) -> SoftError | None:
    return find_soft_error(
        ReceivedPage(html.encode(), "text/html", asked, arrived or asked, has_other_copy=has_other_copy)
    )


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Just a moment...", "refused"),
        ("Attention Required! | Cloudflare", "refused"),
        ("Access Denied", "refused"),
        ("Are you a robot?", "refused"),
        ("503 Service Unavailable", "failed"),
        ("  Bad\n Gateway ", "failed"),
        ("Internal Server Error", "failed"),
        ("Error 502", "failed"),
    ],
)
def test_titles_of_error_pages_are_recognised(title: str, kind: str) -> None:
    found = seen(f"<html><title>{title}</title>")
    assert found is not None
    assert found[0] == kind


@pytest.mark.parametrize(
    "title",
    [
        "How captchas work",
        "Access denied: a history",
        "500 days of summer",
        "A moment",
        "Maintenance tips",
        "5020",
    ],
)
def test_titles_of_ordinary_pages_are_no_errors(title: str) -> None:
    assert seen(f"<title>{title}</title>") is None


def test_only_a_redirect_leads_to_a_login_page() -> None:
    login = "http://a.test/users/sign_in"
    assert seen("", f"{login}?back=/page") == ("refused", f"leads to a login page: {login}")
    assert seen("", login, asked=login) is None
    assert seen("", "http://a.test/logins-explained") is None


@pytest.mark.parametrize(
    ("arrived", "kind", "words"),
    [
        (
            "https://consent.b.test/m?continue=x",
            "refused",
            "leads to a cookie wall: https://consent.b.test/m",
        ),
        ("http://a.test/cookie-wall", "refused", "leads to a cookie wall"),
        ("http://a.test/sorry/index?q=1", "refused", "leads to a captcha"),
        ("http://a.test/errors/404.html", "gone", "leads to a page for missing pages"),
        ("http://a.test/", "gone", "leads to the start page, as removed pages do"),
    ],
)
def test_redirects_to_pages_that_stand_for_others(arrived: str, kind: str, words: str) -> None:
    found = seen("<title>Ours</title>", arrived, has_other_copy=True)
    assert found is not None
    assert found[0] == kind
    assert found[1].startswith(words)


def test_a_start_page_is_the_page_where_there_was_no_other() -> None:
    assert seen("<title>Ours</title>", "http://a.test/") is None
    start = "http://a.test/"
    assert seen("", "http://a.test/", asked="http://a.test/index.html", has_other_copy=True) is None
    assert seen("", "http://b.test/", asked=start, has_other_copy=True) is None


FORM = "<form><input name=user><input type='password' name=p><button>Go</button></form>"


def test_a_form_in_place_of_the_page_is_no_change() -> None:
    members = "http://a.test/members"
    assert seen(FORM, members, has_other_copy=True) == ("refused", f"leads to a login form: {members}")
    assert seen(FORM, members) is None  # it was like this from the start
    assert seen(FORM + "<p>the news", has_other_copy=True) is None  # a box for members in a corner
    assert seen(f"<title>Log in - Ours</title>{FORM}") is not None
    assert seen(f"<title>Log in - Ours</title>{FORM}", asked="http://a.test/login") is None


def test_a_captcha_with_few_words_is_no_page() -> None:
    captcha = "<div class='g-recaptcha'></div><script>var words = 'a b c';</script>"
    found = seen(f"<p>Prove it.</p>{captcha}")
    assert found == ("refused", "asks whether we are human: 2 words beside a captcha")
    assert seen(f"<p>{'many words ' * 60}</p>{captcha}") is None  # a form for comments


def test_the_words_say_what_the_title_shows() -> None:
    for title, words in (
        ("Before you continue to A", "is a cookie wall"),
        ("Access Denied", "denies access"),
    ):
        found = seen(f"<title>{title}</title>")
        assert found == ("refused", f"{words}: its title is {title!r}")


def test_a_cookie_wall_with_few_words_is_no_page() -> None:
    wall = "<p>We use cookies. You must accept them to read on.</p><button>Accept</button>"
    found = seen(wall)
    assert found is not None
    assert found[1] == "is a cookie wall: 11 words beside a button"
    assert seen(f"<p>{'many words ' * 60}</p>{wall}") is None  # a banner over a page
    assert seen("<p>How to bake cookies that children accept</p>") is None


@pytest.mark.parametrize(
    "title", ["404 Not Found", "Page not found | Ours", "Ours - 404", "404: Page not found"]
)
def test_pages_that_say_they_are_not_there_are_missing(title: str) -> None:
    found = seen(f"<title>{title}</title>")
    assert found is not None
    assert found[0] == "gone"
    assert (
        seen(f"<title>{title}</title>", asked="http://a.test/http/404", arrived="http://a.test/http/404")
        is None
    )


def test_the_checks_can_be_turned_off_but_not_the_own_patterns() -> None:
    page = ReceivedPage(b"<title>Access denied</title>", "text/html", HERE, HERE)
    own = [compile_pattern("soft_errors", "denied")]
    assert find_soft_error(page, checked=False) is None
    assert find_soft_error(page, own, checked=False) == ("failed", "error page: matches 'denied'")


def test_titles_in_documents_that_are_not_html_do_not_count() -> None:
    assert find_soft_error(ReceivedPage(b"<title>Access Denied</title>", "image/svg+xml", HERE, HERE)) is None


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_make_it_fail(body: bytes) -> None:
    page = b"<title>" + body + b"</title><p>and more"
    assert find_soft_error(ReceivedPage(page, "text/html; charset=utf-8", HERE, HERE)) is None
