"""One spelling for each address, so that ``a.html#x``, ``a.html`` and ``A.TEST:80/a.html`` are one item.

The fragment, the default port, parameters that only track visitors and ids of sessions are dropped. The order
of the other parameters stays, because it may matter to the server.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import quote, urlsplit, urlunsplit

from afresh.sources.http.urls import LONGEST_URL, host_group, resolve_link, without_dots
from afresh.values.errors import UsageError

TRACKING = frozenset(
    {
        *("fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid", "ttclid"),
        *("igshid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok", "oly_anon_id"),
        *("oly_enc_id", "vero_id", "wickedid", "s_cid", "epik", "pk_campaign", "pk_kwd"),
    }
)
"""Parameters that only tell a server where a visitor came from; so do those that begin with ``utm_``."""

_SESSION = frozenset({"phpsessid", "jsessionid", "sessionid", "session_id", "cfid", "cftoken", "zenid"})
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;?]*", re.IGNORECASE)
_MAYBE_SESSION = frozenset({"sid", "s", "session"})
_RANDOM = re.compile(r"(?=[^=]*\d)[0-9A-Za-z]{20,}")
_UNESCAPED = re.compile(r"""[^\x00-\x7f]+|["<>^`{}]""")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
# Identifiers that no one chose: of a hash, a session, a UUID. With digits in them, so that words are none.
_IDENTIFIERS = re.compile(
    r"(?<![0-9A-Za-z])(?=[a-z-]*\d)(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}|[0-9a-z]{20,})"
    r"(?![0-9A-Za-z])|\d+",
    re.IGNORECASE,
)


def normal_address(address: str, dropped: Collection[str] = ()) -> str | None:
    """Return the one spelling of an absolute address, or None if it cannot be fetched. ``dropped`` are more
    parameters to drop.

    >>> normal_address("HTTP://A.test:80/%7euser/a.html?utm_source=x&b=1#top")
    'http://a.test/~user/a.html?b=1'
    >>> normal_address("https://a.test?sid=0123456789abcdef0123"), normal_address("mailto:a@a.test")
    ('https://a.test/', None)
    """
    resolved = resolve_link(address, address)
    if resolved is None:
        return None
    try:
        resolved = without_dots(resolved)
        parts, group = urlsplit(resolved), host_group(resolved)
    except (UsageError, ValueError):
        return None
    path = _SESSION_IN_PATH.sub("", _one_escape(parts.path)) or "/"
    kept = [each for each in parts.query.split("&") if each and not _is_dropped(each, dropped)]
    query = _one_escape("&".join(kept))
    found = urlunsplit((parts.scheme.lower(), group, path, query, ""))
    return found if len(found) <= LONGEST_URL else None  # escapes make it longer


def _one_escape(text: str) -> str:
    """Escape what browsers escape, and nothing that need not be."""
    return _ESCAPE.sub(_plain_escape, _UNESCAPED.sub(lambda match: quote(match[0]), text))


def _plain_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _is_dropped(parameter: str, dropped: Collection[str]) -> bool:
    name, _, value = parameter.partition("=")
    lower = name.lower()
    if lower.startswith("utm_") or lower in TRACKING or lower in _SESSION or name in dropped:
        return True
    return lower in _MAYBE_SESSION and _RANDOM.fullmatch(value) is not None


def form_of(address: str) -> str:
    """Return the form of an address: its path with ``#`` for numbers and identifiers, and the names of its
    parameters.

    >>> form_of("https://a.test/cal/2024/05?day=7&view=week"), form_of("https://a.test/x/5f2b9c01d7")
    ('/cal/#/#?day&view', '/x/#')
    """
    parts = urlsplit(address)
    names = sorted({each.partition("=")[0] for each in parts.query.split("&") if each})
    return _IDENTIFIERS.sub("#", parts.path) + (f"?{'&'.join(names)}" if names else "")


def trap_of(address: str) -> str:
    """Return why an address looks like one of endlessly many, or "" if it does not.

    >>> trap_of("https://a.test/a/b/a/b/a/b/a/b/c"), trap_of("https://a.test/a/b/c")
    ('a path that repeats itself', '')
    """
    parts = urlsplit(address)
    segments = [each for each in parts.path.split("/") if each]
    if len(address) > _LONGEST:
        return f"an address of more than {_LONGEST:,} characters"
    if len(segments) > _MOST_SEGMENTS:
        return f"a path of more than {_MOST_SEGMENTS} parts"
    if any(segments.count(each) > _MOST_REPEATED for each in set(segments)):
        return "a path that repeats itself"
    names = [each.partition("=")[0] for each in parts.query.split("&") if each]
    if len(names) > _MOST_PARAMETERS or len(set(names)) < len(names) - _MOST_REPEATED:
        return "an address with very many parameters"
    return ""


_LONGEST, _MOST_SEGMENTS, _MOST_REPEATED, _MOST_PARAMETERS = 1000, 30, 3, 12
