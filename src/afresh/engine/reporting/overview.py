"""What the dashboard shows: of the whole project, of a list of items, and of one item.

Each is read together, so that its parts agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from afresh.engine.reporting.group_status import read_backoffs
from afresh.engine.reporting.item_snapshot import (
    ItemEstimate,
    ItemSnapshot,
    PastPoll,
    estimate_items,
    last_polls,
    take_snapshot,
)
from afresh.engine.reporting.pulse import Course, Pulse, read_course, read_pulse, read_tallies
from afresh.engine.reporting.status import Status, read_status
from afresh.engine.reporting.why import Why, explain
from afresh.engine.scheduler.poll_costs import PollTallies
from afresh.engine.settings.tables import Settings
from afresh.sources.capabilities import GroupBackoff
from afresh.stores.store import Store
from afresh.values.items import Item, ItemPage, ItemQuery
from afresh.values.stored import LedgerRow, ObservationColumns, Version

FAILING_SHOWN = 8
_DAY_S, _HOUR_S = 86400.0, 3600.0
_MOST_FAILING = ItemQuery(status="active", sort="failures", descending=True)
_CURVE_POINTS, _POLLS_SHOWN = 121, 300
_CURVE_SPAN = 3.0  # times the usual polling interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of a project at ``time_s``. ``pulse`` is the last sign of life of its engine, ``course`` the
    last day of its pulses, ``audits`` the audits of that day and ``ledger`` what was spent in the last hour.
    ``failing`` are the items that failed most often in a row. ``backoffs`` are tuples (source, host in
    back-off), the longest back-off first. ``longest_due_s`` is the earliest due time of an item,
    ``run_command`` the command that starts what polls."""

    time_s: float
    status: Status
    pulse: Pulse | None
    course: Course
    audits: ObservationColumns
    ledger: tuple[LedgerRow, ...]
    failing: tuple[Item, ...]
    backoffs: tuple[tuple[str, GroupBackoff], ...]
    longest_due_s: float
    tallies: PollTallies = field(default_factory=PollTallies)
    run_command: str = "afresh run"


def read_overview(store: Store, running: Settings, now_s: float) -> Overview:
    """Read the overview of one store; ``running`` are the settings with the budget of the running engine."""
    due = store.items.by_id(store.items.due(now_s, 1))
    failing = store.items.page(_MOST_FAILING, FAILING_SHOWN).items
    return Overview(
        time_s=now_s,
        status=read_status(store, running, now_s),
        pulse=read_pulse(store),
        course=read_course(store),
        audits=store.observations.audits(now_s - _DAY_S),
        ledger=tuple(store.ledger.rows(now_s - _HOUR_S, now_s)),
        failing=tuple(item for item in failing if item.failures),
        backoffs=read_backoffs(store, running, now_s),
        longest_due_s=due[0].due_s if due else now_s,
        tallies=read_tallies(store),
    )


@dataclass(frozen=True, slots=True)
class ItemCurves:
    """The probability that the copy is right (``fresh``) and the value of a poll (``worth``), at ``time_s``
    seconds after the last poll. Items are polled at the ``threshold``. The present is at ``now_s``, the next
    poll at ``due_s``."""

    time_s: list[float]
    fresh: list[float]
    worth: list[float]
    threshold: float
    now_s: float
    due_s: float


@dataclass(frozen=True, slots=True)
class ItemDetail:
    """One item in detail. ``polls`` are the last polls, oldest first. ``curves`` is None if there is no copy,
    or if the source reports the item's staleness, which is then not estimated."""

    why: Why
    estimate: ItemEstimate
    curves: ItemCurves | None
    polls: tuple[PastPoll, ...]
    versions: list[Version]


@dataclass(frozen=True, slots=True)
class EstimatedPage:
    """A page of items, with the estimate for each of them at ``time_s``."""

    page: ItemPage
    estimates: list[ItemEstimate]
    time_s: float


def read_detail(store: Store, settings: Settings, item: Item, now_s: float) -> ItemDetail:
    """Read all data of one item at one moment; ``settings`` are those of the running engine."""
    snapshot = take_snapshot(store, settings, [item], now_s)
    why = explain(store, snapshot, item)
    is_observed = why.seen is not None and why.seen.state != "unknown"
    return ItemDetail(
        why=why,
        estimate=estimate_items(snapshot)[0],
        curves=None if item.polled_s is None or is_observed else _compute_curves(snapshot, why),
        polls=last_polls(snapshot.polls_of(item), _POLLS_SHOWN),
        versions=store.copies.versions(item.id),
    )


def read_page(
    store: Store, settings: Settings, query: ItemQuery, limit: int, cursor: str | None, now_s: float
) -> EstimatedPage:
    """Read a page of at most ``limit`` items, which begins after ``cursor``."""
    page = store.items.page(query, limit, cursor)
    if not page.items:
        return EstimatedPage(page, [], now_s)
    snapshot = take_snapshot(store, settings, page.items, now_s)
    return EstimatedPage(page, estimate_items(snapshot), snapshot.time_s)


def _compute_curves(snapshot: ItemSnapshot, why: Why) -> ItemCurves:
    """Compute the curves over the time since the last poll. They end well after the next poll."""
    polled_s = why.item.polled_s
    since_s = 0.0 if polled_s is None else max(snapshot.time_s - polled_s, 0.0)
    due_s = why.interval_s if 0 < why.interval_s < math.inf else math.inf
    typical_s = due_s if math.isfinite(due_s) else 1.0 / max(why.rate_per_s, 1e-12)
    elapsed_s = np.linspace(0.0, _CURVE_SPAN * max(typical_s, since_s / 2, 1.0), _CURVE_POINTS)
    (row,) = snapshot.scheduler.item_rows.rows([why.item.id]).tolist()
    fresh, poll_values = snapshot.scheduler.forecast.course(row, elapsed_s)
    return ItemCurves(
        time_s=elapsed_s.tolist(),
        fresh=fresh.tolist(),
        worth=poll_values.tolist(),
        threshold=why.threshold,
        now_s=since_s,
        due_s=due_s,
    )
