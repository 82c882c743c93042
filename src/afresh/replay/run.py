"""One policy on one history: polls evenly in open time, each a bit, within exactly the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afresh.policy.opening import OpenTime
from afresh.policy.policy import Policy
from afresh.rates.observations import Bools, Float64s, Ints
from afresh.replay.history import History, advance

BATCHES_PER_ROUND = 100  # decisions while every item is polled once; more gain nothing that shows
MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Visits:
    """Poll j was of ``item[j]`` at ``time[j]`` and found a change or not; in order of time."""

    item: Ints
    time: Float64s
    changed: Bools


@dataclass(frozen=True, slots=True)
class Hints:
    """Notices of change: item and time, in order of time."""

    item: Ints
    time: Float64s


def run_policy(
    history: History,
    policy: Policy,
    budget: float,
    *,
    opening: OpenTime | None = None,
    hints: Hints | None = None,
    batch: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Visits:
    """Every poll that ``policy`` makes. ``budget`` is cost per time; with windows the same in less time.

    A poll is made when the cost of all polls up to it has been earned; nothing is spent in advance and
    nothing hoarded. ``progress`` is told the share that is done.

    >>> from afresh.policy.policy import Start
    >>> from afresh.policy.uniform import Uniform
    >>> history = History.of(2, [0], [1.5], 0.0, 4.0)
    >>> visits = run_policy(history, Uniform(Start.of(2, 1.0)), 1.0)
    >>> visits.item.tolist(), visits.time.tolist(), visits.changed.tolist()
    ([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [False, False, True, False])
    """
    window = OpenTime.always(history.start, history.end) if opening is None else opening
    pace = window.total / (budget * history.length)  # open time per unit of cost
    size = batch or int(np.clip(history.items // BATCHES_PER_ROUND, 1, MOST_AT_ONCE))
    place, heard = history.first[:-1].copy(), 0
    spent, out = 0.0, []
    while True:
        now = _moment(window, spent * pace)
        if now is None:
            break
        if hints is not None:
            upto = int(np.searchsorted(hints.time, now, side="right"))
            policy.notice(hints.item[heard:upto], hints.time[heard:upto])
            heard = upto
        items = policy.next(now, size)
        if items.size == 0:  # caps forbid any: the time of one poll passes
            spent += float(history.cost.min())
            continue
        costs = spent + np.cumsum(history.cost[items])
        when = _moments(window, costs * pace, history.end)
        in_time = np.isfinite(when)
        items, when = items[in_time], when[in_time]
        place[items], changed = advance(history, items, place[items], when)
        policy.observe(items, when, changed)
        out.append((items, when, changed))
        if not in_time.all():
            break
        spent = float(costs[-1])
        if progress is not None:
            progress(min(spent * pace / window.total, 1.0))
    return _joined(out)


def _moment(window: OpenTime, elapsed: float) -> float | None:
    """When so much open time has passed; None when all has."""
    now = float(window.moment(elapsed))
    return now if np.isfinite(now) else None


def _moments(window: OpenTime, elapsed: Float64s, end: float) -> Float64s:
    """The same for many; the very end of the last window still counts."""
    when = window.moment(elapsed)
    at_end = (elapsed >= window.total) & (elapsed <= window.total * (1 + 1e-12))
    return np.where(at_end, min(float(window.closes[-1]), end), when)


def _joined(parts: list[tuple[Ints, Float64s, Bools]]) -> Visits:
    if not parts:
        return Visits(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=bool))
    item, time, changed = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Visits(item, time, changed)
