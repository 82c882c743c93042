"""Records polls that other programs made, and lists the items that are due for them.

A reported poll has an ``item``, a ``time`` and either ``changed`` (true or false) or ``content``. If it has a
``lease`` (the token of a lease that ``due`` returned), the report ends that lease. Content is compared with
the copy in the same way as in the engine's own polls. A poll with neither lease nor content only teaches the
engine the rate. Each poll is recorded once: a second report of the same item and time is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.poll_recorder import PollRecorder
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.reschedule import reschedule
from afresh.engine.scheduler.restore import load_items, restore_scheduler, save_planned_price
from afresh.engine.settings.tables import LiveSettings, Settings
from afresh.rates.segments import rank_within, rounds, run_starts
from afresh.sources.change_detection import compare_content
from afresh.stores.store import Store
from afresh.values.errors import InputError
from afresh.values.fetched import Fetched
from afresh.values.items import Item
from afresh.values.lease import Lease
from afresh.values.outcome import Observation, Outcome
from afresh.values.stored import ObservationColumns

_BATCH = 1000
_MORE = 4  # the search for due items of some sources is repeated with a limit that is this much higher
_AHEAD_S = 86400.0  # the clocks of other programs may be ahead by this much


@dataclass(frozen=True, slots=True)
class Reported:
    """One poll that another program made. ``time_s`` is in Unix seconds, ``lease`` is the token of the lease,
    and ``row`` is the number of the poll in the input, for error messages."""

    item: str
    time_s: float
    changed: bool | None = None
    content: bytes | None = None
    media_type: str = ""
    lease: int | None = None
    row: int = 0


@dataclass(frozen=True, slots=True)
class ExternalPollsResult:
    """The result of a report: ``taken`` is the number of polls that were recorded now, ``known`` the number
    that had been recorded before, and ``refused`` has a message for each poll that was refused."""

    taken: int
    refused: tuple[str, ...]
    known: int = 0


def due_items(store: Store, now_s: float, k: int, sources: Collection[str]) -> list[Item]:
    """Return at most ``k`` due items of ``sources``; items that have been due longer come first."""
    limit = k
    while True:
        ids = store.items.due(now_s, limit)
        found = [item for item in store.items.by_id(ids) if item.source in sources]
        if len(found) >= k or len(ids) < limit:
            return found[:k]
        limit *= _MORE


def record_external(
    store: Store, settings: Settings, reported: Iterable[Reported], now_s: float
) -> ExternalPollsResult:
    """Record polls that other programs made, and set when their items are due. If one poll is invalid, raise
    ``InputError`` and record none."""
    rows = sorted(reported, key=lambda row: (row.item, row.time_s))
    ids = store.items.ids(list({row.item for row in rows}))
    for row in rows:
        if problem := _problem(row, ids, now_s):
            raise InputError(problem, row=row.row or None, line=0)
    seen = _known_polls(store, sorted(ids.values()))
    new = _new_polls(rows, ids, seen)
    past = [row for row in new if row.content is None and row.lease is None]
    live = [row for row in new if row.content is not None or row.lease is not None]
    _add_observations(store, past, ids)
    relearn(store, settings, sorted({ids[row.item] for row in past}), now_s)
    save_planned_price(store, settings, now_s)
    reschedule(store, settings, sorted({ids[row.item] for row in past}), now_s)
    refused: list[str] = []
    known = len(rows) - len(new)
    for row in live:
        words = _commit(store, settings, row, ids[row.item], now_s)
        if words and _poll_mark(row, ids) in seen:
            known += 1  # the lease ended with the same report before: the caller repeated its call
        else:
            refused += words
    return ExternalPollsResult(len(rows) - known - len(refused), tuple(refused), known)


def _problem(row: Reported, ids: dict[str, int], now_s: float) -> str:
    """Return what is wrong with a reported poll, or an empty string if it is valid."""
    if row.item not in ids:
        return f"there is no item {row.item!r}: add it first"
    if row.changed is None and row.content is None:
        return "has neither changed nor content"
    if not 0 <= row.time_s <= now_s + _AHEAD_S:
        when = "in the future" if row.time_s > 0 else "before 1970"
        return f"{row.item}: time is {row.time_s:.17g}, {when}: give Unix seconds or ISO 8601"
    return ""


def _known_polls(store: Store, ids: list[int]) -> set[tuple[int, int]]:
    """Return the marks (see ``_poll_mark``) of the stored polls of the items ``ids``."""
    return {
        mark
        for batch in store.observations.read(ids)
        for mark in zip(batch.item_id.tolist(), np.rint(batch.time_s * 1e6).astype(int).tolist(), strict=True)
    }


def _poll_mark(row: Reported, ids: dict[str, int]) -> tuple[int, int]:
    """Return a tuple that identifies a poll: item id and time in microseconds, the precision of stores."""
    return ids[row.item], round(row.time_s * 1e6)


def _new_polls(rows: list[Reported], ids: dict[str, int], seen: set[tuple[int, int]]) -> list[Reported]:
    """Return the polls to record: each poll that is not in ``seen``, once, and every poll that has a lease.
    ``ids`` maps keys to item ids; ``seen`` contains the marks of the stored polls."""
    before, found = set(seen), []
    for row in rows:
        if row.lease is not None or _poll_mark(row, ids) not in before:
            found.append(row)
        before.add(_poll_mark(row, ids))
    return found


def _add_observations(store: Store, rows: list[Reported], ids: dict[str, int]) -> None:
    if not rows:
        return
    order = sorted(rows, key=lambda row: (ids[row.item], row.time_s))
    item_id = np.array([ids[row.item] for row in order], dtype=np.int64)
    time_s = np.array([row.time_s for row in order])
    first = np.r_[True, item_id[1:] != item_id[:-1]]
    last = {item.id: item.polled_s for item in store.items.by_id(sorted(set(item_id.tolist())))}
    before = np.array([np.nan if (at := last[int(i)]) is None else at for i in item_id])
    previous = np.where(first, before, np.r_[0.0, time_s[:-1]])
    # The time before the last known poll is already observed: an earlier poll has an elapsed time of 0.
    elapsed = np.where(np.isnan(previous), 0.0, np.maximum(time_s - previous, 0.0))
    nothing = np.full(time_s.size, np.nan)
    changed = np.array([bool(row.changed) for row in order])
    store.observations.add(
        ObservationColumns(
            item_id, time_s, elapsed, changed, nothing, nothing, np.zeros(time_s.size, dtype=bool)
        )
    )


def relearn(store: Store, settings: Settings, ids: list[int], now_s: float) -> None:
    """Compute the beliefs of the items ``ids`` again, from their stored observations alone."""
    for begin in range(0, len(ids), _BATCH):
        part = ids[begin : begin + _BATCH]
        item_rows = load_items([store.plan.columns_of(part)])
        item_rows.pending_beliefs = []
        batches = list(store.observations.read(part))
        gaps_s = np.concatenate([batch.elapsed_s[batch.elapsed_s > 0] for batch in batches] or [np.empty(0)])
        if gaps_s.size:
            # The grid of rates is built for a budget: here for the one that gives the mean gap between polls.
            pace = float(item_rows.cost.sum() / gaps_s.mean())
            ranking = Ranking(item_rows, RankingStart(pace, settings.plan.objective, now_s))
            for batch in batches:
                _learn_in_order(ranking, batch, now_s)
            store.plan.save(item_rows.ids, item_rows.due_s, ranking.pack(np.arange(item_rows.size)))


def _learn_in_order(ranking: Ranking, seen: ObservationColumns, now_s: float) -> None:
    """Learn the first observation of every item, then the second of every item, and so on: one call of
    ``observe`` may contain each item only once."""
    rows = np.searchsorted(ranking.item_rows.ids, seen.item_id)
    for part in rounds(rank_within(run_starts(rows))):
        began_s = np.minimum(seen.time_s[part] - seen.elapsed_s[part], now_s)
        ranking.adaptive.mark_copied(rows[part], began_s)
        compared = part[seen.elapsed_s[part] > 0]
        times_s = np.minimum(seen.time_s[compared], now_s)
        ranking.adaptive.observe(rows[compared], times_s, seen.changed[compared])


def _commit(store: Store, settings: Settings, row: Reported, item_id: int, now_s: float) -> list[str]:
    item = store.items.by_id([item_id])[0]
    lease = _lease(store, item, row, now_s, settings.run.lease)
    if lease is None:
        return [f"{row.item}: another engine is polling it"]
    scheduler = restore_scheduler(store, settings, [store.plan.columns_of([item_id])], now_s)
    recorder = PollRecorder(LiveSettings(settings), scheduler, PollCosts())
    if row.content is None:
        # The program stores the copies itself, and reports only whether the item changed.
        elapsed_s = 0.0 if lease.polled_s is None else max(row.time_s - lease.polled_s, 0.0)
        seen = Observation(item_id, row.time_s, elapsed_s, bool(row.changed))
        poll = Outcome(lease, row.time_s, due_s=-math.inf, observation=seen)
    else:
        fetched = _fetched(settings, row.content, row.media_type, lease)
        poll = recorder.decide(lease, fetched, row.time_s, audit=False)
    refusals = store.commit(recorder.complete([poll]))
    reason = "was never issued, has ended, or expired and went to another worker"
    lost = f"lease {row.lease} is not valid: it {reason}"
    return [
        f"{row.item}: {refusal if refusal.reason == 'removed' or row.lease is None else lost}"
        for refusal in refusals
    ]


def _lease(store: Store, item: Item, row: Reported, now_s: float, lease_s: float) -> Lease | None:
    """Return the lease whose token the report contains. If it contains none, take a new lease; return None if
    another worker has leased the item."""
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
        selector=item.selector,
    )


def _fetched(settings: Settings, content: bytes, media_type: str, lease: Lease) -> Fetched:
    """Compare the reported content with the copy by the rules of the item's source; return the result."""
    table = settings.source(lease.source)
    if table is None:
        raise InputError(f"{lease.key}: its source {lease.source!r} is not in the settings")
    verdict = compare_content(
        content,
        media_type,
        table.settings.recipe.for_item(lease.selector),
        held_hash=lease.content_hash,
        held_notes=lease.validators,
        near_duplicate=table.settings.near_duplicate,
    )
    # The other program paid for the poll, so that ``bytes`` is 0. A lease that was rebuilt from its token has
    # no validators, which would contain the rules of the last comparison: content counts as ``comparable``.
    return replace(verdict.to_fetched(content, media_type), comparable=True, bytes=0)
