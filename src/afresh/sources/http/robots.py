"""What a host's robots.txt allows (RFC 9309), read from the answer to it; pure.

No such file (4xx) allows everything (§2.3.1.3). A file that cannot be had (5xx, no answer, and 429, which
says "not now") forbids everything (§2.3.1.4) until it is asked for again: after a minute, then ever more
rarely, once a day in the end; rules that were held before go on. What is no text (an image served for every
address) holds no rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from protego import Protego

from afresh.sources.http.fetcher import Reply, ResponseLimits
from afresh.sources.text_decoding import decode
from afresh.values.errors import UsageError

AGENT = "afresh"  # the name that robots.txt knows us by
MAX_BYTES = 512_000  # RFC 9309 asks for at least 500 KiB; the rest of a longer file is not read
DAY_S = 86400.0
HOUR_S = 3600.0
_FIRST_WAIT_S = 60.0
_LONGEST_KEPT = 32_768  # characters of a file that are worth keeping over a restart
_MAX_AGE = re.compile(r"max-age\s*=\s*(\d{1,9})", re.IGNORECASE)
_ROOT = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_TEXT_TYPES = ("text/", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """A host's rules until ``expires_s``.

    ``barred`` says in words why nothing may be asked for now, ``refused`` why nothing ever (it is private).
    ``text`` is the file itself, unless it is too long to be kept.
    """

    expires_s: float
    rules: Protego | None = field(default=None, repr=False)
    barred: str = ""
    refused: str = ""
    failures: int = 0
    text: str = field(default="", repr=False)

    def allows(self, url: str, agent: str) -> bool:
        """Whether ``agent`` may fetch ``url``.

        >>> robots = read_robots(Reply(200, {}, b"User-agent: *\\nDisallow: /private"), 0.0)
        >>> robots.allows("http://a.test/private/1", "afresh"), robots.allows("http://a.test/", "afresh")
        (False, True)
        """
        return not (self.barred or self.refused) and (self.rules is None or self.rules.can_fetch(url, agent))

    def crawl_delay_s(self, agent: str) -> float:
        """Seconds between requests that the host asks for; 0 if none."""
        delay = self.rules.crawl_delay(agent) if self.rules else None
        rate = self.rules.request_rate(agent) if self.rules else None
        spacing = rate.seconds / rate.requests if rate and rate.requests else 0.0
        return max(delay or 0.0, spacing)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps named in it."""
        return tuple(self.rules.sitemaps) if self.rules else ()


def robots_url(url: str) -> str:
    """Where the rules for ``url`` are.

    >>> robots_url("https://a.test:8443/x?y")
    'https://a.test:8443/robots.txt'
    """
    root = _ROOT.match(url)
    if root is None:
        raise UsageError(f"{url[:100]!r} is not an http or https address")
    return f"{root[0]}/robots.txt"


def robots_limits(limits: ResponseLimits) -> ResponseLimits:
    """The limits of a page, with the size that robots.txt may have."""
    return replace(limits, max_bytes=MAX_BYTES)


def read_robots(reply: Reply, now_s: float, before: RobotsRules | None = None) -> RobotsRules:
    """The rules in an answer. Rules held ``before`` outlive a host that cannot give them any more.

    >>> read_robots(Reply(503), 0.0).barred
    'robots.txt cannot be read (status 503)'
    >>> read_robots(Reply(404), 0.0).allows("http://a.test/", "afresh")
    True
    """
    status = reply.status
    if reply.trouble is not None or status is None or status >= 500 or status == 429:
        return _unreadable(reply, now_s, before)
    if not 200 <= status < 300 or not _is_text(reply):
        return RobotsRules(now_s + DAY_S)
    text = decode(reply.body[:MAX_BYTES], reply.headers.get("content-type", ""))
    kept = text if len(text) <= _LONGEST_KEPT else ""
    return RobotsRules(now_s + _lifetime_s(reply), Protego.parse(text), text=kept)


def restore_rules(expires_s: float, text: str, barred: str, failures: int) -> RobotsRules:
    """The rules as they were kept: those of ``text``, none where it is empty.

    >>> restore_rules(9.0, "User-agent: *\\nDisallow: /x", "", 0).allows("http://a.test/x", "afresh")
    False
    """
    return RobotsRules(expires_s, Protego.parse(text) if text else None, barred, failures=failures, text=text)


def _unreadable(reply: Reply, now_s: float, before: RobotsRules | None) -> RobotsRules:
    failures = before.failures + 1 if before else 1
    wait_s = min(_FIRST_WAIT_S * 2.0 ** min(failures - 1, 10), DAY_S)
    if before is not None and not (before.barred or before.refused):
        return RobotsRules(now_s + wait_s, before.rules, failures=failures, text=before.text)
    if reply.trouble == "private":
        return RobotsRules(now_s + wait_s, refused=reply.problem, failures=failures)
    why = reply.problem or f"status {reply.status}"
    return RobotsRules(now_s + wait_s, barred=f"robots.txt cannot be read ({why})", failures=failures)


def _is_text(reply: Reply) -> bool:
    kind = reply.headers.get("content-type", "text/plain").strip().lower()
    # UTF-16 has zero bytes too, but then it begins with its mark.
    binary = b"\x00" in reply.body[:1024] and not reply.body.startswith((b"\xff\xfe", b"\xfe\xff"))
    return kind.startswith(_TEXT_TYPES) and not binary


def _lifetime_s(reply: Reply) -> float:
    age = _MAX_AGE.search(reply.headers.get("cache-control", ""))
    return min(max(float(age[1]), HOUR_S), DAY_S) if age else DAY_S
