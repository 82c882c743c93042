"""Read how many requests a server still allows, from the headers of its reply. All functions are pure.

Three forms are in use:

    RateLimit: "default";r=50;t=30           the IETF draft (structured fields)
    RateLimit: limit=100, remaining=50, reset=30       its versions up to 7
    RateLimit-Remaining: 50, RateLimit-Reset: 30       its versions up to 2; also with ``X-`` before the names

``RateLimit-Policy: "default";q=100;w=60`` beside them states the quota and its window.

A reset is in seconds from now; servers with ``X-RateLimit-Reset`` often send a Unix time instead, in seconds
or milliseconds. If a reply has several quotas, the strictest one counts. Malformed headers are ignored."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_PARAMETER = re.compile(r"\b(r|t|q|w|remaining|reset|qu)\s*=\s*\"?([0-9A-Za-z.-]{1,40})\"?")
_NUMBER = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?:[,;].*)?")
_UNIX_S, _UNIX_MS = 1e8, 1e11  # a larger reset is a time in seconds, or in milliseconds, since 1970
_LONGEST_HEADER = 1000
_QUOTA_HEADERS = ("ratelimit", "ratelimit-remaining", "x-ratelimit-remaining")
_LONGEST_RESET_S = 366 * 86400.0
_SPREAD_FROM_S = 30.0


@dataclass(frozen=True, slots=True)
class RemainingQuota:
    """``requests`` more requests are allowed within the next ``reset_s`` seconds. ``policy_s`` are the
    seconds between requests that the policy of the server demands in the long run; 0 if it is not known."""

    requests: float
    reset_s: float
    policy_s: float = 0.0

    @property
    def spacing_s(self) -> float:
        """The seconds between requests that use the quota up just when it is reset. If it is reset soon, the
        time is too coarse to divide (whole seconds), and the policy decides.

        >>> RemainingQuota(99, 3600.0).spacing_s, RemainingQuota(2, 3.0).spacing_s
        (36.0, 0.0)
        >>> RemainingQuota(0, 3.0).spacing_s, RemainingQuota(2, 3.0, policy_s=0.5).spacing_s
        (3.0, 0.5)
        """
        if self.requests < 1:
            return self.reset_s
        return self.reset_s / (self.requests + 1) if self.reset_s >= _SPREAD_FROM_S else self.policy_s


def has_quota(headers: Mapping[str, str]) -> bool:
    return any(name in headers for name in _QUOTA_HEADERS)


def remaining_quota(headers: Mapping[str, str], now_s: float) -> RemainingQuota | None:
    """Return the strictest quota in the headers of a reply, whose names are in lower case; None without one.
    ``now_s`` is the time of the server, if it sends one, else ours (Unix seconds).

    >>> remaining_quota({"ratelimit": '"hour";r=900;t=1800, "second";r=1;t=1'}, 0.0)
    RemainingQuota(requests=900.0, reset_s=1800.0, policy_s=0.0)
    >>> remaining_quota({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000060"}, 1.7e9)
    RemainingQuota(requests=0.0, reset_s=60.0, policy_s=0.0)
    """
    policy_s = _policy_s(headers.get("ratelimit-policy", "") or headers.get("ratelimit-limit", ""))
    pairs = _draft_pairs(headers.get("ratelimit", "")[:_LONGEST_HEADER])
    for prefix in ("", "x-"):
        remaining = _number(headers.get(f"{prefix}ratelimit-remaining", ""))
        pairs.append((remaining, _number(headers.get(f"{prefix}ratelimit-reset", ""))))
    known = [
        RemainingQuota(math.floor(remaining) + 0.0, _reset_s(reset, now_s), policy_s)
        for remaining, reset in pairs
        if remaining is not None and reset is not None
    ]
    return max(known, key=lambda quota: quota.spacing_s, default=None)


def _policy_s(header: str) -> float:
    """Return the longest spacing that the policies of a server demand: ``"burst";q=6;w=1`` or ``6;w=1``.

    >>> _policy_s('"burst";q=6;w=3, "day";q=86400;w=86400'), _policy_s("100, 100;w=50"), _policy_s("x")
    (1.0, 0.5, 0.0)
    """
    found = [0.0]
    for member in header[:_LONGEST_HEADER].split(","):
        parts = dict(_PARAMETER.findall(member))
        count, window_s = _number(parts.get("q", member)), _number(parts.get("w", ""))
        if count and window_s and parts.get("qu", "requests") == "requests":
            found.append(min(window_s, _LONGEST_RESET_S) / count)
    return max(found)


def _draft_pairs(header: str) -> list[tuple[float | None, float | None]]:
    """Return a tuple (remaining, reset) for each member of a ``RateLimit`` header."""
    # Versions up to 7 have one quota whose parts are members; later ones have a member for each quota.
    members = [header] if "remaining" in header else header.split(",")
    found = []
    for member in members:
        parts = dict(_PARAMETER.findall(member))
        if parts.get("qu", "requests") == "requests":  # other quotas count bytes or connections
            remaining, reset = (
                (parts.get("r") or parts.get("remaining")),
                parts.get("t") or parts.get("reset"),
            )
            found.append((_number(remaining or ""), _number(reset or "")))
    return found


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text[:_LONGEST_HEADER])
    return float(match[1]) if match else None


def _reset_s(reset: float, now_s: float) -> float:
    if reset > _UNIX_S:
        reset = (reset / 1000.0 if reset > _UNIX_MS else reset) - now_s
    return min(max(reset, 0.0), _LONGEST_RESET_S)
