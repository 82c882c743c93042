"""Check URLs, find their hosts, and resolve the targets of links and redirects."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urldefrag, urljoin, urlsplit, urlunsplit

from afresh.values.errors import UsageError
from afresh.values.printable_text import hide_credentials

_DEFAULT_PORTS = {"http": 80, "https": 443}
_BLANK_OR_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_DOT = re.compile(r"/(?:\.|%2e)", re.IGNORECASE)
_DOT_ESCAPE = re.compile("%2e", re.IGNORECASE)
LONGEST_URL = 8000
# A fast path for ordinary URLs, because a sitemap may contain fifty thousand of them.
_PLAIN = re.compile(
    r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*(?::(?!80/|443/)(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?)"
    r"/(?:[\w~!$&'()*+,;=:@/?-]|\.(?!\.)|%[0-9A-Fa-f]{2})*",
    re.ASCII,
)


@lru_cache(maxsize=1024)  # every poll calls it several times
def host_group(url: str) -> str:
    """Return the group of a URL: its host, with the port unless it is the default port.

    >>> host_group("HTTPS://Example.org:443/a"), host_group("http://[::1]:8080/")
    ('example.org', '[::1]:8080')
    >>> host_group("https://user:secret@example.org/")
    Traceback (most recent call last):
    afresh.values.errors.UsageError: an address must not contain a password: give it as a header (env:NAME)
    """
    plain = _PLAIN.fullmatch(url)
    if plain and len(url) <= LONGEST_URL:
        return plain[1]
    problem = _problem(url)
    if problem:
        raise UsageError(problem)
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"


def origin(url: str) -> str:
    """Return the scheme and the host of a URL. Secret headers and cookies are sent to one origin only."""
    return f"{urlsplit(url).scheme}://{host_group(url)}"


def resolve_link(url: str, location: str) -> str | None:
    """Return the absolute target of the link ``location`` on the page ``url``, without its fragment. The
    result is None if the target cannot be fetched.

    >>> resolve_link("http://a.test/x", "../y#z"), resolve_link("http://a.test/", "ftp://b.test/")
    ('http://a.test/y', None)
    """
    if len(location) <= LONGEST_URL and _PLAIN.fullmatch(location) and "/./" not in location:
        return location
    try:
        target = urldefrag(urljoin(url, location.strip()))[0].replace(" ", "%20")
    except ValueError:
        return None
    return None if _problem(target) else target


def without_dots(url: str) -> str:
    """Return a URL whose path has no ``.`` and ``..``, also if they are escaped, as it is sent to the server.

    >>> without_dots("http://a.test/docs/%2e%2E/private/./x?y=/../")
    'http://a.test/private/x?y=/../'
    """
    if not _DOT.search(url):
        return url
    parts, kept = urlsplit(url), list[str]()
    names = [_DOT_ESCAPE.sub(".", one) for one in parts.path.split("/")]
    for given, name in zip(parts.path.split("/"), names, strict=True):
        if name == "..":
            del kept[max(len(kept) - 1, 1) :]
        elif name != ".":
            kept.append(given)
    kept += [""] if names[-1] in (".", "..") else []
    return urlunsplit(parts._replace(path="/".join(kept)))


def display_url(url: str) -> str:
    """Return a URL for messages: at most 200 characters, without user, password and other credentials.

    >>> display_url("http://user:pw@a.test/?token=secret")
    'http://a.test/?token=•••'
    """
    bare = hide_credentials(re.sub(r"(?<=//)[^/@]*@", "", url))
    return bare if len(bare) <= 200 else f"{bare[:199]}…"


def _problem(url: str) -> str:
    if len(url) > LONGEST_URL:
        return f"an address of {len(url)} characters is too long: {LONGEST_URL} at most"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"{display_url(url)!r} is not an address: {error}"
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return f"{display_url(url)!r} is not an http or https address, such as https://example.org/"
    if parts.username is not None or parts.password is not None:
        return "an address must not contain a password: give it as a header (env:NAME)"
    if _BLANK_OR_CONTROL.search(url):
        return f"{display_url(url)!r} contains blanks or control characters: write them as %20 and so on"
    return ""
