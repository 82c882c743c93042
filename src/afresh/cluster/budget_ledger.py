"""What each shard may be spending, as far as the coordinator knows: shares that were sent and not ended.

**Two steps.** A share that falls is sent at once, but counts at its old value until the shard has confirmed
it, or until the old share has ended. Only what is free then is given to others. So at every moment the shares
that shards hold sum to at most the budget, whichever messages are lost or late.

**Time.** A shard's share ends ``duration_s`` after it sent its report, on its own clock. The coordinator
counts it until ``duration_s + slack_s`` after it sent the answer, which is later: the slack is for clocks
that run at different speeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from afresh.cluster.share import Share, ShareNumber

_ENOUGH = 1e-3  # smaller changes of a share, relative to it, are not worth a message


@dataclass(frozen=True, slots=True)
class SentShare:
    """A share that was, or may have been, sent to a shard, which cannot hold it after ``until_s``."""

    share: Share
    until_s: float = -math.inf


@dataclass(frozen=True, slots=True)
class ShardLedger:
    """The shares of one *run* of a shard (each time it starts, it is another run), the oldest first.
    ``heard_s`` is when the coordinator last heard of it, −∞ if never."""

    sent: tuple[SentShare, ...] = ()
    heard_s: float = -math.inf

    @property
    def share(self) -> Share | None:
        """The latest share, which answers the next report."""
        return self.sent[-1].share if self.sent else None

    @property
    def most(self) -> tuple[float, float]:
        """The largest rate and burst that the shard may have now."""
        rates = [sent.share.rate_per_s for sent in self.sent]
        return max(rates, default=0.0), max((sent.share.burst for sent in self.sent), default=0.0)

    def at(self, now_s: float) -> ShardLedger:
        """Return the ledger without the shares that have ended. The latest one stays while an answer could
        still carry it, which is as long as the shard is heard of."""
        kept = tuple(sent for sent in self.sent if sent.until_s > now_s)
        return self if len(kept) == len(self.sent) else replace(self, sent=kept)

    def with_report(self, holds: ShareNumber | None, now_s: float) -> ShardLedger:
        """Return the ledger after a report: the shard holds the share ``holds``, so older ones are over."""
        kept = tuple(sent for sent in self.sent if holds is None or sent.share.number >= holds)
        return ShardLedger(kept, max(now_s, self.heard_s))

    def with_answer(self, until_s: float) -> ShardLedger:
        """Return the ledger after the latest share was sent, which then ends at ``until_s`` at the latest."""
        *before, last = self.sent
        return replace(self, sent=(*before, replace(last, until_s=max(until_s, last.until_s))))

    def with_share(self, share: Share, until_s: float) -> ShardLedger:
        return replace(self, sent=(*self.sent, SentShare(share, until_s)))


@dataclass(frozen=True, slots=True)
class ShardTarget:
    """What a shard should have."""

    rate_per_s: float
    burst: float


def move_shares(
    ledgers: Mapping[str, ShardLedger],
    targets: Mapping[str, ShardTarget],
    limits: ShardTarget,
    first: ShareNumber,
    until_s: float,
) -> dict[str, ShardLedger]:
    """Return the ledgers with new shares: as near to the ``targets`` as is safe now. ``limits`` is the budget
    of all. ``first`` is the number of the first new share; all have the same. ``until_s`` is until when a
    share that was not sent yet is counted.

    >>> one = ShareNumber(1, 1)
    >>> ledgers = {"a": ShardLedger((SentShare(Share(one, 6.0, 2.0), 99.0),)), "b": ShardLedger()}
    >>> targets = {"a": ShardTarget(4.0, 2.0), "b": ShardTarget(6.0, 2.0)}
    >>> moved = move_shares(ledgers, targets, ShardTarget(10.0, 4.0), ShareNumber(1, 2), 99.0)
    >>> [round(moved[name].share.rate_per_s, 6) for name in "ab"]   # "a" has not confirmed its fall
    [4.0, 4.0]
    >>> confirmed = moved | {"a": moved["a"].with_report(ShareNumber(1, 2), 0.0)}
    >>> moved = move_shares(confirmed, targets, ShardTarget(10.0, 4.0), ShareNumber(1, 3), 99.0)
    >>> round(moved["b"].share.rate_per_s, 6)
    6.0
    """
    counted = {name: ledger.most for name, ledger in ledgers.items()}
    rates = _raise_within(
        {name: most[0] for name, most in counted.items()},
        {name: target.rate_per_s for name, target in targets.items()},
        limits.rate_per_s,
    )
    bursts = _raise_within(
        {name: most[1] for name, most in counted.items()},
        {name: target.burst for name, target in targets.items()},
        limits.burst,
    )
    moved = dict(ledgers)
    for name in targets:
        share = Share(first, rates[name], bursts[name])
        if not _is_close(ledgers[name].share, share):
            moved[name] = ledgers[name].with_share(share, until_s)
    return moved


def _raise_within(
    counted: Mapping[str, float], targets: Mapping[str, float], limit: float
) -> dict[str, float]:
    """Return for each target what may be given now: the target, or what the shard counts for and an equal
    part of what is free, in proportion to what the shards lack."""
    lack = {name: max(target - counted[name], 0.0) for name, target in targets.items()}
    free = max(limit - math.fsum(counted.values()), 0.0)
    part = min(free / max(math.fsum(lack.values()), 1e-300), 1.0) * (1.0 - 1e-12)
    return {name: min(target, counted[name] + part * lack[name]) for name, target in targets.items()}


def _is_close(share: Share | None, other: Share) -> bool:
    if share is None:
        return False
    pairs = ((share.rate_per_s, other.rate_per_s), (share.burst, other.burst))
    return all(abs(after - before) <= _ENOUGH * before for before, after in pairs)


def largest_sum(ledgers: Iterable[ShardLedger]) -> tuple[float, float]:
    """Return the largest rate and burst that all these shards together may have now."""
    found = [ledger.most for ledger in ledgers]
    return math.fsum(rate for rate, _ in found), math.fsum(burst for _, burst in found)
