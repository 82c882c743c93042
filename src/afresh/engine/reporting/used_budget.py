"""How much of its budget a run used, and why the rest was not used. Commands and pages say the same."""

from __future__ import annotations

import math

from afresh.engine.reporting.pulse import Pulse

_REASONS = {
    "lent": "lent to other programs",
    "hosts": "hosts at their limit",
    "windows": "windows closed",
    "nothing": "no item worth a poll yet",
    "intervals": "no item may be polled again yet (min_interval)",
    "unchanged": "rows whose cursor has not moved",
    "targets": "kept free for target lags",
    "requests": "requests used up, also by looks (see look_every)",
    "limits": "other limits of the budget",
    "machine": "machine or answers too slow",
}
_REASONS_OF_SECONDS = {"nothing": "no stale view worth a refresh", "hosts": "waits for the database"}
_LEAST = 0.01  # a smaller part that was not used is left out


def used_requests(run: Pulse) -> float:
    """Return the share of the requests of the budget that a run has used; NaN if it is too short to tell.

    >>> used_requests(Pulse(110.0, 10.0, requests=150, budget_per_s=2.0))
    0.75
    """
    lasted_s = run.time_s - run.started_s
    if run.budget_per_s is None or lasted_s * run.budget_per_s <= 1:
        return math.nan
    return run.requests / (run.budget_per_s * lasted_s)


def used_seconds(run: Pulse, per_s: float) -> float:
    """Return the share of the seconds of requests and refreshes that a run has used, of ``per_s`` seconds in
    each second; NaN without such a limit."""
    allowed_s = per_s * (run.time_s - run.started_s)
    return run.seconds / allowed_s if math.isfinite(allowed_s) and allowed_s > 0 else math.nan


def describe_unused_requests(run: Pulse) -> str:
    """Describe why parts of the requests of the budget were not used, in words for people.

    >>> run = Pulse(110.0, 10.0, requests=150, budget_per_s=2.0, unspent={"hosts": 50, "machine": 1})
    >>> describe_unused_requests(run)
    '25% hosts at their limit'
    """
    allowed = (run.budget_per_s or 0.0) * (run.time_s - run.started_s)
    shares = {reason: count / allowed for reason, count in run.unspent.items() if allowed > 0}
    return _describe(shares, {})


def describe_unused_seconds(run: Pulse, per_s: float) -> str:
    """Describe why parts of the seconds of the budget were not used."""
    allowed_s = per_s * (run.time_s - run.started_s)
    shares = {reason: left_s / allowed_s for reason, left_s in run.unspent_seconds.items() if allowed_s > 0}
    return _describe(shares, _REASONS_OF_SECONDS)


def _describe(shares: dict[str, float], special: dict[str, str]) -> str:
    return ", ".join(
        f"{share:.0%} {special.get(reason) or _REASONS.get(reason, reason)}"
        for reason, share in shares.items()
        if share >= _LEAST
    )
