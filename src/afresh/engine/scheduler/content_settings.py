"""Forgets what was learned of items under other content settings, such as ``drop``, ``ignore`` or a selector.

The content settings decide which differences are changes. If a page has a clock, it changes with every poll
until the clock is dropped, and nothing that was learned before is true afterwards. The store keeps for each
source a fingerprint of the content settings under which its items are polled. If they are others, the stored
beliefs of the items are replaced by ``FORGOTTEN``: they are polled as if they were new, but for their copies.
The first poll of each is then a new baseline (``values.outcome.STARTS_AGAIN``), before which no poll counts.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.scheduler.restore import pack_learned, unpack_learned
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.stored_beliefs import FORGOTTEN, unpack
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import CONTENT_FINGERPRINT, LEARNED
from afresh.policy.adaptive.saved_state import without_items
from afresh.sources.settings import SourceSettings
from afresh.stores.store import Store
from afresh.values.arrays import Bools, Ints
from afresh.values.items import STATUSES
from afresh.values.stored import PolicyColumns

_MUCH = 0.1  # from this share of all items on, what was learned of all items together is learned again
_ACTIVE = STATUSES.index("active")


def forget_after_content_change(
    store: Store, sources: Iterable[SourceSettings], now_s: float
) -> tuple[str, ...]:
    """Forget the stored beliefs of items whose source has other content settings than before; return the
    names of these sources. ``sources`` are today's settings. The fingerprints are saved last, so that all is
    repeated after an interruption."""
    fingerprints = {source.name: source.content_fingerprint.encode() for source in sources}
    known = {name: store.state.get(CONTENT_FINGERPRINT + name) for name in fingerprints}
    changed = [name for name, new in fingerprints.items() if known[name] not in (None, new)]
    if changed:
        _forget_sources(store, changed, now_s)
    new = {name: each for name, each in fingerprints.items() if known[name] != each}
    if new:
        store.state.set({CONTENT_FINGERPRINT + name: each for name, each in new.items()})
    return tuple(changed)


def changed_sources(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the names of the sources whose content settings differ between two settings."""
    tables = ((before.source(table.settings.name), table) for table in after.sources)
    return tuple(
        new.settings.name
        for old, new in tables
        if old is not None and old.settings.content_fingerprint != new.settings.content_fingerprint
    )


def forget_items(store: Store, ids: Sequence[int], now_s: float) -> None:
    """Forget the stored beliefs of the items ``ids``."""
    _forget(store, store.plan.columns_of(ids), now_s)


def forget_rows(scheduler: Scheduler, sources: Collection[str], now_s: float) -> None:
    """Let a scheduler forget what it learned of the items of ``sources``."""
    codes = [code for code, name in scheduler.names.items() if name in sources]
    rows = np.flatnonzero(np.isin(scheduler.item_rows.source, codes))
    scheduler.forget(rows, now_s, together=rows.size >= _MUCH * scheduler.item_rows.size)


def _forget_sources(store: Store, names: Sequence[str], now_s: float) -> None:
    codes = [code for code, name in store.plan.names().items() if name in names]
    items, forgotten, families = 0, list[Ints](), list[Ints]()
    for columns in store.plan.columns():
        which = np.isin(columns.source, codes)
        forgotten.append(items + np.flatnonzero(which))
        items += which.size
        beliefs = unpack(columns.beliefs, columns.belief_size)
        families.append(np.unique(beliefs.families[which[beliefs.known]], axis=0))
        _forget(store, columns, now_s, which)
    _forget_together(store, items, forgotten, families)
    words = "content settings changed: what was learned of its items is forgotten"
    for name in names:
        log_event(logging.INFO, words, source=name)


def _forget_together(store: Store, items: int, forgotten: Sequence[Ints], families: Sequence[Ints]) -> None:
    """If much of what was learned of all ``items`` together came from the ``forgotten`` rows and their
    ``families``, learn it again from the others."""
    learned, rows = unpack_learned(store.state.get(LEARNED)), np.concatenate([*forgotten, np.zeros(0, int)])
    if learned is None or rows.size < _MUCH * items:
        return
    if rows.size == items:
        store.state.set({LEARNED: None})
        return
    for each in families:
        learned = without_items(learned, rows, each)
    store.state.set({LEARNED: pack_learned(learned)})


def _forget(store: Store, columns: PolicyColumns, now_s: float, which: Bools | None = None) -> None:
    chosen = np.arange(columns.id.size) if which is None else np.flatnonzero(which)
    due_s, is_active = columns.due_s[chosen], columns.status[chosen] == _ACTIVE
    due_s = np.where(is_active, np.minimum(due_s, now_s), due_s)
    store.plan.save(columns.id[chosen], due_s, [FORGOTTEN] * chosen.size)
