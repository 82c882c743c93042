"""Some items as the store had them at one moment: the basis of everything that an answer says of them.

An engine in another process goes on while an answer is put together. If one part of a page restored the
policy a moment after another part did, the two could name different plans for one item. So the time, the
settings, the policy and the polls are read once, into an ``ItemSnapshot``, and every part of the answer is
computed from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from afresh.engine.reporting.watched_items import WatchedItem, items_compared_with, watched_items
from afresh.engine.scheduler.ranking import GUESS_DOUBT, GUESS_SHAPE
from afresh.engine.scheduler.restore import restore_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.policy.adaptive.rate_belief import rate_interval
from afresh.stores.store import Store
from afresh.values.items import Item
from afresh.values.stored import ObservationColumns, PolicyColumns

_LOADED_WHOLE = 5000  # this number of items is restored in some hundredths of a second
RateInterval = tuple[float, float, float]
"""The median of a rate per second, and the lower and upper end of its 90 % interval."""

_RATE_LEVEL = 0.9
_NONE, _NO = np.empty(0), np.empty(0, dtype=bool)
NO_POLLS = ObservationColumns(np.empty(0, dtype=np.int64), _NONE, _NONE, _NO, _NONE, _NONE, _NO)


@dataclass(frozen=True, slots=True)
class ItemSnapshot:
    """What was known of ``items`` at ``time_s``, under the ``settings`` of the engine that runs.
    ``scheduler`` holds these items and those they are weighed against. ``rates`` and ``polls`` are by item
    id; ``seen`` is by key, for the items whose staleness is observed without polls."""

    time_s: float
    settings: Settings
    items: tuple[Item, ...]
    scheduler: Scheduler
    rates: Mapping[int, RateInterval]
    polls: Mapping[int, ObservationColumns]
    seen: Mapping[str, WatchedItem]

    def polls_of(self, item: Item) -> ObservationColumns:
        return self.polls.get(item.id, NO_POLLS)


def take_snapshot(store: Store, settings: Settings, items: Sequence[Item], now_s: float) -> ItemSnapshot:
    """Read everything about these items once."""
    scheduler = restore_scheduler(store, settings, _columns_for(store, settings, items), now_s)
    wanted = [item.id for item in items]
    polls = read_polls(store, wanted)
    rates = own_rates(polls, scheduler, wanted, now_s)
    seen = {one.item: one for one in watched_items(store, scheduler, now_s)}
    for item in items:
        observed = seen.get(item.key)
        if observed is not None and observed.rate_per_s >= 0:
            rates[item.id] = observed.rate_per_s, observed.low_per_s, observed.high_per_s
    return ItemSnapshot(
        time_s=now_s,
        settings=settings,
        items=tuple(items),
        scheduler=scheduler,
        rates=rates,
        polls=polls,
        seen=seen,
    )


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
) -> dict[int, RateInterval]:
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
            level=_RATE_LEVEL,
            of_items=ranking.total_items,
            guess=guess,
            guess_shape=GUESS_SHAPE,
            guess_doubt=GUESS_DOUBT,
        )
    return found


def _columns_for(store: Store, settings: Settings, items: Sequence[Item]) -> Iterable[PolicyColumns]:
    """Return these items, and the others that influence what a poll of them is worth. That depends a little
    on all items, such as on the mean time between polls. So where there are not very many, all are loaded:
    then no page says anything else than another that shows other items beside this one."""
    if sum(count.items for count in store.items.counts()) <= _LOADED_WHOLE:
        return store.plan.columns()
    return [store.plan.columns_of(items_compared_with(store, settings, items))]
