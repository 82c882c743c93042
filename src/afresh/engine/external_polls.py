"""Records polls that other programs made.

A reported poll (``Reported``) has an item, a time, and what was found: content, whether the item changed, or
an HTTP status or failure, which mean what they mean in a run. If it has a ``lease`` (the token of a lease
that was lent), the report ends that lease. Item and lease identify the poll: if it is reported again within a
day, the first answer is given again. A report after the end of its lease counts unless the item was lent
again. The scheduler of all items (``external_scheduler``) learns from these polls as it does in a run.
Several polls of an item with neither lease nor content are a log of the past. Of those without a lease each
is recorded once: a second report of the same item and time is ignored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from afresh.engine.change_sizes import measure_changes
from afresh.engine.external_scheduler import ExternalScheduler
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.reported_fetch import is_fetch, request_end, to_fetched
from afresh.engine.scheduler.poll_recorder import PollRecorder, compute_spent, with_update_cost
from afresh.engine.scheduler.ranking import Ranking, RankingStart
from afresh.engine.scheduler.restore import load_items, plan_shadow_price
from afresh.engine.scheduler.store_room import StoreRoom, full_words
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import PICKED_VALUES, SHADOW_PRICE
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.rates.poll_table import MOST_CHANGES
from afresh.rates.segments import rank_within, rounds, run_starts
from afresh.sources.http.validators import validators_of
from afresh.sources.parsing.parser_pool import ParserPool
from afresh.stores.store import ANSWERS_KEPT_S, Store
from afresh.values.errors import AmbiguousKeyError, InputError
from afresh.values.fetched import Fetched
from afresh.values.items import display_key
from afresh.values.lease import Lease
from afresh.values.outcome import Answer, Observation, Outcome
from afresh.values.reported import ReportAnswer, ReportResult
from afresh.values.reported import Reported as Reported
from afresh.values.stored import ObservationColumns

_BATCH = 1000
_AHEAD_S = 86400.0  # the clocks of other programs may be ahead by this much


@dataclass(frozen=True, slots=True)
class ExternalPollsResult:
    """The result of a report: ``taken`` is the number of polls that were recorded now, ``known`` the number
    that had been recorded before, and ``refused`` has a message for each poll that was refused. ``answers``
    has the answer to each poll, in the order of the report."""

    taken: int
    refused: tuple[str, ...]
    known: int = 0
    answers: tuple[ReportAnswer, ...] = ()


def record_external(
    store: Store,
    settings: Settings,
    external: ExternalScheduler,
    reported: Iterable[Reported],
    now_s: float,
    *,
    skip_invalid: bool = False,
) -> ExternalPollsResult:
    """Record polls that other programs made, and set when their items are due. If one poll is invalid, raise
    ``InputError`` (or ``AmbiguousKeyError``) and record none; with ``skip_invalid``, record the others."""
    with external.lock:
        return _Report(store, settings, external, now_s).record(list(reported), skip_invalid=skip_invalid)


class _Report:
    """One report: its polls, and the answers to them by their places in the report."""

    def __init__(self, store: Store, settings: Settings, external: ExternalScheduler, now_s: float) -> None:
        self._store, self._settings, self._external, self._now_s = store, settings, external, now_s
        self._answers: dict[int, ReportAnswer] = {}
        self._taken = self._known = 0

    def record(self, reported: list[Reported], *, skip_invalid: bool) -> ExternalPollsResult:
        known = _ids_by_source(self._store, reported)
        valid = []
        for place, row in enumerate(reported):
            try:
                valid.append(_Place(place, row, _check(row, known.get(row.item, {}), self._now_s)))
            except (InputError, AmbiguousKeyError) as error:
                if not skip_invalid:
                    raise
                problem = error.problem if isinstance(error, InputError) else str(error)
                self._answers[place] = ReportAnswer(row.item, row.lease, "invalid", problem)
        valid.sort(key=lambda each: (each.row.item, each.item_id, each.row.time_s))
        self._record(valid)
        answers = tuple(self._answers[place] for place in range(len(reported)))
        refused = tuple(answer.problem for answer in answers if answer.problem)
        return ExternalPollsResult(self._taken, refused, self._known, answers)

    def _record(self, polls: list[_Place]) -> None:
        without = sorted({each.item_id for each in polls if each.row.lease is None})
        seen = _known_polls(self._store, without)
        new = []
        for each in polls:
            if each.row.lease is None and each.mark in seen:
                self._answer(each, "known")
            else:
                new.append(each)
            if each.row.lease is None:
                seen.add(each.mark)
        past, live = _split(self._store, new)
        for batch in _batches(live):
            past += self._record_batch(batch)
        _import_log(self._store, self._settings, self._external, past, self._now_s)
        for each in past:
            self._answer(each, "recorded", changed=each.row.changed)

    def _answer(self, each: _Place, result: ReportResult, problem: str = "", **more: Any) -> None:
        self._answers[each.place] = ReportAnswer(each.row.item, each.row.lease, result, problem, **more)
        self._taken += result == "recorded"
        self._known += result == "known"

    def _record_batch(self, batch: list[_Place]) -> list[_Place]:
        """Record polls of distinct items. Return those that belong to the past: another program polls the
        item now, but what was seen of its rate counts."""
        batch = self._answer_repeated(batch)
        leases = _take_leases(self._store, batch, self._now_s, self._settings.run.lease)
        past, polls = [], []
        for each in batch:
            row, lease = each.row, leases.get(each.item_id)
            if lease is not None:
                polls.append((each, lease))
            elif row.lease is not None:
                self._answer_conflict(each)
            elif is_fetch(row):
                self._answer(each, "refused", f"{row.item}: another engine is polling it")
            else:
                past.append(each)
        if polls:
            self._commit(polls)
        return past

    def _answer_repeated(self, batch: list[_Place]) -> list[_Place]:
        """Answer the polls that were reported before with the same lease as then; return the others."""
        leases = {(each.item_id, each.row.lease): each for each in batch if each.row.lease is not None}
        found = self._store.leases.answers(list(leases), self._now_s - ANSWERS_KEPT_S) if leases else {}
        for pair, text in found.items():
            row = leases[pair].row
            self._answers[leases[pair].place] = ReportAnswer.from_text(row.item, row.lease, text)
            self._known += 1
        return [each for each in batch if each.place not in self._answers]

    def _answer_conflict(self, each: _Place) -> None:
        row = each.row
        if each.mark in _known_polls(self._store, [each.item_id]):
            self._answer(each, "known")  # the lease ended with the same report, more than a day ago
            return
        reason = "was never issued, has ended, or expired and went to another worker"
        self._answer(each, "conflict", f"{row.item}: lease {row.lease} is not valid: it {reason}")

    def _commit(self, polls: list[tuple[_Place, Lease]]) -> None:
        """Learn from polls of distinct items, commit them, and answer them."""
        settings, now_s, external = self._settings, self._now_s, self._external
        with ParserPool().joined() as parsers:
            fetched = [
                to_fetched(each.row, lease, settings, parsers) if is_fetch(each.row) else None
                for each, lease in polls
            ]
        covered_s = budget_limits(settings.budget).covered_s
        # The request of a lease was reserved when it was given. Slots of the past are over.
        unpaid = [
            each for each, _ in polls if each.row.lease is None and each.row.time_s >= now_s - covered_s
        ]
        external.reserve(settings, len(unpaid), now_s)
        room = StoreRoom(self._store)
        new_bytes = sum(len(found.content) for found in fetched if found is not None and found.content)
        room.measure(new_bytes, settings.store.max_size, now_s)

        def build(recorder: PollRecorder) -> list[Outcome]:
            outcomes = [
                _outcome(settings, recorder, each.row, lease, found)
                for (each, lease), found in zip(polls, fetched, strict=True)
            ]
            return room.admit(outcomes, settings.store.max_size, recorder)

        def finish(outcomes: list[Outcome]) -> list[Outcome]:
            outcomes = measure_changes(self._store, ParserPool(), settings, outcomes)
            return [self._finish(each, outcome) for (each, _), outcome in zip(polls, outcomes, strict=True)]

        item_ids = [lease.item_id for _, lease in polls]
        refusals = {r.item_id: r for r in external.commit(settings, item_ids, build, finish, now_s)}
        for each, lease in polls:
            refusal = refusals.get(lease.item_id)
            if refusal is not None and refusal.reason == "lost" and each.row.lease is not None:
                self._taken -= 1
                self._answer_conflict(each)
            elif refusal is not None:
                self._taken -= 1
                self._answer(each, "refused", f"{each.row.item}: {refusal}")
        ends = [(lease.source, request_end(each.row, lease)) for each, lease in polls]
        external.record_ends(settings, ends, now_s)
        costs = [compute_spent(settings.budget, 0, each.row.bytes, each.row.seconds) for each, _ in polls]
        external.owe(settings, costs, now_s)

    def _finish(self, each: _Place, outcome: Outcome) -> Outcome:
        """Answer a poll, and return its outcome with the answer if it must be kept."""
        seen = outcome.observation
        next_s = outcome.due_s if math.isfinite(outcome.due_s) else None
        changed = None if seen is None else seen.changed
        if outcome.problem == full_words(self._settings.store.max_size):
            problem = f"{each.row.item}: {outcome.problem}"
            self._answer(each, "refused", problem, status=outcome.status, next_poll_s=next_s)
        else:
            self._answer(each, "recorded", changed=changed, status=outcome.status, next_poll_s=next_s)
        if each.row.lease is None:
            return outcome
        return replace(outcome, answer=Answer(self._now_s, self._answers[each.place].to_text()))


@dataclass(frozen=True, slots=True)
class _Place:
    """A reported poll, its place in the report, and its item."""

    place: int
    row: Reported
    item_id: int

    @property
    def mark(self) -> tuple[int, int]:
        """A tuple that identifies the poll: item id and time in microseconds, the precision of stores."""
        return self.item_id, round(self.row.time_s * 1e6)


def _outcome(
    settings: Settings, recorder: PollRecorder, row: Reported, lease: Lease, fetched: Fetched | None
) -> Outcome:
    """Decide what a reported poll means, as in a run. Without ``fetched``, the program keeps the copies
    itself, and reports only whether the item changed."""
    if fetched is not None:
        outcome = recorder.decide(lease, fetched, row.time_s, audit=False)
        seen = outcome.observation
        return outcome if seen is None else replace(outcome, observation=replace(seen, count=row.count))
    elapsed_s = 0.0 if lease.polled_s is None else max(row.time_s - lease.polled_s, 0.0)
    found = Observation(
        lease.item_id, row.time_s, elapsed_s, bool(row.changed), modified_s=row.modified_s, count=row.count
    )
    spent = compute_spent(settings.budget, 1, row.bytes, row.seconds)
    spent = with_update_cost(spent, settings, lease.source) if row.changed else spent
    validators = {**lease.validators, **validators_of(row.validators)} if row.validators else None
    return Outcome(lease, row.time_s, due_s=-math.inf, observation=found, spent=spent, validators=validators)


def _ids_by_source(store: Store, reported: list[Reported]) -> dict[str, dict[str, int]]:
    """Return the ids of the items that were reported, by key and source."""
    ids: dict[str, dict[str, int]] = {}
    for item in store.items.find(list({row.item for row in reported})):
        ids.setdefault(item.key, {})[item.source] = item.id
    return ids


def _check(row: Reported, ids: Mapping[str, int], now_s: float) -> int:
    """Return the id of the item of a reported poll. Raise ``AmbiguousKeyError`` if the item may be one of
    several, and ``InputError`` if the report is wrong. ``ids`` are the items with its key, by source."""
    if row.source is None and len(ids) > 1:
        raise AmbiguousKeyError(display_key(row.item), ids, f"row {row.row}" if row.row else "")
    item_id = next(iter(ids.values()), None) if row.source is None else ids.get(row.source)
    problem = _problem(row, now_s)
    if item_id is None:
        of_source = "" if row.source is None else f" of the source {row.source!r}"
        problem = f"there is no item {display_key(row.item)}{of_source}: add it first"
    if item_id is None or problem:
        raise InputError(problem, row=row.row or None, line=0)
    return item_id


def _problem(row: Reported, now_s: float) -> str:
    """Return what is wrong with the fields of a reported poll, or an empty string if they are valid."""
    if row.changed is None and not is_fetch(row):
        return "has neither changed nor content"
    if row.count is not None and not 0 <= row.count <= MOST_CHANGES:
        return f"{row.item}: count is {row.count}: give a whole number of changes from 0 to {MOST_CHANGES:g}"
    if row.count is not None and row.changed is not None and row.changed != (row.count > 0):
        return f"{row.item}: count is {row.count}, but changed is {str(row.changed).lower()}"
    if not 0 <= row.time_s <= now_s + _AHEAD_S:
        when = "in the future" if row.time_s > 0 else "before 1970"
        return f"{row.item}: time is {row.time_s:.17g}, {when}: give Unix seconds or ISO 8601"
    if row.bytes < 0 or not 0 <= row.seconds < math.inf:
        return f"{row.item}: bytes and seconds must be 0 or more"
    return ""


def _known_polls(store: Store, ids: list[int]) -> set[tuple[int, int]]:
    """Return the marks (see ``_Place.mark``) of the stored polls of the items ``ids``."""
    return {
        mark
        for batch in store.observations.read(ids)
        for mark in zip(batch.item_id.tolist(), np.rint(batch.time_s * 1e6).astype(int).tolist(), strict=True)
    }


def _add_observations(store: Store, polls: list[_Place]) -> None:
    polls = sorted(polls, key=lambda each: (each.item_id, each.row.time_s))
    order = [each.row for each in polls]
    item_id = np.array([each.item_id for each in polls], dtype=np.int64)
    time_s = np.array([row.time_s for row in order])
    first = np.r_[True, item_id[1:] != item_id[:-1]]
    last = {item.id: item.polled_s for item in store.items.by_id(sorted(set(item_id.tolist())))}
    before = np.array([np.nan if (at := last[int(i)]) is None else at for i in item_id])
    previous = np.where(first, before, np.r_[0.0, time_s[:-1]])
    # The time before the last known poll is already observed: an earlier poll has an elapsed time of 0.
    elapsed = np.where(np.isnan(previous), 0.0, np.maximum(time_s - previous, 0.0))
    modified_s = np.array([np.nan if row.modified_s is None else row.modified_s for row in order])
    counts = np.array([np.nan if row.count is None else row.count for row in order])
    changed = np.array([bool(row.changed) for row in order])
    store.observations.add(
        ObservationColumns(
            item_id, time_s, elapsed, changed, modified_s, counts, np.zeros(time_s.size, dtype=bool)
        )
    )


def relearn(store: Store, settings: Settings, ids: list[int], now_s: float) -> None:
    """Compute the beliefs of the items ``ids`` again, from their stored observations alone."""
    for begin in range(0, len(ids), _BATCH):
        part = ids[begin : begin + _BATCH]
        item_rows = load_items([store.plan.columns_of(part)])
        item_rows.pending_beliefs = []
        batches = [batch.still_counting() for batch in store.observations.read(part)]
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
        began_s = np.minimum(seen.time_s[part] - np.maximum(seen.elapsed_s[part], 0.0), now_s)
        ranking.adaptive.mark_copied(rows[part], began_s)
        compared = part[seen.elapsed_s[part] > 0]
        times_s = np.minimum(seen.time_s[compared], now_s)
        stated = StatedChanges(seen.time_s[compared] - seen.modified_s[compared], seen.count[compared])
        ranking.adaptive.observe(rows[compared], times_s, seen.changed[compared], stated)


def _split(store: Store, new: list[_Place]) -> tuple[list[_Place], list[_Place]]:
    """Return a tuple (past, live). Live polls are learned one by one, like those of a run: polls that say
    what was fetched, polls with a lease, and single polls that are later than the last known poll of their
    item. All others are logs of the past: the beliefs of their items are learned again from all
    observations."""
    counts = Counter(each.item_id for each in new)
    alone = [item_id for item_id, count in counts.items() if count == 1]
    polled_s = {item.id: item.polled_s for item in store.items.by_id(alone)}

    def is_live(each: _Place) -> bool:
        if is_fetch(each.row) or each.row.lease is not None:
            return True
        last_s = polled_s.get(each.item_id, math.inf)
        return counts[each.item_id] == 1 and (last_s is None or each.row.time_s > last_s)

    live = [is_live(each) for each in new]
    return list(compress(new, [not one for one in live])), list(compress(new, live))


def _batches(live: list[_Place]) -> Iterator[list[_Place]]:
    """Yield batches of polls of distinct items; the polls of each item keep their order."""
    waiting = live
    while waiting:
        batch: dict[int, _Place] = {}
        later = []
        for each in waiting:
            if each.item_id in batch or len(batch) == _BATCH:
                later.append(each)
            else:
                batch[each.item_id] = each
        yield list(batch.values())
        waiting = later


def _import_log(
    store: Store, settings: Settings, external: ExternalScheduler, past: list[_Place], now_s: float
) -> None:
    """Add polls of the past, learn the beliefs of their items again, and set when these are due."""
    if not past:
        return
    changed = sorted({each.item_id for each in past})
    _add_observations(store, past)
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


def _take_leases(store: Store, batch: list[_Place], now_s: float, lease_s: float) -> dict[int, Lease]:
    """Return the leases of the items of ``batch``, by item id: the one whose token the report contains, if it
    is the newest one of the item, or a new one if the report contains none and no worker has leased it."""
    without = [each.item_id for each in batch if each.row.lease is None]
    given = {each.item_id: each.row.lease for each in batch if each.row.lease is not None}
    taken = store.leases.take(without, now_s, lease_s, any_status=True) if without else []
    held = store.leases.read(list(given)) if given else []
    return {
        lease.item_id: lease
        for lease in (*taken, *held)
        if given.get(lease.item_id, lease.token) == lease.token
    }
