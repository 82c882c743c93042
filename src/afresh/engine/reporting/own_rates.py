"""The rate of single items by their own polls, as people are shown it: today's rate, with its interval.

This is what ``afresh estimate`` finds on the same polls: stamps and counts are evidence, and polls before a
sharp change of the rate (``rates.sharp_changes``) do not count. It differs in two ways. The prior is the one
that the engine has learned. Each item is judged by its own polls and by the jumps that a fixed sample of
items made together, so that it has the same rate on every page, whatever items are shown beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from afresh.engine.scheduler.ranking import GUESS_DOUBT, GUESS_SHAPE
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.policy.adaptive.rate_belief import REDRAWN, RateBelief, rate_interval
from afresh.rates.poll_table import MOST_CHANGES, PollTable, credible_since
from afresh.rates.sharp_changes import FEWEST_POLLS, JointJumps, find_joint_jumps, find_sharp_changes
from afresh.values.arrays import Float64s
from afresh.values.stored import ObservationColumns

_RATE_LEVEL = 0.9
_LATEST = 400  # sharp changes are looked for in so many of the latest polls of an item
_SAMPLED = 100  # items, and latest polls of each, in which joint jumps are looked for
_PER_OCTAVE = 2  # rates between which sharp changes are told apart


@dataclass(frozen=True, slots=True)
class OwnRate:
    """The rate of an item per second: its median, and the interval [low, high] in which it is with 90 %
    probability. ``jumped_s`` is the time of the first poll after the last sharp change of the rate, or NaN
    without one. ``period_s`` is the time T_λ for which the item has had this rate, as far as it was polled:
    from the last poll before the sharp change, or from the first poll of all, to the last poll."""

    median: float
    low: float
    high: float
    jumped_s: float = math.nan
    period_s: float = 0.0

    @property
    def ends(self) -> tuple[float, float, float]:
        """A tuple (median, low, high)."""
        return self.median, self.low, self.high


def sampled_ids(scheduler: Scheduler) -> list[int]:
    """Return the ids of the items whose joint jumps are looked for: a fixed sample of those with enough
    polls."""
    item_rows = scheduler.item_rows
    rows = np.flatnonzero(
        item_rows.is_active & (scheduler.policy.ranking.adaptive.belief.polls >= FEWEST_POLLS)
    )
    return [int(item_id) for item_id in item_rows.ids[rows[:: -(-rows.size // _SAMPLED) or 1]]]


def sampled_jumps(polls: Mapping[int, ObservationColumns], scheduler: Scheduler) -> JointJumps | None:
    """Return the jumps that the items of ``polls`` made together, by their latest polls."""
    tables = [poll_table(each.take(np.arange(len(each)) >= len(each) - _SAMPLED)) for each in polls.values()]
    number = [table.size for table in tables]
    if not sum(number):
        return None
    columns = [(table.elapsed, table.changed, table.since, table.count, table.end) for table in tables]
    elapsed, changed, since, count, end = (np.concatenate(one) for one in zip(*columns, strict=True))
    item = np.repeat(np.arange(len(tables)), number)
    table = PollTable(item, elapsed, changed, len(tables), since, count, end)
    return find_joint_jumps(table, _rates(scheduler))


def _rates(scheduler: Scheduler) -> Float64s:
    """Return the rates between which sharp changes are told apart."""
    rates = scheduler.policy.ranking.adaptive.belief.rates
    return np.geomspace(rates[0], rates[-1], _PER_OCTAVE * (rates.size - 1) + 1)


def own_rates(
    polls: Mapping[int, ObservationColumns],
    scheduler: Scheduler,
    ids: Sequence[int],
    now_s: float,
    joint: JointJumps | None = None,
) -> dict[int, OwnRate]:
    """Return the rates of the items ``ids`` by item id. ``polls`` are their polls, by item id; ``joint`` is
    what is known of jumps of all items together."""
    ranking, item_rows = scheduler.policy.ranking, scheduler.item_rows
    belief, rates = ranking.adaptive.belief, _rates(scheduler)
    found = {}
    for item_id in ids:
        row, its = item_rows.row(item_id), polls.get(item_id)
        guess = 0.0 if row is None else float(np.nan_to_num(item_rows.prior_rate_per_s[row]))
        table, jumped_s, period_s = _weighed_polls(its, belief, (rates, joint), now_s)
        ends = rate_interval(
            belief,
            table,
            level=_RATE_LEVEL,
            of_items=ranking.total_items,
            guess=guess,
            guess_shape=GUESS_SHAPE,
            guess_doubt=GUESS_DOUBT,
        )
        found[item_id] = OwnRate(*ends, jumped_s, period_s)
    return found


def _weighed_polls(
    seen: ObservationColumns | None,
    belief: RateBelief,
    known: tuple[Float64s, JointJumps | None],
    now_s: float,
) -> tuple[PollTable, float, float]:
    """Return a tuple: the polls of one item with the weights of today's rate, the time of the first poll
    after its last sharp change (NaN: none), and its period. ``known`` are grid of rates and joint jumps."""
    table = poll_table(seen)
    if seen is None or table.size == 0 or table.end is None:
        return table, math.nan, 0.0
    # Polls from before the engine ran may be much further apart; H must not be short against their intervals.
    horizon_s = max(belief.horizon, REDRAWN * float(table.elapsed.mean()))
    faded = replace(table, weight=np.exp(-np.maximum(now_s - table.end, 0.0) / horizon_s))
    first = max(table.size - _LATEST, 0)
    latest = table.of_polls(np.arange(table.size) >= first)
    sharp = find_sharp_changes(latest, *known)
    if sharp.weight is None:
        return faded, math.nan, float(table.elapsed.sum())
    assert faded.weight is not None
    # Older polls belong to the present period if the first of the latest polls does.
    same = np.r_[np.full(first, sharp.weight[0]), sharp.weight]
    if sharp.poll.size == 0:
        return replace(table, weight=same * faded.weight), math.nan, float(table.elapsed.sum())
    mark = first + int(sharp.poll[-1])
    return replace(table, weight=same), float(table.end[mark]), float(table.elapsed[mark:].sum())


def poll_table(seen: ObservationColumns | None) -> PollTable:
    """Return the polls of one item that were compared with an earlier copy, as a table of one item. Stamps
    and counts that are not credible are left out."""
    none = np.zeros(0)
    if seen is None:
        return PollTable(np.zeros(0, dtype=np.int64), none, none > 0, 1, end=none)
    seen = seen.take(seen.elapsed_s > 0)
    item = np.zeros(len(seen), dtype=np.int64)
    with np.errstate(invalid="ignore"):
        wrong = ((seen.count > 0) != seen.changed) | (seen.count > MOST_CHANGES)
    count = np.where(wrong, np.nan, seen.count)
    since = credible_since(item, seen.time_s, seen.elapsed_s, seen.changed, seen.modified_s, 1)
    return PollTable(item, seen.elapsed_s, seen.changed, 1, since, count, seen.time_s)
