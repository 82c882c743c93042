"""Recognises error pages that are sent with status 200: logins, captchas, server errors. They are no changes.

Only signs that real pages hardly ever show are used: the whole title of the page, and a redirect to a login.
A source can add its own patterns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from afresh.sources.text_decoding import decode

SoftKind: TypeAlias = Literal["refused", "failed"]

_HEAD_BYTES = 1 << 16
_TITLE = re.compile(rb"<title[^>]{0,200}>(.{0,300}?)</title", re.IGNORECASE | re.DOTALL)
_LOGIN_PATH = re.compile(
    r"/(?:log-?in|sign-?in|sso|users/sign_in|account/login|cas/login)(?:[/.?]|$)", re.IGNORECASE
)
_TITLES: tuple[tuple[SoftKind, re.Pattern[str]], ...] = (
    (
        "refused",
        re.compile(
            r"just a moment\W*|attention required\W.*|access denied|are you (?:a )?(?:human|robot)\W*|"
            r"(?:security|robot|human) (?:check|verification)|captcha|ddos-guard|"
            r"please (?:wait|verify)\W.*(?:human|robot|browser)\W*|pardon our interruption\W*",
            re.IGNORECASE,
        ),
    ),
    (
        "failed",
        re.compile(
            r"(?:http )?error 50[0-4]\W*|(?:(?:http )?(?:error )?50[0-4]\W{1,4})?(?:"
            r"bad gateway|gateway time-?out|service (?:temporarily )?unavailable|internal server error|"
            r"(?:down for|under|site) maintenance|application error|database error)\W*",
            re.IGNORECASE,
        ),
    ),
)


def soft_error(
    body: bytes, media_type: str, asked: str, arrived: str, patterns: Sequence[re.Pattern[str]] = ()
) -> tuple[SoftKind, str] | None:
    """Return the kind and the description of an error page with status 200; None for an ordinary page.

    >>> soft_error(b"<title>Just a moment...</title>", "text/html", "http://a.test/", "http://a.test/")
    ('refused', "asks whether we are human: its title is 'Just a moment...'")
    """
    if asked != arrived and _LOGIN_PATH.search(urlsplit(arrived).path) and not _LOGIN_PATH.search(asked):
        return "refused", "leads to a login page"
    for pattern in patterns:
        if pattern.search(decode(body[:_HEAD_BYTES], media_type)):
            return "failed", f"error page: matches {pattern.pattern!r}"
    title = _title(body, media_type) if "html" in media_type or not media_type else ""
    for kind, pattern in _TITLES:
        if title and pattern.fullmatch(title):
            words = "asks whether we are human" if kind == "refused" else "error page"
            return kind, f"{words}: its title is {title[:80]!r}"
    return None


def _title(body: bytes, media_type: str) -> str:
    found = _TITLE.search(body[:_HEAD_BYTES])
    return " ".join(decode(found[1], media_type).split()) if found else ""
