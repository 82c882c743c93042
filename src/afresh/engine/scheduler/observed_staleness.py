"""What sources observe of items without polls: staleness, rate of changes, and seconds that a refresh needs.

A source that watches what its items are made from (``sources.capabilities``) reports staleness, so that it
need not be estimated. The poll of a fresh item gains nothing. What the refresh of a stale item gains depends
on the objective of its source:

    age         w·(T/λ + T²/2) for an item of weight w and λ changes per second that is stale since T seconds.
                T is an expectation: the first change came between the last moment at which the copy is known
                to have been complete and the reading that found it stale (``watched.first_change``).
                With a price μ per second of refreshing, the mean age is least if every item of cost c is
                refreshed as soon as this reaches c·μ. It grows without limit, so that no item is left out.
    others      w/λ of fresh time, minus what other items lose while the refresh uses up the budget
                (``allocation.watched.refresh_gains``). If that is negative, the item is given up.

A refresh of an item first refreshes the stale items that it is made from. So its gain and its cost are the
sums over this chain. Items of unknown staleness are ranked like any other item.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from afresh.allocation.lag_targets import LagJobs
from afresh.allocation.watched import first_change, refresh_gains
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.settings.refresh_goals import RefreshGoal, refresh_goal
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport
from afresh.stores.store import Store
from afresh.values.arrays import Bools, Float64s, Ints

_MOST = 1e290  # keeps gains finite
_JUST_NOW_S = 1e-3  # an item that was found stale a moment ago is worth a refresh too
_NO_GOAL = RefreshGoal()


@dataclass(frozen=True, slots=True)
class RefreshTerms:
    """Weight and cost of each observed row as the ranking has them, ``paid_off_s``, the seconds for which its
    refresh delays other polls, and ``age_unit_s``: an age of so many seconds counts as much as one stale
    copy, where items with the objective ``age`` and others share a budget."""

    weight: Float64s
    cost: Float64s
    paid_off_s: Float64s
    age_unit_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ObservedStaleness:
    """Columns with an entry for each observed row. A rate or cost is NaN if it is not known yet.
    ``stale_since_s`` is +∞ for fresh items. ``known`` is False if the staleness cannot be observed.
    ``WatchedItem`` explains ``dispersion``. ``below`` has tuples (lower, upper) of positions in the columns:
    the upper item is made from the lower one. Tuples whose upper item is made from fewer items are first.
    ``complete_s`` is the last time at which the copy of a stale item is known to have lacked nothing that
    could be seen, ``incomplete_s`` the earliest time at which it may have begun to lack a change.
    ``by_age`` says whether the objective is the age; ``target_s`` and ``delay_s`` are those of
    ``RefreshGoal``."""

    rows: Ints
    known: Bools
    stale_since_s: Float64s
    rate_per_s: Float64s
    low_per_s: Float64s
    high_per_s: Float64s
    cost_s: Float64s
    dispersion: Float64s
    complete_s: Float64s
    incomplete_s: Float64s
    by_age: Bools
    target_s: Float64s
    delay_s: Float64s
    below: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls,
        seen: Mapping[int, StalenessReport],
        below: Mapping[int, Sequence[int]] | None = None,
        goals: Mapping[int, RefreshGoal] | None = None,
    ) -> ObservedStaleness:
        """Convert ``seen``, the reports by row, to columns. ``below`` has the rows of the items from which an
        item is made, by the row of that item. ``goals`` has what the settings demand, by row.

        >>> report = StalenessReport(5.0, changed=True, stale_since_s=7.0, rate_per_s=0.5)
        >>> staleness = ObservedStaleness.of({3: report})
        >>> staleness.stale.tolist(), staleness.fresh.tolist(), staleness.cost_s.tolist()
        ([True], [False], [nan])
        """
        rows = sorted(seen)
        reports = [seen[row] for row in rows]
        wanted = [(goals or {}).get(row, _NO_GOAL) for row in rows]
        since = [math.inf if one.stale_since_s is None else one.stale_since_s for one in reports]
        pairs = list(zip(reports, wanted, strict=True))
        return cls(
            rows=np.array(rows, dtype=np.int64),
            known=np.array([one.known for one in reports], dtype=bool),
            stale_since_s=np.array(since, dtype=np.float64),
            rate_per_s=_column([one.rate_per_s for one in reports]),
            low_per_s=_column([one.low_per_s for one in reports]),
            high_per_s=_column([one.high_per_s for one in reports]),
            cost_s=_column([one.cost_s for one in reports]),
            dispersion=_column([one.dispersion for one in reports]),
            complete_s=np.array([_complete_s(one) for one in reports], dtype=np.float64),
            incomplete_s=np.array([_incomplete_s(*pair) for pair in pairs], dtype=np.float64),
            by_age=np.array([goal.objective == "age" for goal in wanted], dtype=bool),
            target_s=np.array([goal.target_lag_s for goal in wanted], dtype=np.float64),
            delay_s=np.array([goal.delay_s for goal in wanted], dtype=np.float64),
            below=_dependency_pairs(rows, below or {}),
        )

    @property
    def stale(self) -> Bools:
        """For each observed row, whether it is known to be stale."""
        return self.known & np.isfinite(self.stale_since_s)

    @property
    def fresh(self) -> Bools:
        """For each observed row, whether it is known to be fresh."""
        return self.known & ~np.isfinite(self.stale_since_s)

    def rates(self) -> Float64s:
        """Return the rates per second to compute with. If no change was ever observed, it is the high end of
        the rate's confidence interval."""
        return np.where(self.rate_per_s > 0, self.rate_per_s, self.high_per_s)

    def lag_jobs(self, weight: Float64s) -> LagJobs:
        """Return the observed items as jobs with target lags; an unknown cost is 0, an unknown rate +∞."""
        rate = np.nan_to_num(self.rates(), nan=np.inf)
        return LagJobs(
            self.target_s, np.nan_to_num(self.cost_s, nan=0.0), rate, self.delay_s, weight, self.below
        )

    def sum_over_chain(self, column: Float64s) -> Float64s:
        """Return ``column`` summed over each item and the stale items that it is made from."""
        total, stale = column.copy(), self.stale
        for lower, upper in self.below:
            if stale[lower]:
                total[upper] += column[lower]
        return total

    def correct_values(self, value: Float64s, terms: RefreshTerms, now_s: float) -> Float64s:
        """Return the poll values of all rows, with those of the observed rows corrected; −∞ if a poll gains
        nothing, as for a fresh item."""
        gains = np.where(self.by_age, self._age_gains(terms, now_s), self._fresh_gains(terms))
        stale = self.stale
        chain = self.sum_over_chain(np.where(gains > 0, gains, 0.0)) / self.sum_over_chain(terms.cost)
        chain = np.where(gains > 0, np.minimum(chain, _MOST), np.where(np.isnan(gains), np.nan, -np.inf))
        chain[self.fresh] = -np.inf
        found = value.copy()
        found[self.rows] = np.where(stale & ~np.isnan(chain) | self.fresh, chain, value[self.rows])
        return found

    def gain_shortage(self, terms: RefreshTerms) -> Float64s:
        """Return for each given-up item by what factor its weight is too small for a refresh to gain; 1 for
        all other items."""
        rates, gains = self.rates(), self._fresh_gains(terms)
        with np.errstate(divide="ignore", invalid="ignore"):
            bought = terms.weight / rates
            factor = (bought - gains) / bought
        return np.where(self.stale & ~self.by_age & (gains <= 0) & np.isfinite(factor), factor, 1.0)

    def _age_gains(self, terms: RefreshTerms, now_s: float) -> Float64s:
        lag_s = np.where(self.stale, np.maximum(now_s - self._expected_since_s(), _JUST_NOW_S), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fresh_s = np.nan_to_num(1.0 / self.rates(), nan=0.0, posinf=0.0)
        return terms.weight * (lag_s * fresh_s + lag_s**2 / 2) / terms.age_unit_s

    def _expected_since_s(self) -> Float64s:
        """Return the expected time of the first change that each stale copy lacks; +∞ for fresh items."""
        found, stale = np.full(self.rows.size, np.inf), np.isfinite(self.stale_since_s)
        complete_s = self.complete_s[stale]
        rate = np.nan_to_num(self.rates()[stale], nan=0.0, posinf=_MOST)
        found[stale] = complete_s + first_change(rate, self.stale_since_s[stale] - complete_s)
        return found

    def _fresh_gains(self, terms: RefreshTerms) -> Float64s:
        """Return what refreshes gain in fresh time; NaN where the rate is not known yet."""
        rates, gains = self.rates(), np.full(self.rows.size, np.nan)
        seen = self.known & (rates > 0) & ~self.by_age
        if seen.any():
            paid_off_s = self.sum_over_chain(terms.paid_off_s)
            gains[seen] = refresh_gains(
                self.stale[seen], rates[seen], 1.0, weights=terms.weight[seen], costs=paid_off_s[seen]
            )
        return gains


def _complete_s(report: StalenessReport) -> float:
    """Return the last time at which a stale copy is known to have been complete; +∞ if it is fresh."""
    if report.stale_since_s is None:
        return math.inf
    return report.stale_since_s if report.complete_s is None else min(report.complete_s, report.stale_since_s)


def _incomplete_s(report: StalenessReport, goal: RefreshGoal) -> float:
    """Return the earliest time at which a stale copy may have begun to lack a change; +∞ if it is fresh."""
    return _complete_s(report) - (goal.delay_s if report.complete_s is None else goal.behind_s)


def _column(values: Sequence[float | None]) -> Float64s:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def observed_staleness(
    reports: Mapping[str, Mapping[str, StalenessReport]],
    ids: Mapping[str, Mapping[str, int]],
    item_rows: ItemRows,
    settings: Settings,
) -> ObservedStaleness | None:
    """Return what sources reported of these rows, or None if they reported nothing. ``reports`` and ``ids``
    (of items) are by source and key."""
    seen: dict[int, StalenessReport] = {}
    below: dict[int, list[int]] = {}
    goals: dict[int, RefreshGoal] = {}
    for source, of_source in reports.items():
        known = ((key, item_rows.row(item_id)) for key, item_id in ids.get(source, {}).items())
        rows = {key: row for key, row in known if row is not None and key in of_source}
        for key, row in rows.items():
            seen[row] = of_source[key]
            below[row] = [rows[lower] for lower in of_source[key].below if lower in rows]
            goals[row] = refresh_goal(settings, source, key)
    return ObservedStaleness.of(seen, below, goals) if seen else None


def _dependency_pairs(rows: Sequence[int], below: Mapping[int, Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """Return tuples (lower, upper) of positions in ``rows``, where the upper item is made from the lower one;
    sorted by the number of items from which the upper one is made."""
    position = {row: at for at, row in enumerate(rows)}
    pairs = [
        (len(lower_rows), position[lower], position[upper])
        for upper, lower_rows in below.items()
        for lower in lower_rows
        if lower in position
    ]
    return tuple((lower, upper) for _, lower, upper in sorted(pairs))


def pack_reports(seen: Mapping[str, StalenessReport]) -> bytes:
    """Return the reports of a source, by key, as bytes to be stored.

    >>> seen = {"a": StalenessReport(5.0, changed=False)}
    >>> unpack_reports(pack_reports(seen)) == seen
    True
    """
    return json.dumps({key: asdict(one) for key, one in seen.items()}).encode()


def unpack_reports(packed: bytes | None) -> dict[str, StalenessReport]:
    found = json.loads(packed) if packed else {}
    return {
        key: StalenessReport(**one | {"below": tuple(one.get("below", ()))}) for key, one in found.items()
    }


def read_staleness_reports(store: Store, sources: list[str]) -> dict[str, dict[str, StalenessReport]]:
    """Return the saved reports by source and key; sources without reports are left out."""
    found = {name: unpack_reports(store.state.get(STALENESS_REPORTS + name)) for name in sources}
    return {name: reports for name, reports in found.items() if reports}
