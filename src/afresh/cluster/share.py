"""A share of the budget: what a shard may spend, until when, and the limiter that keeps it.

A share is a lease. It ends on the shard's own monotonic clock, a fixed time after the shard *sent* the report
that the share answers; the coordinator received that report later, so on its clock the share ends later. A
shard that hears nothing more stops by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

_ROUNDING = 1e-9


class ShareNumber(NamedTuple):
    """The number of a share; a later share of a shard has a larger one. ``term`` counts coordinators."""

    term: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Share:
    """At most ``rate_per_s``·T + ``burst`` requests in any T seconds; none if the burst is below 1."""

    number: ShareNumber
    rate_per_s: float
    burst: float


class ShareLimiter:
    """Counts the requests of a shard, so that they stay within its share at every moment.

    It holds tokens, at most ``burst``; a request takes one, and ``rate_per_s`` come back per second. A share
    with a larger burst brings no tokens of its own, and after a share has ended the tokens are gone. So what
    one shard gives up, another can never spend at the same time.

    >>> limiter = ShareLimiter()
    >>> limiter.ready_s(5.0)
    inf
    >>> limiter.hold(Share(ShareNumber(1, 1), rate_per_s=2.0, burst=2.0), 0.0, until_s=10.0)
    True
    >>> limiter.ready_s(0.0)
    0.5
    >>> limiter.record_start(1.0)
    >>> limiter.ready_s(1.0), limiter.ready_s(9.9), limiter.ready_s(10.0)
    (1.0, 9.9, inf)
    """

    def __init__(self) -> None:
        self.share: Share | None = None
        self.until_s = -math.inf
        self._tokens, self._counted_s = 0.0, -math.inf

    def hold(self, share: Share, now_s: float, until_s: float) -> bool:
        """Hold ``share`` until ``until_s``; return False if a newer one is held already. The same share again
        only ends later."""
        held = self.share
        if held is not None and share.number < held.number:
            return False
        if now_s >= self.until_s:
            self._tokens, self._counted_s = 0.0, now_s
        self._count(now_s)
        self.until_s = max(until_s, self.until_s) if held == share else until_s
        self.share = share
        self._tokens = min(self._tokens, share.burst)
        return True

    def drop(self) -> None:
        """Stop spending at once; the number of the share stays known."""
        self.until_s = -math.inf

    def ready_s(self, now_s: float) -> float:
        """Return when the next request may start, at least ``now_s``; infinite if the share ends before."""
        if self.share is None or now_s >= self.until_s or self.share.burst < 1.0:
            return math.inf
        self._count(now_s)
        missing = 1.0 - self._tokens
        if missing <= _ROUNDING:
            return now_s
        ready_s = now_s + missing / self.share.rate_per_s if self.share.rate_per_s > 0 else math.inf
        return ready_s if ready_s < self.until_s else math.inf

    def record_start(self, now_s: float) -> None:
        """Record that a request starts; ``ready_s`` must have allowed it."""
        self._count(now_s)
        self._tokens -= 1.0

    def _count(self, now_s: float) -> None:
        """Add the tokens that came back since the last call, until the share ended."""
        if self.share is not None and now_s > self._counted_s:
            passed_s = min(now_s, self.until_s) - self._counted_s
            self._tokens = min(self._tokens + max(passed_s, 0.0) * self.share.rate_per_s, self.share.burst)
            self._counted_s = now_s
