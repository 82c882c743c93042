"""The rates that people are shown: by the polls of each item itself, which the store keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np

from afresh.engine.scheduler.ranking import GUESS_DOUBT, GUESS_SHAPE
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.policy.adaptive.rate_belief import rate_interval
from afresh.stores.store import Store
from afresh.values.stored import ObservationColumns

LEVEL = 0.9


_NONE, _NO = np.empty(0), np.empty(0, dtype=bool)
NO_POLLS = ObservationColumns(np.empty(0, dtype=np.int64), _NONE, _NONE, _NO, _NONE, _NONE, _NO)


def read_polls(store: Store, ids: Sequence[int]) -> dict[int, ObservationColumns]:
    """Return the polls of each of these items that observed something; an item without any is left out."""
    found: dict[int, ObservationColumns] = {}
    for batch in store.observations.read(ids):
        for item_id in np.unique(batch.item_id).tolist():
            its = batch.item_id == item_id
            found[item_id] = ObservationColumns(*(getattr(batch, each.name)[its] for each in fields(batch)))
    return found


def own_rates(
    polls: Mapping[int, ObservationColumns], scheduler: Scheduler, ids: Sequence[int], now_s: float
) -> dict[int, tuple[float, float, float]]:
    """Return by item the median of its rate and its 90 % interval (``rate_belief``)."""
    ranking, item_rows = scheduler.policy.ranking, scheduler.item_rows
    found = {}
    for item_id in ids:
        row, its = item_rows.row(item_id), polls.get(item_id, NO_POLLS)
        compared = its.elapsed_s > 0  # the first poll of an item has nothing to compare with
        guess = 0.0 if row is None else float(np.nan_to_num(item_rows.prior_rate_per_s[row]))
        found[item_id] = rate_interval(
            ranking.adaptive.belief,
            its.elapsed_s[compared],
            its.changed[compared],
            np.maximum(now_s - its.time_s[compared], 0.0),
            level=LEVEL,
            of_items=ranking.total_items,
            guess=guess,
            guess_shape=GUESS_SHAPE,
            guess_doubt=GUESS_DOUBT,
        )
    return found
