"""The polls from which it is learned what all items tell together: those of a fixed sample of the items.

A sample, because a page of the dashboard cannot wait until a million polls are read. What is shown of an item
depends on the sample while the item itself has few polls, so the sample is as large as time allows: it has
about ``MOST_POLLS`` polls, of ``FEWEST`` to ``MOST`` items. Where items have few polls, these are many items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.stored_beliefs import FORGOTTEN
from afresh.rates.item_sample import sample_keys
from afresh.stores.store import Store
from afresh.values.stored import ObservationColumns

FEWEST, MOST = 100, 500  # items
MOST_POLLS = 5000  # learning from so many takes about 0.2 s
_READ_TOGETHER = 5  # items of the sample with consecutive ids, in a store that is not loaded whole


def read_polls(store: Store, ids: Sequence[int]) -> dict[int, ObservationColumns]:
    """Return the successful polls of the items ``ids`` that still count, by item id. Items without such polls
    are left out, as are those of which all that was learned was forgotten."""
    known = store.plan.columns_of(ids)
    forgotten = set(known.id[known.belief_size == len(FORGOTTEN)].tolist())
    found: dict[int, ObservationColumns] = {}
    for batch in store.observations.read([item_id for item_id in ids if item_id not in forgotten]):
        seen = batch.still_counting()
        for item_id in np.unique(seen.item_id).tolist():
            found[item_id] = seen.take(seen.item_id == item_id)
    return found


def read_sampled_polls(
    store: Store, scheduler: Scheduler, most_of_item: int
) -> dict[int, ObservationColumns]:
    """Return the polls of the sample by item id; of an item ``most_of_item`` polls are used at most."""
    items = sum(count.items for count in store.items.counts())
    found = read_polls(store, _sample_ids(store, scheduler, items, FEWEST))
    number = _sample_size(found, min(items, FEWEST), most_of_item)
    if items > FEWEST and number > FEWEST:
        return read_polls(store, _sample_ids(store, scheduler, items, number))
    return found


def _sample_size(found: Mapping[int, ObservationColumns], items: int, most_of_item: int) -> int:
    """Return how many items have about ``MOST_POLLS`` polls, if these ``items`` are like the others."""
    polls = sum(min(len(each), most_of_item) for each in found.values())
    return min(max(FEWEST, MOST_POLLS * items // max(polls, 1)), MOST)


def _sample_ids(store: Store, scheduler: Scheduler, items: int, number: int) -> list[int]:
    """Return the ids of a fixed sample of about ``number`` of the ``items`` in the store."""
    item_rows = scheduler.item_rows
    if item_rows.size >= items:  # the scheduler has loaded all items
        # Not every k-th item, which may be all of one kind where items were added in a pattern.
        ids = item_rows.ids.tolist()
        return sorted(ids[at] for at in sample_keys([str(item_id) for item_id in ids], number).tolist())
    # Ids count up from 1, so there are items with ids above each of these numbers.
    steps = number // _READ_TOGETHER
    parts = (
        next(iter(store.plan.columns(after_id=step * items // steps, batch=_READ_TOGETHER)), None)
        for step in range(steps)
    )
    return sorted({int(item_id) for part in parts if part is not None for item_id in part.id})
