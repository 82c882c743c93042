"""How often items change, by their own polls that the store remembers: what people are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afresh.engine.mind.ranking import GUESS_DOUBT, GUESS_SHAPE
from afresh.engine.mind.row_policy import RowPolicy
from afresh.policy.adaptive.rate_interval import rate_interval
from afresh.stores.store import Store
from afresh.values.arrays import Bools, Float64s

LEVEL = 0.9


def own_rates(
    store: Store, policy: RowPolicy, ids: Sequence[int], now_s: float
) -> dict[int, tuple[float, float, float]]:
    """By item the median of its rate, and the interval that holds it at 90 % (``policy.rate_interval``)."""
    ranking, memory = policy.ranking, policy.memory
    told = _told(store, ids)
    nothing = np.empty(0), np.empty(0, dtype=bool), np.empty(0)
    found = {}
    for item_id in ids:
        row = memory.row(item_id)
        elapsed_s, changed, time_s = told.get(item_id, nothing)
        guess = 0.0 if row is None else float(np.nan_to_num(memory.prior_rate_per_s[row]))
        found[item_id] = rate_interval(
            ranking.policy.belief,
            elapsed_s,
            changed,
            np.maximum(now_s - time_s, 0.0),
            level=LEVEL,
            of_items=ranking.of_items,
            guess=guess,
            guess_shape=GUESS_SHAPE,
            guess_doubt=GUESS_DOUBT,
        )
    return found


def _told(store: Store, ids: Sequence[int]) -> dict[int, tuple[Float64s, Bools, Float64s]]:
    """The polls of each item that compared with one before: time since, found changed, when."""
    found: dict[int, tuple[Float64s, Bools, Float64s]] = {}
    for batch in store.observations.read(ids):
        for item_id in np.unique(batch.item_id).tolist():
            its = (batch.item_id == item_id) & (batch.elapsed_s > 0)
            found[item_id] = batch.elapsed_s[its], batch.changed[its], batch.time_s[its]
    return found
