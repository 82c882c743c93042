"""The status of a project: freshness as estimated and as audited, age, budget, groups, problems."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from afresh.engine.ratelimit.fleet_member import WorkerStatus, list_workers
from afresh.engine.ratelimit.request_slots import Limits, budget_limits
from afresh.engine.reporting.delivery_status import HookFailure, NotifyFailure, hook_failures, notify_failures
from afresh.engine.reporting.found_summary import FoundPagesStatus, found_pages_statuses
from afresh.engine.reporting.group_status import GroupStatus, group_statuses
from afresh.engine.reporting.item_view_status import ItemViewStatus, item_view_statuses
from afresh.engine.reporting.lag_status import LagStatus, lag_status
from afresh.engine.reporting.noise_hints import NoiseHint, find_noise_hints
from afresh.engine.reporting.pulse import Pulse, read_pulse
from afresh.engine.reporting.savings import FactorEstimate, uniform_needs
from afresh.engine.reporting.watched_items import WatchedItem, watched_items
from afresh.engine.scheduler.audits import ShareEstimate, audited_freshness
from afresh.engine.scheduler.earnings import MoneyInput, SpendingPlan, plan_spending
from afresh.engine.scheduler.restore import follow_cursors, read_poll_costs, read_sample, restore_scheduler
from afresh.engine.scheduler.row_policy import Tier
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.store_room import KEPT_FOR_CHANGES
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import SOURCE_STATE, TROUBLE
from afresh.sources.http.follow.link_follower import is_no_item
from afresh.sources.search.saved_records import ScaleNote, read_state
from afresh.stores.store import Store
from afresh.values.items import ItemQuery
from afresh.values.outcome import Spent
from afresh.values.stored import Ids

_HOUR_S = 3600.0
_GROUPS_SHOWN = 10
_COPIES_READ = 1000
_PROBLEMS_SHOWN, _FAILING_READ = 5, 1000


@dataclass(frozen=True, slots=True)
class ItemProblem:
    """A problem (``words``), the number of items that fail with it, and the key of one of them. Only the
    1,000 items that failed most often are counted."""

    words: str
    items: int
    example: str


@dataclass(frozen=True, slots=True)
class SourceTrouble:
    """A source whose listings or reports cannot be read, and the reason."""

    source: str
    problem: str


@dataclass(frozen=True, slots=True)
class SearchStatus:
    """The status of a search source. Of its ``records``, ``seen`` were received so far, ``by_queries`` of
    them as results of a query. ``queries`` is the number of different queries, ``sent`` how often they were
    sent in all, ``look_ups`` the number of requests by key. ``scales`` has for each attribute how many times
    more results the server has than the relation, or the sample used instead of it."""

    source: str
    records: int
    seen: int
    by_queries: int
    queries: int
    sent: int
    look_ups: int
    scales: tuple[ScaleNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything that ``afresh status`` shows. Shares are from 0 to 1, times in seconds. The API sends these
    fields too, except those that ``web/schemas.py`` names.

    ``freshness`` is the estimate of Σw·fresh/Σw now, with weights w and its 95 % confidence interval;
    ``audited`` is what audits measured. ``uniform_needs`` is how many times more requests uniform polling
    would need to be as fresh as this plan. ``age_s`` is the weighted mean of the expected ages, NaN without
    copies. ``dropped`` is the number of items that are not polled at this budget. ``absorbed_per_s`` is how
    many requests per second all groups together allow. If there are very many items, only ``looked_at`` of
    them are read, and counts are scaled. ``views`` are the items whose staleness is observed (views of a
    database), ``target_lags`` says whether their targets fit the budget, ``item_views`` are those of the
    settings, each made from several items, ``found_pages`` what sources found by following links. ``money``
    is the spending plan, if copies earn money. ``troubles``
    are sources whose listings cannot be read. The budget is that of the running engine or, if none is
    running, of the settings; ``limits`` are its parts per second, infinite if not set. ``closed`` has the
    sources that may not be polled now, with the time of the next opening. ``used_bytes`` is the part of the
    store that is not free, and ``max_bytes`` the most it may be. ``content_lag_s`` is the expected content
    lag F(L;t) of Yang et al. (2010), 0 if nothing was missed. ``events`` is how many changes wait to be told
    to hooks, ``events_given_up`` how many were given up; ``hook_failures`` are some that failed, and
    ``notify_failures`` the addresses that could not be told. ``run`` is the last pulse. ``noise`` proposes
    settings for items that change in one small part.
    """

    items: int
    looked_at: int
    by_status: dict[str, int]
    copies: int
    failing: int
    due: int
    dropped: int
    freshness: ShareEstimate
    uniform_needs: FactorEstimate
    audited: ShareEstimate
    age_s: float
    content_lag_s: float
    budget_per_s: float
    absorbed_per_s: float
    spent_last_hour: Spent
    leases: int
    events: int
    events_given_up: int = 0
    hook_failures: tuple[HookFailure, ...] = ()
    notify_failures: tuple[NotifyFailure, ...] = ()
    notices: int
    file_bytes: int
    used_bytes: int
    max_bytes: int
    groups: tuple[GroupStatus, ...]
    target: float | None
    content_lag_target_s: float | None
    views: tuple[WatchedItem, ...]
    target_lags: LagStatus | None = None
    item_views: tuple[ItemViewStatus, ...] = ()
    found_pages: tuple[FoundPagesStatus, ...] = ()
    money: SpendingPlan | None
    troubles: tuple[SourceTrouble, ...]
    workers: tuple[WorkerStatus, ...]
    problems: tuple[ItemProblem, ...] = ()
    noise: tuple[NoiseHint, ...] = ()
    run: Pulse | None = None
    limits: Limits = field(default_factory=Limits)
    closed: dict[str, float] = field(default_factory=dict)
    searches: tuple[SearchStatus, ...] = ()
    time_s: float = math.nan

    @property
    def is_store_full(self) -> bool:
        """Whether the store has no room for copies of new items."""
        return self.used_bytes >= (1 - KEPT_FOR_CHANGES) * self.max_bytes

    @property
    def below_target(self) -> bool:
        """Whether the whole 95 % confidence interval of the audited freshness is below the target."""
        return self.target is not None and self.audited.n > 0 and self.audited.high < self.target

    @property
    def above_content_lag_target(self) -> bool:
        """Whether the content lag is more than its target."""
        return self.content_lag_target_s is not None and self.content_lag_s > self.content_lag_target_s


def read_status(store: Store, settings: Settings, now_s: float) -> Status:
    counts = store.items.counts()
    items = sum(count.items for count in counts)
    scheduler = restore_scheduler(store, settings, read_sample(store, items), now_s)
    follow_cursors(store, scheduler, now_s)
    item_rows, forecast, stats = scheduler.item_rows, scheduler.forecast, store.upkeep.stats()
    scale = items / max(item_rows.size, 1)
    by_status: Counter[str] = Counter()
    for count in counts:
        by_status[count.status] += count.items
    held = item_rows.is_active & ~np.isnan(item_rows.polled_s)
    groups = group_statuses(store, counts, settings, now_s)
    names = [table.settings.name for table in settings.sources]
    troubles = {name: store.state.get(TROUBLE + name) for name in names}
    return Status(
        items=items,
        looked_at=item_rows.size,
        by_status=dict(by_status),
        copies=round(scale * np.count_nonzero(held) * _copied_share(store, item_rows.ids[held])),
        failing=round(scale * np.count_nonzero(item_rows.is_active & (item_rows.not_before_s > now_s))),
        freshness=forecast.freshness(now_s),
        uniform_needs=uniform_needs(scheduler.policy, forecast),
        audited=audited_freshness(store.observations.audits(0.0), now_s, forecast.covered_share()),
        age_s=forecast.mean_age_s(now_s) if held.any() else math.nan,
        content_lag_s=forecast.content_lag_s(now_s) if held.any() else math.nan,
        due=round(scale * _count_due(scheduler, now_s)),
        dropped=round(scale * np.count_nonzero(forecast.dropped_rows())),
        budget_per_s=settings.budget.requests,
        limits=budget_limits(settings.budget),
        absorbed_per_s=sum(group.most_per_s for group in groups),
        spent_last_hour=store.ledger.total(now_s - _HOUR_S, math.inf),
        leases=stats.leases,
        events=stats.events,
        events_given_up=store.events.given_up(),
        hook_failures=hook_failures(store),
        notify_failures=notify_failures(store, settings),
        notices=stats.notices,
        file_bytes=stats.file_bytes,
        used_bytes=store.upkeep.used_bytes(),
        max_bytes=settings.store.max_size,
        groups=tuple(sorted(groups, key=lambda group: (not group.why, -group.items))[:_GROUPS_SHOWN]),
        target=settings.plan.target_for("freshness"),
        content_lag_target_s=settings.plan.target_for("lag"),
        views=watched_items(store, settings, scheduler, now_s),
        target_lags=lag_status(store, scheduler),
        found_pages=found_pages_statuses(store, settings),
        item_views=item_view_statuses(store, settings, now_s),
        money=plan_spending(
            scheduler.policy, MoneyInput(settings, scheduler.names, read_poll_costs(store)), scale
        ),
        troubles=tuple(SourceTrouble(name, words.decode()) for name, words in troubles.items() if words),
        workers=list_workers(store, now_s, settings.run.claim),
        problems=count_problems(store),
        noise=find_noise_hints(store),
        run=read_pulse(store),
        closed=settings.closed_sources(now_s),
        searches=search_statuses(store, settings),
        time_s=now_s,
    )


def _count_due(scheduler: Scheduler, now_s: float) -> int:
    """Return how many rows are due and may be polled now: fresh views and rows whose cursor has not moved are
    left alone, whatever their due time is."""
    is_due = scheduler.item_rows.is_active & (scheduler.item_rows.due_s <= now_s)
    if not is_due.any():
        return 0
    return int(np.count_nonzero(is_due & (scheduler.policy.priorities(now_s).tier > Tier.BARRED)))


def _copied_share(store: Store, polled: Ids) -> float:
    """Return the share of the ``polled`` items of which the store has a copy; of very many, some are read.
    An item that is known only from poll logs, or whose copy is kept elsewhere, has none in the store."""
    some = polled[:: -(-polled.size // _COPIES_READ)] if polled.size else polled
    found = store.items.by_id(some.tolist())
    return sum(item.version > 0 for item in found) / len(found) if found else 1.0


def search_statuses(store: Store, settings: Settings) -> tuple[SearchStatus, ...]:
    found = []
    for table in settings.sources:
        name = table.settings.name
        packed = store.state.get(SOURCE_STATE + name) if table.settings.kind == "search" else None
        if packed:
            notes = read_state(packed)
            records, queries = len(notes.records), len(notes.queries)
            sent = sum(query.asked for query in notes.queries)
            counts = (notes.listed, records, notes.found_by_queries, queries, sent, notes.look_ups)
            scales = tuple(scale for scale in notes.scales if scale.totals)
            found.append(SearchStatus(name, *counts, scales))
    return tuple(found)


def count_problems(store: Store) -> tuple[ItemProblem, ...]:
    """Return the most frequent problems among the items that failed most often."""
    page = store.items.page(ItemQuery(sort="failures", descending=True), _FAILING_READ)
    failing = [item for item in page.items if item.failures and item.status in ("active", "refused")]
    failing = [item for item in failing if not is_no_item(item)]
    examples = {item.problem: item.key for item in reversed(failing)}
    counts = Counter(item.problem for item in failing)
    return tuple(
        ItemProblem(words, items, examples[words]) for words, items in counts.most_common(_PROBLEMS_SHOWN)
    )
