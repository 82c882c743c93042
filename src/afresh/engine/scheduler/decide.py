"""Decides what one poll means: a pure function of the lease, the fetched result, the settings and the time.

content     The first copy starts the measurement of time. A later one is a change. If the settings of the
            comparison have changed since, it is no evidence of a change, but later polls compare with it.
unchanged   The copy is still correct.
gone        The item is missing. It counts as gone only after some time, because pages come back.
refused     The engine may not poll the item. It polls more and more rarely, and stops after three refusals.
failed      Nothing is known. The poll is repeated after longer and longer waits. If the host is in a
            back-off, this does not count as a failure of the item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from afresh.sources.settings import MissingRule, is_gone
from afresh.values.backoff import Backoff
from afresh.values.fetched import Fetched
from afresh.values.items import Status
from afresh.values.lease import Lease
from afresh.values.outcome import EventKind, NewCopy, Observation

REFUSALS_ENOUGH = 3
REFUSED_LONGER = 60  # the wait after a refusal is this many times the wait after a failure


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When a failed poll is repeated, and when a missing item counts as gone (``missing``). The wait is
    ``first_s`` after the first failure, and doubles with each further failure up to ``longest_s``."""

    first_s: float = 60.0
    longest_s: float = 86400.0
    missing: MissingRule = field(default_factory=MissingRule)


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from one poll. The next poll is not made before the Unix time ``retry_s``, which is −∞ if
    nothing delays it. With ``keeps_validators``, the stored validators are not replaced."""

    observation: Observation | None = None
    new_copy: NewCopy | None = None
    status: Status = "active"
    failures: int = 0
    problem: str = ""
    event: EventKind | None = None
    retry_s: float = -math.inf
    keeps_validators: bool = False


def decide(
    lease: Lease, fetched: Fetched, rules: RetryRules, now_s: float, *, audit: bool = False
) -> Decision:
    """Return what follows from the poll of ``lease`` that returned ``fetched`` at ``now_s``.

    >>> first = Fetched("content", content=b"hello", normal_hash=b"h")
    >>> decide(Lease(1, "a", "web", "a", 1, 9.0), first, RetryRules(), 5.0).event
    'new'
    >>> broken = Fetched("failed", problem="no answer", requests=1)
    >>> decide(Lease(1, "a", "web", "a", 1, 9.0, failures=2), broken, RetryRules(), 5.0).retry_s
    245.0
    """
    if fetched.kind == "content":
        return _content(lease, fetched, now_s, audit=audit)
    if fetched.kind == "unchanged":
        return Decision(_observation(lease, fetched, now_s, changed=False, audit=audit))
    return _no_observation(lease, fetched, rules, now_s)


def _content(lease: Lease, fetched: Fetched, now_s: float, *, audit: bool) -> Decision:
    content = fetched.content or b""
    copy = NewCopy(content, fetched.media_type, fetched.normal_hash or b"")
    if lease.content_hash is None or not fetched.comparable:
        # There is no copy to compare with: an elapsed time of 0 means that this is no evidence of a change.
        start = Observation(
            lease.item_id, now_s, 0.0, changed=False, modified_s=fetched.modified_s, audit=audit
        )
        return Decision(start, copy, event="new" if lease.content_hash is None else "changed")
    seen = _observation(lease, fetched, now_s, changed=True, audit=audit)
    return Decision(seen, copy, event="changed")


def _observation(lease: Lease, fetched: Fetched, now_s: float, *, changed: bool, audit: bool) -> Observation:
    # If the clock was set back, the time between the polls is unknown. With 0, nothing is learned from it.
    elapsed_s = max(0.0, now_s - lease.polled_s) if lease.polled_s is not None else 0.0
    return Observation(lease.item_id, now_s, elapsed_s, changed, modified_s=fetched.modified_s, audit=audit)


def _no_observation(lease: Lease, fetched: Fetched, rules: RetryRules, now_s: float) -> Decision:
    asked_s = fetched.retry_after_s or 0.0
    if asked_s > 0 and (fetched.put_off or fetched.requests == 0):
        return Decision(
            failures=lease.failures,
            status=lease.status,
            problem=fetched.problem,
            retry_s=now_s + asked_s,
            keeps_validators=True,
        )
    failures = lease.failures + 1
    status, event = _end_status(lease, fetched, rules, now_s, failures)
    longer = REFUSED_LONGER if fetched.kind == "refused" else 1
    wait_s = Backoff(rules.first_s, rules.longest_s).wait_s(failures, jitter=longer)
    return Decision(
        status=status,
        failures=failures,
        problem=fetched.problem,
        event=event,
        retry_s=now_s + max(wait_s, asked_s) if status == "active" else math.inf,
        keeps_validators=True,
    )


def _end_status(
    lease: Lease, fetched: Fetched, rules: RetryRules, now_s: float, failures: int
) -> tuple[Status, EventKind | None]:
    silent_s = math.inf if lease.polled_s is None else now_s - lease.polled_s
    if fetched.kind == "gone" and is_gone(fetched.status, failures, silent_s, rules.missing):
        return "gone", "gone" if lease.content_hash is not None else None
    if fetched.kind == "refused" and failures >= REFUSALS_ENOUGH:
        return "refused", None
    return "active", None
