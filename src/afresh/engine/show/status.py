"""How the mirror does: freshness by the model and by audits, side by side, age, budget, hosts, problems."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from afresh.engine.mind.audits import Share, audited
from afresh.engine.mind.earnings import Chosen, chosen
from afresh.engine.mind.freshness_doubt import freshness_between
from afresh.engine.mind.row_policy import RowPolicy
from afresh.engine.mind.snapshot import loaded, recalled, sampled, uses_of
from afresh.engine.pace.budget import Limits, limits_of
from afresh.engine.pace.closed import closed_until
from afresh.engine.pace.fleet import WorkerStatus, workers_seen
from afresh.engine.settings.tables import Settings
from afresh.engine.show.group_status import GroupStatus, group_statuses
from afresh.engine.show.problems import Problem, problems
from afresh.engine.show.pulse import Pulse, read_pulse
from afresh.engine.show.search_status import SearchStatus, search_statuses
from afresh.engine.show.seen_items import SeenItem, seen_items
from afresh.engine.state_names import TROUBLE
from afresh.stores.store import Store
from afresh.values.arrays import Bools
from afresh.values.outcome import Spent

_HOUR_S = 3600.0
_GROUPS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class SourceTrouble:
    """A source that cannot be listed or looked at, and why in words."""

    source: str
    problem: str


@dataclass(frozen=True, slots=True)
class Status:
    """Everything ``afresh status`` shows. Shares are 0 … 1, times in seconds.

    ``freshness`` is the model's estimate of Σw·fresh/Σw now, with its 95 % interval; ``audited`` what random
    polls found; ``age_s`` the expected weighted age of the copies; ``dropped`` items not worth a poll at this
    budget; ``absorbed_per_s`` the requests per second that all groups together can take. Of very many items
    only ``looked_at`` are looked at, and their numbers scaled up. ``views`` are the items whose staleness is
    seen; ``money`` what the engine chose to spend, where copies earn; ``troubles`` sources that cannot be
    listed or looked at, and why; ``workers`` the engines that run; ``problems`` what items fail of; ``run``
    the last sign of life of the engine. The budget is that of the engine that runs, else the settings'.
    ``limits`` are all parts of it per second, infinite where nothing is set; ``closed`` the sources that are
    outside their windows, and until when; ``searches`` what search sources have reached. ``age_s`` is NaN
    without copies.
    """

    items: int
    looked_at: int
    by_status: dict[str, int]
    copies: int
    failing: int
    freshness: Share
    audited: Share
    age_s: float
    due: int
    dropped: int
    budget_per_s: float
    absorbed_per_s: float
    spent_last_hour: Spent
    leases: int
    events: int
    notices: int
    file_bytes: int
    groups: tuple[GroupStatus, ...]
    target: float | None = None
    views: tuple[SeenItem, ...] = ()
    money: Chosen | None = None
    troubles: tuple[SourceTrouble, ...] = ()
    workers: tuple[WorkerStatus, ...] = ()
    problems: tuple[Problem, ...] = ()
    run: Pulse | None = None
    limits: Limits = field(default_factory=Limits)
    closed: dict[str, float] = field(default_factory=dict)
    searches: tuple[SearchStatus, ...] = ()
    time_s: float = math.nan

    @property
    def below_target(self) -> bool:
        """Whether audits say, beyond chance, that freshness is below the target set."""
        return self.target is not None and self.audited.n > 0 and self.audited.high < self.target


def status(store: Store, settings: Settings, now_s: float) -> Status:
    """The status of a store now; ``now_s`` in Unix seconds."""
    counts = store.items.counts()
    items = sum(count.items for count in counts)
    policy = recalled(store, settings, loaded(sampled(store, items)), now_s)
    memory, stats = policy.memory, store.upkeep.stats()
    scale = items / max(memory.size, 1)
    by_status: Counter[str] = Counter()
    for count in counts:
        by_status[count.status] += count.items
    held = memory.active & ~np.isnan(memory.polled_s)
    groups = group_statuses(store, counts, settings, now_s)
    return Status(
        items=items,
        looked_at=memory.size,
        by_status=dict(by_status),
        copies=round(scale * np.count_nonzero(held)),
        failing=round(scale * np.count_nonzero(memory.active & (memory.hold_s > now_s))),
        freshness=modelled(policy, now_s),
        audited=audited(store.observations.audits(0.0), now_s, policy.covered()),
        age_s=mean_age_s(policy, now_s) if held.any() else math.nan,
        due=round(scale * np.count_nonzero(memory.active & (memory.due_s <= now_s))),
        dropped=round(scale * np.count_nonzero(dropped(policy))),
        budget_per_s=settings.budget.requests,
        limits=limits_of(settings.budget),
        absorbed_per_s=sum(group.most_per_s for group in groups),
        spent_last_hour=store.ledger.total(now_s - _HOUR_S, math.inf),
        leases=stats.leases,
        events=stats.events,
        notices=stats.notices,
        file_bytes=stats.file_bytes,
        groups=tuple(sorted(groups, key=lambda group: (not group.why, -group.items))[:_GROUPS_SHOWN]),
        target=settings.plan.target,
        views=seen_items(store, policy, now_s),
        money=chosen(policy, settings, store.plan.names(), uses_of(store), scale),
        troubles=_troubles(store, settings),
        workers=workers_seen(store, now_s, settings.run.claim),
        problems=problems(store),
        run=read_pulse(store),
        closed=closed_until(settings, now_s),
        searches=search_statuses(store, settings),
        time_s=now_s,
    )


def _troubles(store: Store, settings: Settings) -> tuple[SourceTrouble, ...]:
    names = [table.settings.name for table in settings.sources]
    kept = [(name, store.state.get(TROUBLE + name)) for name in names]
    return tuple(SourceTrouble(name, words.decode()) for name, words in kept if words)


def modelled(policy: RowPolicy, now_s: float) -> Share:
    """The model's freshness with its 95 % interval, wide while little is known of the rates."""
    value, error = policy.freshness(now_s)
    low, high = freshness_between(policy, value, error, now_s)
    return Share(value, low, high, int(policy.memory.active.sum()))


def mean_age_s(policy: RowPolicy, now_s: float) -> float:
    """Weighted mean over the copies of their expected ages; 0 where there are none."""
    memory, rows = policy.memory, policy.sample()
    rows = rows[memory.active[rows] & ~np.isnan(memory.polled_s[rows])]
    weight = memory.weight[rows]
    if weight.sum() <= 0:
        return 0.0
    return float(weight @ policy.ranking.ages(now_s, rows) / weight.sum())


def dropped(policy: RowPolicy) -> Bools:
    """Active items with a copy that would never be worth another poll at this budget; futile ones aside."""
    memory = policy.memory
    found = memory.active & ~np.isnan(memory.polled_s) & (memory.weight > 0) & ~policy.watched()
    rows = np.flatnonzero(found)
    found[rows] = np.isinf(policy.intervals_s(rows)) & ~policy.never_pays(rows)
    return found
