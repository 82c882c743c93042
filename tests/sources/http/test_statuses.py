"""Pages with status 200 that are errors, pages that only look like it, and dates."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.sources.http.statuses import http_date_s, retry_after_s, soft_error

HERE = "http://a.test/page"


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
    found = soft_error(f"<html><title>{title}</title>".encode(), "text/html", HERE, HERE)
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
    assert soft_error(f"<title>{title}</title>".encode(), "text/html", HERE, HERE) is None


def test_only_a_redirect_leads_to_a_login_page() -> None:
    login = "http://a.test/users/sign_in"
    assert soft_error(b"", "text/html", HERE, login) == ("refused", "leads to a login page")
    assert soft_error(b"", "text/html", login, login) is None
    assert soft_error(b"", "text/html", HERE, "http://a.test/logins-explained") is None


def test_titles_in_documents_that_are_not_html_do_not_count() -> None:
    assert soft_error(b"<title>Access Denied</title>", "image/svg+xml", HERE, HERE) is None


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_make_it_fail(body: bytes) -> None:
    page = b"<title>" + body + b"</title><p>and more"
    assert soft_error(page, "text/html; charset=utf-8", HERE, HERE) is None


@given(st.text(max_size=40))
@settings(deadline=None)
def test_no_text_makes_dates_fail(text: str) -> None:
    date_s, wait_s = http_date_s(text), retry_after_s(text, 0.0)
    assert date_s is None or isinstance(date_s, float)
    assert wait_s is None or 0 <= wait_s <= 366 * 86400
