"""What the engine believes of some items: rate with its interval, frequency, freshness and worth now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.engine.mind.own_rates import own_rates
from afresh.engine.mind.row_policy import RowPolicy
from afresh.engine.mind.snapshot import loaded, recalled
from afresh.engine.settings.tables import Settings
from afresh.stores.store import Store
from afresh.values.items import Item

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Belief:
    """Of one item; rates per second. ``plan``: kept, dropped, new, or the status if not active."""

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    interval_s: float
    fresh: float
    worth: float
    plan: str


def policy_of(store: Store, settings: Settings, ids: Sequence[int], now_s: float) -> RowPolicy:
    """The policy over these items alone, as the store remembers it; rows in order of id."""
    return recalled(store, settings, loaded([store.plan.columns_of(ids)]), now_s)


def believed(store: Store, settings: Settings, items: Sequence[Item], now_s: float) -> list[Belief]:
    """What is believed of each of these items now."""
    if not items:
        return []
    policy = policy_of(store, settings, [item.id for item in items], now_s)
    memory = policy.memory
    rates = own_rates(store, policy, memory.ids.tolist(), now_s)
    fresh, worth = policy.fresh(now_s), policy.worth(now_s)
    intervals_s = policy.intervals_s(np.arange(memory.size))
    rows = {int(item_id): row for row, item_id in enumerate(memory.ids)}
    nothing = Belief(*(math.nan,) * 6, plan="removed")
    found = []
    for item in items:
        row = rows.get(item.id)
        if row is None:  # removed since the page was read
            found.append(nothing)
            continue
        interval_s = float(intervals_s[row])
        numbers = (*rates[item.id], interval_s, float(fresh[row]), float(worth[row]))
        found.append(Belief(*numbers, plan=plan_word(item, interval_s)))
    return found


def plan_word(item: Item, interval_s: float) -> str:
    """What becomes of an item at this budget, in a word; what would never be polled again is dropped."""
    if item.status != "active":
        return item.status
    if item.polled_s is None:
        return "new"
    if item.weight == 0:
        return "unweighted"
    return "kept" if math.isfinite(interval_s) else "dropped"
