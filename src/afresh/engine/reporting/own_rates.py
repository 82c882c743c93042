"""The rate of single items by their own polls, as people are shown it: today's rate, with its interval.

This is what ``afresh estimate`` finds on the same polls, by the same code (``rates.common_belief``): the
posterior mean, in which stamps and counts are evidence and polls before a sharp change of the rate do not
count. What items tell together (season, drift, jumps, the prior) is learned from a fixed sample of the items,
so that an item has the same rate on every page, whatever items are shown beside it. It is the sample from
which ``estimate`` learns priors, on which the rates of items with few polls depend: both find the same,
however many items there are. ``estimate`` learns season, drift and jumps from more items, if there are more.
Only a guess of the rate that a listing or an import gave with an item is unknown to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from afresh.engine.scheduler.ranking import GUESS_DOUBT, GUESS_SHAPE
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.scheduler.stored_beliefs import FORGOTTEN
from afresh.policy.adaptive.rate_belief import density_of_guess, rate_interval
from afresh.rates.common_belief import CommonBelief, PollTotals, learn_common
from afresh.rates.estimator import DEFAULT_METHOD, ESTIMATORS
from afresh.rates.estimators.grid_posterior import GridState
from afresh.rates.item_sample import POLLS_OF_ITEM, prior_items, sample_keys
from afresh.rates.poll_table import MOST_CHANGES, PollTable, credible_since
from afresh.rates.season import HOURS
from afresh.rates.sharp_changes import SharpChanges
from afresh.stores.store import Store
from afresh.values.arrays import Float64s
from afresh.values.stored import ObservationColumns

_READ_TOGETHER, _MOST_READ = 250, 8000  # items of the sample; those with a single poll teach nothing
_RATE_LEVEL = 0.9
_LATEST = 1000  # only so many of the latest polls of an item are used
_HOUR_S = 3600.0
_NONE, _NO = np.empty(0), np.empty(0, dtype=bool)
NO_POLLS = ObservationColumns(np.empty(0, dtype=np.int64), _NONE, _NONE, _NO, _NONE, _NONE, _NO)
_WEEK_S = HOURS * _HOUR_S


@dataclass(frozen=True, slots=True)
class OwnRate:
    """The ``rate`` of an item per second (posterior mean), and the interval [low, high] in which it is with
    90 % probability. ``jumped_s`` is the time of the first poll after the last sharp change of the rate, or
    NaN without one. ``period_s`` is the time T_λ for which the item has had this rate, as far as it was
    polled: from the last poll before the sharp change, or from the first poll of all, to the last poll."""

    rate: float
    low: float
    high: float
    jumped_s: float = math.nan
    period_s: float = 0.0

    @property
    def ends(self) -> tuple[float, float, float]:
        """A tuple (rate, low, high)."""
        return self.rate, self.low, self.high


@dataclass(frozen=True, slots=True)
class LearnedTogether:
    """What the items of the sample tell together. ``belief`` counts times in seconds since ``origin_s``."""

    belief: CommonBelief
    origin_s: float


def read_polls(store: Store, ids: Sequence[int]) -> dict[int, ObservationColumns]:
    """Return the successful polls of the items ``ids`` that still count, by item id. Items without such polls
    are left out, as are those of which all that was learned was forgotten."""
    known = store.plan.columns_of(ids)
    forgotten = set(known.id[known.belief_size == len(FORGOTTEN)].tolist())
    found: dict[int, ObservationColumns] = {}
    for batch in store.observations.read([item_id for item_id in ids if item_id not in forgotten]):
        seen = batch.still_counting()
        for item_id in np.unique(seen.item_id).tolist():
            found[item_id] = seen.take(seen.item_id == item_id)
    return found


def read_sampled_polls(store: Store) -> dict[int, ObservationColumns]:
    """Return the polls of the items from which ``estimate`` would learn priors, by item id, in the order of
    the sample."""
    keys, found = store.items.polled_keys(), dict[int, ObservationColumns]()
    ids = list(keys)
    order = sample_keys(list(keys.values()), _MOST_READ).tolist()
    for begin in range(0, len(order), _READ_TOGETHER):
        some = [ids[at] for at in order[begin : begin + _READ_TOGETHER]]
        polls = read_polls(store, some)
        found |= {item_id: _latest(polls[item_id], POLLS_OF_ITEM) for item_id in some if item_id in polls}
        counts = np.array([np.count_nonzero(each.elapsed_s > 0) for each in found.values()], dtype=np.int64)
        if (number := prior_items(counts)) < len(found):
            return dict(list(found.items())[:number])
    return found


def learn_together(polls: Mapping[int, ObservationColumns]) -> LearnedTogether | None:
    """Return what these items tell together, by their latest polls; None without intervals between polls."""
    sample = _table_of_many(list(polls.values()))
    if not sample.size:
        return None
    assert sample.end is not None
    # Times since 1970 would leave few digits for short intervals; whole weeks keep the hours of the week.
    origin_s = math.floor(float((sample.end - sample.elapsed).min()) / _WEEK_S) * _WEEK_S
    sample = replace(sample, end=sample.end - origin_s)
    belief = learn_common(
        sample,
        lambda season: PollTotals.of(season.apply_to(sample) if season.is_supported else sample),
        ESTIMATORS[DEFAULT_METHOD],
        hour=_HOUR_S,
    )
    return LearnedTogether(belief, origin_s)


def own_rates(
    polls: Mapping[int, ObservationColumns],
    scheduler: Scheduler,
    ids: Sequence[int],
    together: LearnedTogether | None,
) -> dict[int, OwnRate]:
    """Return the rates of the items ``ids`` by item id. ``polls`` are their polls, by item id; ``together``
    is what the items of the sample tell together."""
    tables = {
        item_id: poll_table(_latest(polls[item_id], _LATEST) if item_id in polls else None) for item_id in ids
    }
    polled = [item_id for item_id in ids if tables[item_id].size and together is not None]
    rest = set(ids).difference(polled)
    found = {item_id: _by_belief(tables[item_id], scheduler, item_id) for item_id in rest}
    if together is None or not polled:
        return found
    table = _join([tables[item_id] for item_id in polled])
    assert table.end is not None
    end, belief = table.end - together.origin_s, together.belief
    table = replace(table, end=end)
    if table.size:
        latest = float(belief.regime.season.operational([end.max()])[0])
        belief = replace(belief, latest=max(belief.latest, latest))
    guesses = [_guess(scheduler, item_id) for item_id in polled]
    rates, sharp = belief.estimate(table, _RATE_LEVEL, told=_told(belief, guesses))
    jumped_s, period_s = _periods(table, sharp, together.origin_s)
    columns = (rates.rate, rates.low, rates.high, jumped_s, period_s)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return found | {item_id: OwnRate(*row) for item_id, row in zip(polled, rows, strict=True)}


def _periods(table: PollTable, sharp: SharpChanges | None, origin_s: float) -> tuple[Float64s, Float64s]:
    """Return for each item the time of its last sharp change (NaN: none), and its period in seconds."""
    jumped_s = np.full(table.items, np.nan)
    if sharp is None:
        return jumped_s, table.time_per_item()
    assert table.end is not None
    jumped_s[sharp.item] = table.end[sharp.poll] + origin_s  # of several marks of an item the last one stays
    return jumped_s, sharp.periods(table)


def _guess(scheduler: Scheduler, item_id: int) -> float:
    """Return the rate per second that was guessed of an item when it was added; 0 without a guess."""
    row = scheduler.item_rows.row(item_id)
    return 0.0 if row is None else float(np.nan_to_num(scheduler.item_rows.prior_rate_per_s[row]))


def _told(belief: CommonBelief, guesses: Sequence[float]) -> Float64s | None:
    """Return what the guesses tell, as the log-likelihood of each item (row) at each rate of the grid. A
    guess counts as much as ``GUESS_SHAPE`` changes, and it is wrong with probability ``GUESS_DOUBT``."""
    if not any(guesses):
        return None
    assert isinstance(belief.prior, GridState)
    prior = np.exp(belief.prior.log_cautious[0] - belief.prior.log_cautious[0].max())
    prior /= prior.sum()
    told = np.zeros((len(guesses), belief.rates.size))
    for row, guess in enumerate(guesses):
        if guess > 0:
            near = density_of_guess(belief.rates, guess, GUESS_SHAPE)
            told[row] = np.log(GUESS_DOUBT + (1.0 - GUESS_DOUBT) * near / prior)
    return told


def _by_belief(table: PollTable, scheduler: Scheduler, item_id: int) -> OwnRate:
    """Return the rate of an item by the belief of the policy: as long as it, or the sample, has no polls to
    learn from, there is nothing that ``estimate`` would know better."""
    ranking = scheduler.policy.ranking
    ends = rate_interval(
        ranking.adaptive.belief,
        table,
        level=_RATE_LEVEL,
        of_items=ranking.total_items,
        guess=_guess(scheduler, item_id),
        guess_shape=GUESS_SHAPE,
        guess_doubt=GUESS_DOUBT,
    )
    return OwnRate(*ends, period_s=float(table.elapsed.sum()))


def _latest(seen: ObservationColumns, number: int) -> ObservationColumns:
    return seen.take(np.arange(len(seen)) >= len(seen) - number)


def _join(tables: Sequence[PollTable]) -> PollTable:
    """Return the polls of tables of one item each as one table, with the items in this order."""
    none = np.zeros(0)
    columns: list[tuple[Any, ...]] = [
        (table.elapsed, table.changed, table.since, table.count, table.end) for table in tables if table.size
    ]
    item = np.repeat(np.arange(len(tables)), [table.size for table in tables])
    if not columns:
        return PollTable(item, none, none > 0, len(tables), end=none)
    elapsed, changed, since, count, end = (np.concatenate(one) for one in zip(*columns, strict=True))
    return PollTable(item, elapsed, changed, len(tables), since, count, end)


def poll_table(seen: ObservationColumns | None) -> PollTable:
    """Return the polls of one item that were compared with an earlier copy, as a table of one item. Stamps
    and counts that are not credible are left out."""
    return _table_of_many([NO_POLLS if seen is None else seen])


def _table_of_many(polls: Sequence[ObservationColumns]) -> PollTable:
    """Return the same for several items, whose numbers are their positions in ``polls``."""
    given = polls or [NO_POLLS]
    elapsed_s = np.concatenate([each.elapsed_s for each in given])
    which, item = elapsed_s > 0, np.repeat(np.arange(len(given)), [len(each) for each in given])
    time_s = np.concatenate([each.time_s for each in given])[which]
    changed = np.concatenate([each.changed for each in given])[which]
    modified_s = np.concatenate([each.modified_s for each in given])[which]
    count = np.concatenate([each.count for each in given])[which]
    item, elapsed_s = item[which], elapsed_s[which]
    with np.errstate(invalid="ignore"):
        wrong = ((count > 0) != changed) | (count > MOST_CHANGES)
    count = np.where(wrong, np.nan, count)
    since = credible_since(item, time_s, elapsed_s, changed, modified_s, len(polls))
    return PollTable(item, elapsed_s, changed, len(polls), since, count, time_s)
