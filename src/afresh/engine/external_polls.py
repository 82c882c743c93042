"""Records polls that other programs made.

A reported poll has an ``item``, a ``time`` and either ``changed`` (true or false) or ``content``. If it has a
``lease`` (the token of a lease that ``due`` returned), the report ends that lease. Content is compared with
the copy in the same way as in the engine's own polls. The scheduler of all items (``external_scheduler``)
learns from these polls as it does in a run. Several polls of an item with neither lease nor content are a log
of the past. Each poll is recorded once: a second report of the same item and time is ignored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.scheduler.poll_recorder import compute_spent
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.restore import load_items, plan_shadow_price
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import PICKED_VALUES, SHADOW_PRICE
from afresh.rates.segments import rank_within, rounds, run_starts
from afresh.sources.change_detection import compare_content
from afresh.sources.parsing.parse_budget import ParseBudgetError
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.stores.store import Store
from afresh.values.errors import InputError
from afresh.values.fetched import Fetched
from afresh.values.items import Item, display_key
from afresh.values.lease import Lease
from afresh.values.outcome import Observation, Outcome
from afresh.values.stored import ObservationColumns

_BATCH = 1000
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


def record_external(
    store: Store, settings: Settings, external: ExternalScheduler, reported: Iterable[Reported], now_s: float
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
    past, live = _split(store, new, ids)
    refused: list[str] = []
    known = len(rows) - len(new)
    parsers = ParserPool()
    for batch in _batches(live):
        leases = _take_leases(store, batch, ids, now_s, settings.run.lease)
        polls = [(row, leases[row.item]) for row in batch if row.item in leases]
        with parsers.joined():
            words = _commit(settings, external, parsers, polls, now_s)
        for row in batch:
            if row.item in leases:
                problem = words.get(row.item, "")
            elif row.content is None:
                past.append(row)  # another program polls the item now, but what was seen of its rate counts
                continue
            else:
                problem = f"{row.item}: another engine is polling it"
            if problem and _poll_mark(row, ids) in seen:
                known += 1  # the lease ended with the same report before: the caller repeated its call
            elif problem:
                refused.append(problem)
    _import_log(store, settings, external, past, ids, now_s)
    return ExternalPollsResult(len(rows) - known - len(refused), tuple(refused), known)


def _problem(row: Reported, ids: dict[str, int], now_s: float) -> str:
    """Return what is wrong with a reported poll, or an empty string if it is valid."""
    if row.item not in ids:
        return f"there is no item {display_key(row.item)}: add it first"
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


def _split(store: Store, new: list[Reported], ids: dict[str, int]) -> tuple[list[Reported], list[Reported]]:
    """Return a tuple (past, live). Live polls are learned one by one, like those of a run: polls with a lease
    or content, and single polls that are later than the last known poll of their item. All others are logs
    of the past: the beliefs of their items are learned again from all observations."""
    alone = {item for item, count in Counter(row.item for row in new).items() if count == 1}
    polled_s = {item.key: item.polled_s for item in store.items.by_id([ids[key] for key in alone])}

    def is_live(row: Reported) -> bool:
        if row.content is not None or row.lease is not None:
            return True
        last_s = polled_s.get(row.item, math.inf)
        return row.item in alone and (last_s is None or row.time_s > last_s)

    live = [is_live(row) for row in new]
    return list(compress(new, [not one for one in live])), list(compress(new, live))


def _batches(live: list[Reported]) -> Iterator[list[Reported]]:
    """Yield batches of polls of distinct items; the polls of each item keep their order."""
    waiting = live
    while waiting:
        batch: dict[str, Reported] = {}
        later = []
        for row in waiting:
            if row.item in batch or len(batch) == _BATCH:
                later.append(row)
            else:
                batch[row.item] = row
        yield list(batch.values())
        waiting = later


def _import_log(
    store: Store,
    settings: Settings,
    external: ExternalScheduler,
    past: list[Reported],
    ids: dict[str, int],
    now_s: float,
) -> None:
    """Add polls of the past, learn the beliefs of their items again, and set when these are due."""
    if not past:
        return
    changed = sorted({ids[row.item] for row in past})
    _add_observations(store, past, ids)
    relearn(store, settings, changed, now_s)
    external.forget()
    scheduler = external.refresh(settings, now_s)
    # The price is planned, because without polls at this budget no shadow price is measured.
    price = plan_shadow_price(scheduler.policy, settings.budget.requests)
    if price > 0:
        scheduler.policy.restore_price(price, ())
    store.state.set({SHADOW_PRICE: repr(price).encode(), PICKED_VALUES: None})
    rows = scheduler.item_rows.rows(changed)
    due_s = scheduler.policy.next_polls_s(rows, scheduler.item_rows.polled_s[rows])
    store.plan.save(scheduler.item_rows.ids[rows], due_s)
    external.forget()


def _take_leases(
    store: Store, batch: list[Reported], ids: dict[str, int], now_s: float, lease_s: float
) -> dict[str, Lease]:
    """Return the leases of the items of ``batch``, by key: the one whose token the report contains, or a new
    one if it contains none and no other worker has leased the item."""
    without = [ids[row.item] for row in batch if row.lease is None]
    taken = {lease.key: lease for lease in store.leases.take(without, now_s, lease_s, any_status=True)}
    items = {item.key: item for item in store.items.by_id([ids[row.item] for row in batch])}
    given = {row.item: _lease(store, items[row.item], row.lease, now_s) for row in batch if row.lease}
    return taken | given


def _commit(
    settings: Settings,
    external: ExternalScheduler,
    parsers: ParserPool,
    polls: list[tuple[Reported, Lease]],
    now_s: float,
) -> dict[str, str]:
    """Learn from polls of distinct items and commit them. Return by key why polls were refused."""
    recorder = external.recorder(settings, now_s)
    spent = compute_spent(settings.budget, 1, 0, 0.0)
    outcomes, unpaid = [], 0
    for row, lease in polls:
        if row.content is None:
            # The program stores the copies itself, and reports only whether the item changed.
            elapsed_s = 0.0 if lease.polled_s is None else max(row.time_s - lease.polled_s, 0.0)
            seen = Observation(lease.item_id, row.time_s, elapsed_s, bool(row.changed))
            outcomes.append(Outcome(lease, row.time_s, due_s=-math.inf, observation=seen, spent=spent))
        else:
            fetched = _fetched(settings, parsers, row.content, row.media_type, lease)
            outcomes.append(recorder.decide(lease, fetched, row.time_s, audit=False))
        # The request of a lease from ``due`` was reserved when it was given. Slots of the past are over.
        unpaid += row.lease is None and row.time_s >= now_s - budget_limits(settings.budget).covered_s
    external.reserve(settings, unpaid, now_s)
    tokens = {lease.item_id: (row.item, row.lease) for row, lease in polls}
    words = {}
    for refusal in external.commit(recorder, outcomes, now_s):
        key, token = tokens[refusal.item_id]
        reason = "was never issued, has ended, or expired and went to another worker"
        lost = f"lease {token} is not valid: it {reason}"
        words[key] = f"{key}: {refusal if refusal.reason == 'removed' or token is None else lost}"
    return words


def _lease(store: Store, item: Item, token: int, now_s: float) -> Lease:
    """Return the lease of an item whose token a report contains."""
    copy = store.copies.versions(item.id)
    return Lease(
        item.id,
        item.key,
        item.source,
        item.group,
        token=token,
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


def _fetched(
    settings: Settings, parsers: ParserPool, content: bytes, media_type: str, lease: Lease
) -> Fetched:
    """Compare the reported content with the copy by the rules of the item's source; return the result."""
    table = settings.source(lease.source)
    if table is None:
        raise InputError(f"{lease.key}: its source {lease.source!r} is not in the settings")
    source = table.settings
    recipe, copy = source.recipe.for_item(lease.selector), (lease.content_hash, lease.validators)
    try:
        verdict = parsers.parse_here(
            compare_content, content, media_type, recipe, *copy, source.near_duplicate
        )
    except ParseBudgetError as error:
        return Fetched("failed", problem=str(error), requests=1)
    # The other program paid for the poll, so that ``bytes`` is 0. A lease that was rebuilt from its token has
    # no validators, which would contain the rules of the last comparison: content counts as ``comparable``.
    return replace(verdict.to_fetched(content, media_type), comparable=True, bytes=0, requests=1)
