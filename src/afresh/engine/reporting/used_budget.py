"""How much of its budget a run used, and why the rest was not used. Commands and pages say the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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

    >>> run = Pulse(110.0, 10.0, requests=150, budget_per_s=2.0, unspent={"hosts": 50})
    >>> describe_unused_requests(run), describe_use_of_requests(run, "this")
    ('25% hosts at their limit', '75% used by this run (not used: 25% hosts at their limit)')
    """
    return _unused(*_requests(run))


def describe_use_of_requests(run: Pulse, which: str) -> str:
    """Describe which share of the requests a run used, and why not the rest. ``which`` is "this" or
    "the last"."""
    return _describe_use(*_requests(run), which)


def describe_unused_seconds(run: Pulse, per_s: float) -> str:
    """Describe why parts of the seconds of the budget were not used; it allows ``per_s`` in each second."""
    return _unused(*_seconds(run, per_s))


def describe_use_of_seconds(run: Pulse, per_s: float, which: str) -> str:
    """Describe which share of the seconds a run used, and why not the rest."""
    return _describe_use(*_seconds(run, per_s), which)


def _requests(run: Pulse) -> tuple[float, dict[str, float], float]:
    """Return a tuple (used, not used by reason, allowed) of requests."""
    unspent = {_REASONS.get(reason, reason): float(count) for reason, count in run.unspent.items()}
    return run.requests, unspent, (run.budget_per_s or 0.0) * (run.time_s - run.started_s)


def _seconds(run: Pulse, per_s: float) -> tuple[float, dict[str, float], float]:
    """Return the same of seconds."""
    reasons = _REASONS | _REASONS_OF_SECONDS
    unspent = {reasons.get(reason, reason): seconds for reason, seconds in run.unspent_seconds.items()}
    return run.seconds, unspent, per_s * (run.time_s - run.started_s)


def _describe_use(used: float, unspent: Mapping[str, float], allowed: float, which: str) -> str:
    """Describe which share of what was ``allowed`` a run ``used``, and why the rest was not. The percentages
    add up to 100, unless more was used, from the burst.

    >>> _describe_use(59.6, {"hosts at their limit": 20.2, "nothing due": 20.2}, 100.0, "this")
    '60% used by this run (not used: 20% hosts at their limit, 20% nothing due)'
    """
    unused = _unused(used, unspent, allowed)
    share = (
        _whole_percentages([used, *unspent.values()], allowed)[0] if unused else round(100 * used / allowed)
    )
    return f"{share}% used by {which} run" + (f" (not used: {unused})" if unused else "")


def _unused(used: float, unspent: Mapping[str, float], allowed: float) -> str:
    """Return the parts of what was ``allowed`` that were not used, with their reasons."""
    if used >= allowed:
        return ""
    shares = _whole_percentages([used, *unspent.values()], allowed)
    parts = [f"{share}% {words}" for words, share in zip(unspent, shares[1:], strict=True) if share]
    left = 100 - sum(shares)
    parts += [f"{left}% for other reasons"] if left > 0 else []
    return ", ".join(parts)


def _whole_percentages(amounts: Sequence[float], total: float) -> list[int]:
    """Return the shares of ``amounts`` in ``total`` as whole percentages. If the amounts add up to the total,
    or nearly so, the percentages add up to 100: those that are cut most are rounded up.

    >>> _whole_percentages([1.0, 1.0, 1.0], 3.0), _whole_percentages([1.0, 1.0], 4.0)
    ([34, 33, 33], [25, 25])
    """
    exact = [100.0 * amount / total for amount in amounts]
    found = [math.floor(share) for share in exact]
    most_cut = sorted(range(len(exact)), key=lambda at: found[at] - exact[at])
    for at in most_cut[: round(sum(exact)) - sum(found)]:
        found[at] += 1
    return found
