"""Why an item is polled as often as it is: its rate, its frequency, its worth, and what would change them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.policy import Policy
from afresh.engine.seen import SeenItem, seen_items
from afresh.engine.settings import Settings
from afresh.engine.sight import kept_evidence
from afresh.engine.snapshot import loaded, recalled
from afresh.stores.store import Store
from afresh.values.errors import UsageError
from afresh.values.items import Item
from afresh.values.units import format_duration

LEVEL = 0.9
_POLLS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PastPoll:
    """One poll that told something."""

    time_s: float
    elapsed_s: float
    changed: bool
    audit: bool


@dataclass(frozen=True, slots=True)
class Why:
    """Everything ``afresh why`` shows. Rates per second, times in seconds.

    ``rate_per_s`` is the median of what is believed, with its 90 % interval; ``interval_s`` from poll to poll
    as things are; ``marginal`` the worth of a poll now and ``threshold`` the worth at which items are polled;
    ``reasons`` in words; ``seen`` is what is known of it without polls, where anything is.
    """

    item: Item
    rate_per_s: float
    rate_low: float
    rate_high: float
    interval_s: float
    fresh_now: float
    marginal: float
    threshold: float
    next_s: float
    polls: tuple[PastPoll, ...]
    reasons: tuple[str, ...]
    seen: SeenItem | None = None


def why(store: Store, settings: Settings, key: str, now_s: float) -> Why:
    """Explain one item, by what the store remembers."""
    item = store.items.get(key)
    if item is None:
        raise UsageError(f"there is no item {key!r}: 'afresh add' makes one")
    ids = _compared_with(store, settings, item)
    policy = recalled(store, settings, loaded([store.plan.columns_of(ids)]), now_s)
    row = policy.memory.row(item.id) or 0
    rate, low, high = (float(each[0]) for each in policy.ranking.rate_range(np.array([row]), LEVEL))
    seen = next((one for one in seen_items(store, policy, now_s) if one.item == key), None)
    if seen is not None and seen.rate_per_s >= 0:
        rate, low, high = seen.rate_per_s, seen.low_per_s, seen.high_per_s
    interval_s = policy.due_s(row, now_s) - now_s
    return Why(
        item=item,
        rate_per_s=rate,
        rate_low=low,
        rate_high=high,
        interval_s=interval_s,
        fresh_now=float(policy.fresh(now_s)[row]),
        marginal=float(policy.worth(now_s)[row]),
        threshold=policy.threshold,
        next_s=item.due_s if seen is None else seen.next_s,
        polls=_polls(store, item.id),
        reasons=tuple(
            _reasons(item, policy, row, rate, now_s) if seen is None else _seen_reasons(seen, item, now_s)
        ),
        seen=seen,
    )


def _compared_with(store: Store, settings: Settings, item: Item) -> list[int]:
    """The item, and where its staleness is seen the others whose is: it is weighed against them."""
    kept = kept_evidence(store, [table.settings.name for table in settings.sources])
    return sorted(store.items.ids(list(kept)).values()) if item.key in kept else [item.id]


def _seen_reasons(seen: SeenItem, item: Item, now_s: float) -> list[str]:
    """Why a watched item is refreshed next, or not."""
    words = {
        "fresh": "fresh: nothing below it moved since its refresh; it waits until something does",
        "stale": f"stale for {format_duration(seen.stale_for_s)}: refreshed as soon as the budget allows",
        "left alone": f"stale for {format_duration(seen.stale_for_s)}, and left alone: it would soon be "
        "stale again, and while its refresh is paid off the others wait; a larger budget or weight helps",
        "unknown": "whether it is stale cannot be seen: it is refreshed at the rate of its changes",
    }
    found = [*_holding(item, now_s, due=False), words[seen.state]]
    if seen.cost_s > 0:
        found.append(f"a refresh takes {format_duration(seen.cost_s)} on average")
    return found


def _polls(store: Store, item_id: int) -> tuple[PastPoll, ...]:
    rows = [
        PastPoll(*row)
        for batch in store.observations.read([item_id])
        for row in zip(
            batch.time_s.tolist(),
            batch.elapsed_s.tolist(),
            batch.changed.tolist(),
            batch.audit.tolist(),
            strict=True,
        )
    ]
    return tuple(rows[-_POLLS_SHOWN:])


def _reasons(item: Item, policy: Policy, row: int, rate: float, now_s: float) -> list[str]:
    """What holds the item where it is, and what would move it."""
    found = _holding(item, now_s)
    if policy.name == "uniform":
        return [*found, "the policy is uniform: every item is polled equally often"]
    # The weight that is worth what is polled now, were its rate a unit.
    level = (
        policy.threshold
        * item.cost
        * float(policy.memory.outlay[row] / max(policy.memory.stake[row], 1e-300))
    )
    if item.weight == 0:
        found.append("its weight is 0: it is polled only when nothing else needs it")
    elif level <= 0:
        found.append("nothing has been polled yet, so there is no price of a poll to compare with")
    elif policy.floor > 0 and not policy.memory.stake[row] > 0:
        found.append("futile: its source has no benefit, so that no poll pays; others have one")
    elif policy.objective == "freshness" and policy.floor > 0 and item.weight < level * rate:
        found.append(
            "futile: it changes too fast for its cost, so that a poll earns less than it costs; "
            f"a weight of {level * rate:.3g} would pay"
        )
    elif policy.objective == "freshness" and item.weight < level * rate:
        found.append(
            "dropped: it changes so often that a poll is worth little; "
            f"a weight of {level * rate:.3g} or a larger budget would bring it back"
        )
    else:
        heavier_s = float(policy.ranking.due_after_s(np.array([row]), policy.threshold / 2)[0])
        found.append(f"with twice the weight it would be polled every {format_duration(heavier_s)}")
    return found


def _holding(item: Item, now_s: float, *, due: bool = True) -> list[str]:
    found = []
    if item.status != "active":
        found.append(f"it is {item.status}: not polled until 'afresh set {item.key} --resume'")
    if item.failures:
        found.append(f"its last {item.failures} polls failed ({item.problem}); tried again when due")
    if item.polled_s is None:
        found.append("it has never been fetched: that comes first")
    if item.min_interval_s > 0:
        found.append(f"never more often than every {format_duration(item.min_interval_s)}")
    if math.isfinite(item.max_interval_s):
        found.append(f"at least every {format_duration(item.max_interval_s)}")
    if due and item.due_s <= now_s and item.status == "active" and item.polled_s is not None:
        found.append("due now: waits for its host's turn, the budget, or an engine to run")
    return found
