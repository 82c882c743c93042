"""Recognise pages that a server sends in place of the page that was asked for, with the status 200.

These are login forms, captchas, cookie walls, error pages and pages that say "not found". They are no change
of the page: the poll fails or is refused, or the page counts as missing, and the copy is kept. They are
recognised by signs that real pages hardly ever have together:

title      the whole title, as of "Just a moment..." or "404 Not Found"
address    a redirect to a login, a captcha or a consent page; a redirect of a page that has a copy to the
           start page of its host
content    a password field behind a redirect, or beside the title "Log in"; a captcha or a button that
           accepts cookies on a page that has hardly any other words

An item whose own address looks like a login or consent page is one. A source can add patterns of its own
(``soft_errors``), and ``page_checks = false`` turns the rest off. All functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from afresh.sources.linear_pattern import LinearPattern
from afresh.sources.text_decoding import decode

SoftKind: TypeAlias = Literal["refused", "failed", "gone"]
SoftError: TypeAlias = tuple[SoftKind, str]
"""The kind of result of the poll, and the description of the problem in one line."""

_HEAD_BYTES = 1 << 16
_FEW_WORDS = 80  # a page that only asks whether we are human, or accept cookies, has fewer
_TITLE = re.compile(rb"<title[^>]{0,200}>(.{0,300}?)</title", re.IGNORECASE | re.DOTALL)
_PATHS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "login page",
        re.compile(
            r"/(?:log-?in|sign-?in|sso|users/sign_in|account/login|cas/login|oauth2?/authorize)(?:[/.?]|$)",
            re.IGNORECASE,
        ),
    ),
    ("captcha", re.compile(r"/(?:sorry/index|captcha|validatecaptcha|challenge)(?:[/.?]|$)", re.IGNORECASE)),
    ("cookie wall", re.compile(r"/(?:cookie-?wall|cookie-?consent|consent|gdpr)(?:[/.?]|$)", re.IGNORECASE)),
)
_CONSENT_HOSTS = re.compile(r"(?:consent|guce|privacywall|myprivacy|cmp)\.", re.IGNORECASE)
_NOT_FOUND_PATH = re.compile(r"/(?:404|not-?found|page-?not-?found|error404)(?:[/.?]|$)", re.IGNORECASE)
_LOGIN_TITLE = re.compile(
    r"(?:please )?(?:log ?in|sign ?in|login required|authentication required)\b.{0,60}|"
    r".{0,60}[-–|:·] ?(?:log ?in|sign ?in)",
    re.IGNORECASE,
)
_PASSWORD = re.compile(rb"<input\b[^>]{0,300}\btype\s*=\s*[\"']?password", re.IGNORECASE)
_CAPTCHA = re.compile(
    rb"g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|cf-chl-|/cdn-cgi/challenge-platform|_incapsula_resource|"
    rb"px-captcha|captcha-delivery\.com|awswafcaptcha|friendlycaptcha",
    re.IGNORECASE,
)
_ACCEPT = re.compile(
    r"\b(?:accept|agree|allow|akzeptieren|zustimmen|accepter|aceptar|accetta|akkoord)", re.IGNORECASE
)
_COOKIES = re.compile(r"\bcookies?\b", re.IGNORECASE)
_ABOUT_MISSING = re.compile(r"404|not.?found", re.IGNORECASE)
_TITLES: tuple[tuple[SoftKind, str, re.Pattern[str]], ...] = (
    ("refused", "denies access", re.compile("access denied", re.IGNORECASE)),
    (
        "refused",
        "is a cookie wall",
        re.compile(
            r"before you continue\b.{0,60}|(?:we value your privacy|cookie (?:consent|wall))\W*",
            re.IGNORECASE,
        ),
    ),
    (
        "refused",
        "asks whether we are human",
        re.compile(
            r"just a moment\W*|attention required\W.*|are you (?:a )?(?:human|robot)\W*|"
            r"(?:security|robot|human) (?:check|verification)|captcha|ddos-guard|"
            r"please (?:wait|verify)\W.*(?:human|robot|browser)\W*|pardon our interruption\W*",
            re.IGNORECASE,
        ),
    ),
    (
        "failed",
        "error page",
        re.compile(
            r"(?:http )?error 50[0-4]\W*|(?:(?:http )?(?:error )?50[0-4]\W{1,4})?(?:"
            r"bad gateway|gateway time-?out|service (?:temporarily )?unavailable|internal server error|"
            r"(?:down for|under|site) maintenance|application error|database error)\W*",
            re.IGNORECASE,
        ),
    ),
    (
        "gone",
        "says that it is not found",
        re.compile(
            r"(?:error )?404\W{0,4}(?:error|(?:page |file )?not found)?\W*(?:[-–|·].{0,60})?|"
            r"(?:page|file|document) (?:not found|does not exist|cannot be found)\W*(?:[-–|·].{0,60})?|"
            r"not found\W*|.{1,60} [-–|·] (?:404|(?:404 )?(?:page )?not found)\W*",
            re.IGNORECASE,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ReceivedPage:
    """A page with status 200. ``asked`` is the URL of the item, ``arrived`` the URL after redirects.
    ``has_other_copy`` is True if the item has a copy that came from another address than ``arrived``."""

    body: bytes = field(repr=False)
    media_type: str
    asked: str
    arrived: str
    has_other_copy: bool = False

    @property
    def was_redirected(self) -> bool:
        return self.asked.partition("#")[0] != self.arrived


def find_soft_error(
    page: ReceivedPage, patterns: Sequence[LinearPattern] = (), *, checked: bool = True
) -> SoftError | None:
    """Return what the page is if it is not the one asked for, else None. ``patterns`` are the settings
    ``soft_errors`` of the source, ``checked`` its ``page_checks``.

    >>> here = "http://a.test/"
    >>> find_soft_error(ReceivedPage(b"<title>Just a moment...</title>", "text/html", here, here))
    ('refused', "asks whether we are human: its title is 'Just a moment...'")
    """
    head = page.body[:_HEAD_BYTES]
    for pattern in patterns:
        if pattern.occurs_in(decode(head, page.media_type)):
            return "failed", f"error page: matches {pattern.text!r}"
    if not checked:
        return None
    found = next((each for each in _by_address(page)), None)
    if found is not None or ("html" not in page.media_type and page.media_type):
        return found
    match = _TITLE.search(head)
    title = " ".join(decode(match[1], page.media_type).split()) if match else ""
    return _by_title(page, title) or _by_content(page, head, title)


def _by_address(page: ReceivedPage) -> Iterator[SoftError]:
    if not page.was_redirected:
        return
    asked, arrived = urlsplit(page.asked), urlsplit(page.arrived)
    place = page.arrived.partition("?")[0]
    for name, path in _PATHS:
        if path.search(arrived.path) and not path.search(asked.path):
            yield "refused", f"leads to a {name}: {place}"
    if _CONSENT_HOSTS.match(arrived.netloc) and asked.netloc != arrived.netloc:
        yield "refused", f"leads to a cookie wall: {place}"
    if _NOT_FOUND_PATH.search(arrived.path) and not _NOT_FOUND_PATH.search(asked.path):
        yield "gone", f"leads to a page for missing pages: {place}"
    is_start = arrived.path in ("", "/") and not arrived.query
    if page.has_other_copy and is_start and asked.path.strip("/").partition(".")[0] not in ("", "index"):
        yield "gone", f"leads to the start page, as removed pages do: {place}"


def _by_title(page: ReceivedPage, title: str) -> SoftError | None:
    for kind, words, known in _TITLES:
        about_it = kind == "gone" and _ABOUT_MISSING.search(page.asked)
        if title and known.fullmatch(title) and not about_it:
            return kind, f"{words}: its title is {title[:80]!r}"
    return None


def _by_content(page: ReceivedPage, head: bytes, title: str) -> SoftError | None:
    if _PASSWORD.search(head) and not any(path.search(urlsplit(page.asked).path) for _, path in _PATHS):
        if page.was_redirected and page.has_other_copy:
            return "refused", f"leads to a login form: {page.arrived.partition('?')[0]}"
        if _LOGIN_TITLE.fullmatch(title):
            return "refused", f"is a login form: its title is {title[:80]!r}"
    lower = head.lower()
    has_captcha, has_button = _CAPTCHA.search(head) is not None, b"<button" in lower or b"<form" in lower
    if len(page.body) > _HEAD_BYTES or not (has_captcha or (has_button and b"cookie" in lower)):
        return None  # so long a page has other words
    words = _visible_words(decode(head, page.media_type))
    if len(words) >= _FEW_WORDS:
        return None
    if has_captcha:
        return "refused", f"asks whether we are human: {len(words)} words beside a captcha"
    text = " ".join(words)
    if _COOKIES.search(text) and _ACCEPT.search(text):
        return "refused", f"is a cookie wall: {len(words)} words beside a button"
    return None


def _visible_words(html: str) -> list[str]:
    """Return the words of a page without tags, scripts and styles, in time in proportion to its length.

    >>> _visible_words("<style>a b</style>two <b>words</b><script>if (a<b) c")
    ['two', 'words']
    """
    lower, parts, at = html.lower(), list[str](), 0
    while at < len(html):
        start = html.find("<", at)
        if start < 0:
            parts.append(html[at:])
            break
        parts.append(html[at:start])
        name = next((each for each in ("script", "style") if lower.startswith(each, start + 1)), None)
        end = lower.find(">" if name is None else f"</{name}", start + 1)
        if end < 0:
            break
        at = end + 1 if name is None else end + 2
        if name is not None:
            close = html.find(">", at)
            at = len(html) if close < 0 else close + 1
    return " ".join(parts).split()
