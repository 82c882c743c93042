"""For those who fetch themselves: outcomes taken back, and poll logs of long ago.

A row says ``item``, ``time`` and either ``changed`` (true or false) or ``content``; ``lease`` is the token
that ``due`` gave out. A row with a lease ends it; one with content is judged like any poll's; rows of the
past that carry neither only teach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from afresh.engine.accounts import Accounts
from afresh.engine.decide import Decision
from afresh.engine.policy import Policy
from afresh.engine.settings import Settings
from afresh.engine.snapshot import loaded, recalled, replan
from afresh.sources.judgement import judge
from afresh.stores.store import Store
from afresh.values.errors import InputError
from afresh.values.fetched import Fetched
from afresh.values.items import Item
from afresh.values.lease import Lease
from afresh.values.outcome import Observation
from afresh.values.stored import ObservationColumns

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Reported:
    """One poll made elsewhere."""

    item: str
    time_s: float
    changed: bool | None = None
    content: bytes | None = None
    media_type: str = ""
    lease: int | None = None
    row: int = 0


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What became of reported polls: how many count, and why the others do not, in words."""

    taken: int
    refused: tuple[str, ...]


def take_back(store: Store, settings: Settings, reported: Iterable[Reported], now_s: float) -> TakenBack:
    """Learn from polls made elsewhere; all rows are looked at before any counts."""
    rows = sorted(reported, key=lambda row: (row.item, row.time_s))
    ids = store.items.ids(list({row.item for row in rows}))
    for row in rows:
        if row.item not in ids:
            raise InputError(f"there is no item {row.item!r}: add it first", row=row.row or None, line=0)
        if row.changed is None and row.content is None:
            raise InputError("says neither changed nor content", row=row.row or None, line=0)
    past = [row for row in rows if row.content is None and row.lease is None]
    live = [row for row in rows if row.content is not None or row.lease is not None]
    _teach(store, past, ids)
    replan(store, settings)
    relearn(store, settings, sorted({ids[row.item] for row in past}))
    refused: list[str] = []
    for row in live:
        refused += _commit(store, settings, row, ids[row.item], now_s)
    return TakenBack(len(rows) - len(refused), tuple(refused))


def _teach(store: Store, rows: list[Reported], ids: dict[str, int]) -> None:
    """Past polls are kept as observations."""
    if not rows:
        return
    order = sorted(rows, key=lambda row: (ids[row.item], row.time_s))
    item_id = np.array([ids[row.item] for row in order], dtype=np.int64)
    time_s = np.array([row.time_s for row in order])
    first = np.r_[True, item_id[1:] != item_id[:-1]]
    last = {item.id: item.polled_s for item in store.items.by_id(sorted(set(item_id.tolist())))}
    before = np.array([np.nan if (at := last[int(i)]) is None else at for i in item_id])
    previous = np.where(first, before, np.r_[0.0, time_s[:-1]])
    # A poll before the last one known starts a clock of its own: the time between is already told.
    elapsed = np.where(np.isnan(previous), 0.0, np.maximum(time_s - previous, 0.0))
    nothing = np.full(time_s.size, np.nan)
    changed = np.array([bool(row.changed) for row in order])
    store.observations.add(
        ObservationColumns(
            item_id, time_s, elapsed, changed, nothing, nothing, np.zeros(time_s.size, dtype=bool)
        )
    )


def relearn(store: Store, settings: Settings, ids: list[int]) -> None:
    """Beliefs and due times of these items from their observations alone."""
    for begin in range(0, len(ids), _BATCH):
        part = ids[begin : begin + _BATCH]
        policy = recalled(store, settings, loaded([store.plan.columns_of(part)]))
        policy.memory.more[:] = 0.0
        for batch in store.observations.read(part):
            _fold(policy, batch)
        memory = policy.memory
        due_s = np.array([policy.due_s(row, float(memory.polled_s[row])) for row in range(memory.size)])
        due_s = np.where(np.isnan(due_s), memory.due_s, due_s)
        store.plan.save(memory.ids, due_s, [memory.evidence(row) for row in range(memory.size)])


def _fold(policy: Policy, seen: ObservationColumns) -> None:
    rows = np.searchsorted(policy.memory.ids, seen.item_id)
    for row, time_s, elapsed_s, changed in zip(
        rows.tolist(), seen.time_s.tolist(), seen.elapsed_s.tolist(), seen.changed.tolist(), strict=True
    ):
        policy.observe(row, time_s, elapsed_s, changed)


def _commit(store: Store, settings: Settings, row: Reported, item_id: int, now_s: float) -> list[str]:
    item = store.items.by_id([item_id])[0]
    lease = _lease(store, item, row, now_s, settings.run.lease)
    if lease is None:
        return [f"{row.item}: another engine is polling it"]
    policy = recalled(store, settings, loaded([store.plan.columns_of([item_id])]))
    accounts = Accounts(settings, policy.memory, policy)
    if row.content is None:
        outcome = accounts.settle(lease, 0, Decision(_bit(row, lease)), row.time_s)
    else:
        fetched = _fetched(settings, row.content, row.media_type, lease)
        outcome = accounts.outcome(lease, 0, fetched, row.time_s, audit=False)
    return [f"{row.item}: {refusal}" for refusal in store.commit([outcome])]


def _lease(store: Store, item: Item, row: Reported, now_s: float, lease_s: float) -> Lease | None:
    """The lease that the row names, or one taken for the moment."""
    if row.lease is None:
        taken = store.leases.take([item.id], now_s, lease_s, any_status=True)
        return taken[0] if taken else None
    copy = store.copies.versions(item.id)
    return Lease(
        item.id,
        item.key,
        item.source,
        item.group,
        token=row.lease,
        until_s=now_s,
        leased_s=now_s,
        content_hash=copy[0].normal_hash if copy else None,
        polled_s=item.polled_s,
        status=item.status,
        failures=item.failures,
        min_interval_s=item.min_interval_s,
        max_interval_s=item.max_interval_s,
        labels=item.labels,
    )


def _bit(row: Reported, lease: Lease) -> Observation:
    """A fetcher that keeps its own copies says only whether there was a change."""
    elapsed_s = 0.0 if lease.polled_s is None else max(row.time_s - lease.polled_s, 0.0)
    return Observation(lease.item_id, row.time_s, elapsed_s, bool(row.changed))


def _fetched(settings: Settings, content: bytes, media_type: str, lease: Lease) -> Fetched:
    """Content from elsewhere, judged as the source itself would."""
    table = settings.source(lease.source)
    if table is None:
        raise InputError(f"{lease.key}: its source {lease.source!r} is not in the settings")
    verdict = judge(
        content,
        media_type,
        table.settings.recipe,
        held_hash=lease.content_hash,
        held_notes=lease.validators,
        near_duplicate=table.settings.near_duplicate,
    )
    if not verdict.changed:
        return Fetched("unchanged", normal_hash=verdict.normal_hash, validators=verdict.notes)
    return Fetched(
        "content",
        content=content,
        media_type=media_type,
        normal_hash=verdict.normal_hash,
        validators=verdict.notes,
    )
