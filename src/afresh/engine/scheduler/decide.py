"""Decides what one poll means: a pure function of the lease, the fetched result, the settings and the time.

content     The first copy starts the measurement of time. A later one is a change. If the settings of the
            comparison have changed since, it is no evidence of a change, but later polls compare with it.
unchanged   The copy is still correct.
gone        The item is missing. It counts as gone only after some time, because pages come back. If a gone
            item comes back, this is told like a first copy, because everybody was told that it is gone.
refused     The engine may not poll the item. It polls more and more rarely, and stops after three refusals.
failed      Nothing is known. The poll is repeated after longer and longer waits. If the host is in a
            back-off, this does not count as a failure of the item.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.sources.settings import MissingRule, is_gone
from afresh.values.backoff import Backoff
from afresh.values.fetched import Fetched
from afresh.values.items import Status
from afresh.values.lease import Lease
from afresh.values.outcome import STARTS_AGAIN, EventKind, NewCopy, Observation, Outcome

REFUSALS_ENOUGH = 3
TOLD_GONE = "told-gone"
"""The name, among the validators of an item, that stays after the event ``gone`` until its next copy."""
REFUSED_LONGER = 60  # the wait after a refusal is this many times the wait after a failure


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When a failed poll is repeated, and when a missing item counts as gone (``missing``). The wait is
    ``first_s`` after the first failure, and doubles with each further failure up to ``longest_s``."""

    first_s: float = 60.0
    longest_s: float = 86400.0
    missing: MissingRule = field(default_factory=MissingRule)


def decide(
    lease: Lease, fetched: Fetched, rules: RetryRules, now_s: float, *, audit: bool = False
) -> Outcome:
    """Return what follows from the poll of ``lease`` that returned ``fetched`` at ``now_s``; its cost is left
    out. ``due_s`` is the time before which the item is not polled again, −∞ if nothing delays it.

    >>> first = Fetched("content", content=b"hello", normal_hash=b"h")
    >>> decide(Lease(1, "a", "web", "a", 1, 9.0), first, RetryRules(), 5.0).event
    'new'
    >>> broken = Fetched("failed", problem="no answer", requests=1)
    >>> decide(Lease(1, "a", "web", "a", 1, 9.0, failures=2), broken, RetryRules(), 5.0).due_s
    245.0
    """
    if fetched.kind == "content":
        return _content(lease, fetched, now_s, audit=audit)
    if fetched.kind == "unchanged":
        elapsed_s = _elapsed_s(lease, fetched, now_s)
        seen = _observation(lease, fetched, now_s, elapsed_s, changed=False, audit=audit)
        back: EventKind | None = "new" if was_gone(lease) else None
        kept = _without_mark(fetched)
        return Outcome(lease, now_s, -math.inf, seen, validators=kept, event=back, links=fetched.links)
    return _no_observation(lease, fetched, rules, now_s)


def _content(lease: Lease, fetched: Fetched, now_s: float, *, audit: bool) -> Outcome:
    content = fetched.content or b""
    copy = NewCopy(content, fetched.media_type, fetched.normal_hash or b"")
    if lease.content_hash is None:
        # There is no copy to compare with: an elapsed time of 0 means that this is no evidence of a change.
        seen = _observation(lease, fetched, now_s, 0.0, changed=False, audit=audit)
    else:
        seen = _observation(
            lease, fetched, now_s, _elapsed_s(lease, fetched, now_s), changed=True, audit=audit
        )
    event: EventKind = "new" if lease.content_hash is None or was_gone(lease) else "changed"
    kept = _without_mark(fetched)
    return Outcome(lease, now_s, -math.inf, seen, copy, kept, event=event, links=fetched.links)


def was_gone(lease: Lease) -> bool:
    """Return whether the last event of the item was that it is gone."""
    return lease.content_hash is not None and (lease.status == "gone" or TOLD_GONE in lease.validators)


def _without_mark(fetched: Fetched) -> Mapping[str, str]:
    """Return the validators of ``fetched`` without the mark of an item that was gone."""
    if TOLD_GONE not in fetched.validators:
        return fetched.validators
    return {name: value for name, value in fetched.validators.items() if name != TOLD_GONE}


def _elapsed_s(lease: Lease, fetched: Fetched, now_s: float) -> float:
    """Return the seconds since the last poll that compared the content, or ``STARTS_AGAIN`` if it did so by
    other settings. If the clock was set back, they are unknown; with 0, nothing is learned from the poll."""
    if not fetched.comparable:
        return STARTS_AGAIN
    since_s = lease.polled_s if fetched.verified_s is None else fetched.verified_s
    return 0.0 if since_s is None else max(0.0, now_s - since_s)


def _observation(
    lease: Lease, fetched: Fetched, now_s: float, elapsed_s: float, *, changed: bool, audit: bool
) -> Observation:
    """Return what the poll observed. A change that cannot be told from new settings does not count."""
    is_compared = elapsed_s >= 0
    return Observation(
        lease.item_id,
        now_s,
        elapsed_s,
        changed and is_compared,
        modified_s=fetched.modified_s,
        count=fetched.count if is_compared else None,
        audit=audit,
    )


def _no_observation(lease: Lease, fetched: Fetched, rules: RetryRules, now_s: float) -> Outcome:
    asked_s = fetched.retry_after_s or 0.0
    if asked_s > 0 and (fetched.put_off or fetched.requests == 0):
        status, failures, due_s = lease.status, lease.failures, now_s + asked_s
        return Outcome(lease, now_s, due_s, status=status, failures=failures, problem=fetched.problem)
    failures = max(lease.failures + 1, REFUSALS_ENOUGH if fetched.for_good else 0)
    status, event = _end_status(lease, fetched, rules, now_s, failures)
    longer = REFUSED_LONGER if fetched.kind == "refused" else 1
    wait_s = Backoff(rules.first_s, rules.longest_s).wait_s(failures, jitter=longer)
    due_s = now_s + max(wait_s, asked_s) if status == "active" else math.inf
    return Outcome(
        lease,
        now_s,
        due_s,
        validators=None if event is None else {**lease.validators, TOLD_GONE: "1"},
        status=status,
        failures=failures,
        problem=fetched.problem,
        event=event,
        links=fetched.links,
    )


def _end_status(
    lease: Lease, fetched: Fetched, rules: RetryRules, now_s: float, failures: int
) -> tuple[Status, EventKind | None]:
    silent_s = math.inf if lease.polled_s is None else now_s - lease.polled_s
    if fetched.kind == "gone" and is_gone(fetched.status, failures, silent_s, rules.missing):
        return "gone", "gone" if lease.content_hash is not None and not was_gone(lease) else None
    if fetched.kind == "refused" and failures >= REFUSALS_ENOUGH:
        return "refused", None
    return "active", None
