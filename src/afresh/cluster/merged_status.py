"""One status of all shards: counts are sums, and shares are means, weighted by the items of each shard.

The shards are strata of one population. So the audited freshness of all is Σ n_s/n·F_s, and the half-width of
its interval √(Σ (n_s/n)²·h_s²), with n_s items, freshness F_s and half-width h_s in shard s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from afresh.engine.ratelimit.request_slots import Limits
from afresh.engine.reporting.pulse import Pulse
from afresh.engine.reporting.savings import FactorEstimate
from afresh.engine.reporting.status import ItemProblem, Status
from afresh.engine.scheduler.audits import ShareEstimate
from afresh.values.outcome import NOTHING_SPENT

_GROUPS_SHOWN, _PROBLEMS_SHOWN = 10, 5
_SUMS = (
    *("items", "looked_at", "copies", "failing", "due", "dropped", "absorbed_per_s", "budget_per_s"),
    *("leases", "events", "events_given_up", "notices", "file_bytes", "used_bytes", "max_bytes"),
)
T = TypeVar("T")


def merge_statuses(found: Sequence[Status], limits: Limits) -> Status:
    """Return the status of all shards together; ``limits`` is the budget of the project."""
    first = found[0]
    sums = {name: sum(getattr(each, name) for each in found) for name in _SUMS}
    by_status: Counter[str] = Counter()
    for each in found:
        by_status.update(each.by_status)
    return replace(
        first,
        **sums,
        by_status=dict(by_status),
        limits=limits,
        freshness=merge_shares([(each.freshness, each.items) for each in found]),
        audited=merge_shares([(each.audited, each.items) for each in found]),
        uniform_needs=_merge_factors(found),
        age_s=_mean(found, lambda each: each.age_s),
        content_lag_s=_mean(found, lambda each: each.content_lag_s),
        spent_last_hour=sum((each.spent_last_hour for each in found), NOTHING_SPENT),
        groups=tuple(
            sorted(_joined(found, lambda each: each.groups), key=lambda group: (not group.why, -group.items))
        )[:_GROUPS_SHOWN],
        views=_joined(found, lambda each: each.views),
        item_views=(),
        money=None,
        troubles=tuple(dict.fromkeys(_joined(found, lambda each: each.troubles))),
        workers=_joined(found, lambda each: each.workers),
        problems=_merge_problems(found),
        noise=_joined(found, lambda each: each.noise),
        hook_failures=_joined(found, lambda each: each.hook_failures),
        notify_failures=_joined(found, lambda each: each.notify_failures),
        run=_merge_pulses([each.run for each in found if each.run is not None]),
        closed={name: until_s for each in found for name, until_s in each.closed.items()},
        searches=_joined(found, lambda each: each.searches),
        time_s=max(each.time_s for each in found),
    )


def merge_shares(strata: Sequence[tuple[ShareEstimate, int]]) -> ShareEstimate:
    """Return the share in all strata together, each with its number of items. Strata of which nothing is
    known are left out.

    >>> small, large = ShareEstimate(0.5, 0.3, 0.7, 10), ShareEstimate(1.0, 0.8, 1.0, 20)
    >>> found = merge_shares([(small, 100), (large, 300)])
    >>> found.value, round(found.low, 3), round(found.high, 3), found.n
    (0.875, 0.717, 0.925, 30)
    """
    known = [(share, items) for share, items in strata if share.n > 0 and items > 0]
    if not known:
        return strata[0][0]
    total = sum(items for _, items in known)
    parts = [(share, items / total) for share, items in known]
    value = sum(part * share.value for share, part in parts)
    below = math.sqrt(sum((part * (share.value - share.low)) ** 2 for share, part in parts))
    above = math.sqrt(sum((part * (share.high - share.value)) ** 2 for share, part in parts))
    return ShareEstimate(
        value, max(value - below, 0.0), min(value + above, 1.0), sum(share.n for share, _ in known)
    )


def _merge_factors(found: Sequence[Status]) -> FactorEstimate:
    """Return the mean factor, weighted by what each shard spends."""
    known = [each for each in found if not math.isnan(each.uniform_needs.value)]
    total = sum(each.budget_per_s for each in known)
    if total <= 0:
        return FactorEstimate()

    def mean(name: str) -> float:
        return float(sum(each.budget_per_s * getattr(each.uniform_needs, name) for each in known) / total)

    return FactorEstimate(mean("value"), mean("low"), mean("high"))


def _mean(found: Sequence[Status], value: Callable[[Status], float]) -> float:
    known = [(value(each), each.copies) for each in found if not math.isnan(value(each)) and each.copies]
    total = sum(copies for _, copies in known)
    return sum(each * copies for each, copies in known) / total if total else math.nan


def _joined(found: Sequence[Status], part: Callable[[Status], Sequence[T]]) -> tuple[T, ...]:
    return tuple(one for each in found for one in part(each))


def _merge_problems(found: Sequence[Status]) -> tuple[ItemProblem, ...]:
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for problem in _joined(found, lambda each: each.problems):
        counts[problem.words] += problem.items
        examples.setdefault(problem.words, problem.example)
    return tuple(
        ItemProblem(words, items, examples[words]) for words, items in counts.most_common(_PROBLEMS_SHOWN)
    )


def _merge_pulses(pulses: Sequence[Pulse]) -> Pulse | None:
    """Return one pulse with the counts of all shards; it is as old as the oldest."""
    if not pulses:
        return None
    names = ("polls", "changes", "failures", "requests", "audits", "in_flight")
    unspent: Counter[str] = Counter()
    for each in pulses:
        unspent.update(dict(each.unspent))
    return replace(
        pulses[0],
        **{name: sum(getattr(each, name) for each in pulses) for name in names},
        time_s=min(each.time_s for each in pulses),
        started_s=min(each.started_s for each in pulses),
        stopped=all(each.stopped for each in pulses),
        trouble="; ".join(dict.fromkeys(each.trouble for each in pulses if each.trouble)),
        budget_per_s=sum(each.budget_per_s or 0.0 for each in pulses),
        unspent=dict(unspent),
        seconds=sum(each.seconds for each in pulses),
        unspent_seconds={},
    )
