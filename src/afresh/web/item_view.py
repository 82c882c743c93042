"""One item explained: is its copy still right, what is a poll worth as time goes by, what happened so far."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.item_snapshot import ItemSnapshot
from afresh.engine.reporting.why import PastPoll, Why, explain, last_polls
from afresh.stores.store import Store
from afresh.values.items import Item
from afresh.values.stored import Version
from afresh.web.believed import Belief, believed

_POINTS, _POLLS = 121, 300
_SPAN = 3.0
_FAR = 3.0  # times the threshold at which an item should have been polled long ago
_HEADINGS = {
    "left alone": "Why it is left alone",
    "dropped": "Why it is left alone",
    "futile": "Why it is left alone",
    "unweighted": "Why it is left alone",
    "new": "What is next",
} | dict.fromkeys(("paused", "gone", "refused"), "Why it is not polled")


@dataclass(frozen=True, slots=True)
class Curves:
    """Over ``time_s`` after the last poll: the chance that the copy is right, and the worth of a poll.

    ``now_s`` is where we are, ``due_s`` where the worth reaches ``threshold``; infinity where it never does.
    """

    time_s: list[float]
    fresh: list[float]
    worth: list[float]
    threshold: float
    now_s: float
    due_s: float


@dataclass(frozen=True, slots=True)
class ItemView:
    """Everything an item's page shows. ``polls`` are the last ones, oldest first.

    ``curves`` is None where there is nothing to guess: no copy, or one whose staleness is seen.
    """

    why: Why
    belief: Belief
    curves: Curves | None
    polls: tuple[PastPoll, ...]
    versions: list[Version]

    @property
    def heading(self) -> str:
        """What the reasons explain."""
        return _HEADINGS.get(self.belief.plan, "Why so often")

    @property
    def behind(self) -> bool:
        """Whether it waits far longer than planned: what is planned then will not come so soon."""
        why = self.why
        waits_s, worth = why.time_s - why.next_s, why.marginal
        return waits_s > why.interval_s and _FAR * why.threshold < worth < math.inf


def item_view(store: Store, snapshot: ItemSnapshot, item: Item) -> ItemView:
    """Everything about the one item of a snapshot; every part of it comes from there."""
    why = explain(store, snapshot, item)
    return ItemView(
        why=why,
        belief=believed(snapshot)[0],
        curves=curves(snapshot, why) if _is_guessed(why) else None,
        polls=last_polls(snapshot.polls_of(item), _POLLS),
        versions=store.copies.versions(item.id),
    )


def _is_guessed(why: Why) -> bool:
    watched = why.seen is not None and why.seen.state != "unknown"
    return why.item.polled_s is not None and not watched


def curves(snapshot: ItemSnapshot, why: Why) -> Curves:
    """The chance that the copy is right and the index, from the last poll until well after the next."""
    scheduler, now_s = snapshot.scheduler, snapshot.time_s
    (row,) = scheduler.item_rows.rows([why.item.id]).tolist()
    since_s = 0.0 if why.item.polled_s is None else max(now_s - why.item.polled_s, 0.0)
    due_s = why.interval_s if 0 < why.interval_s < math.inf else math.inf
    typical_s = due_s if math.isfinite(due_s) else 1.0 / max(why.rate_per_s, 1e-12)
    time_s = np.linspace(0.0, _SPAN * max(typical_s, since_s / 2, 1.0), _POINTS)
    return Curves(
        time_s.tolist(),
        *scheduler.forecast.course(row, time_s),
        why.threshold,
        since_s,
        due_s,
    )
