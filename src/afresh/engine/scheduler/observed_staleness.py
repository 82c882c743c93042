"""What sources observe of items without polls: staleness, rate of changes, and seconds that a refresh needs.

A source that watches what its items are made from (``sources.capabilities``) reports staleness, so that it
need not be estimated. The poll of a fresh item gains nothing. The refresh of a stale item with rate λ gains
1/λ of fresh time on average, but uses the budget for a while and so delays other refreshes.
``allocation.watched.refresh_gains`` compares both. Items of unknown staleness are ranked like any other item.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from afresh.allocation.watched import refresh_gains
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.state_names import STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport
from afresh.stores.store import Store
from afresh.values.arrays import Bools, Float64s, Ints

_MOST = 1e290  # keeps gains finite
_FIRST = 1.0 + 1e-9  # ranks an item just before the items that are made from it


@dataclass(frozen=True, slots=True)
class ObservedStaleness:
    """Columns with an entry for each observed row. A rate or cost is NaN if it is not known yet.
    ``stale_since_s`` is +∞ for fresh items. ``known`` is False if the staleness cannot be observed.
    ``WatchedItem`` explains ``dispersion``. ``below`` has tuples (lower, upper) of positions in the columns:
    the upper item is made from the lower one. Tuples whose upper item is made from fewer items are first."""

    rows: Ints
    known: Bools
    stale_since_s: Float64s
    rate_per_s: Float64s
    low_per_s: Float64s
    high_per_s: Float64s
    cost_s: Float64s
    dispersion: Float64s
    below: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(
        cls, seen: Mapping[int, StalenessReport], below: Mapping[int, Sequence[int]] | None = None
    ) -> ObservedStaleness:
        """Convert ``seen``, the reports by row, to columns. ``below`` has the rows of the items from which an
        item is made, by the row of that item.

        >>> report = StalenessReport(5.0, changed=True, stale_since_s=7.0, rate_per_s=0.5)
        >>> staleness = ObservedStaleness.of({3: report})
        >>> staleness.stale.tolist(), staleness.fresh.tolist(), staleness.cost_s.tolist()
        ([True], [False], [nan])
        """
        rows = sorted(seen)
        reports = [seen[row] for row in rows]
        since = [math.inf if one.stale_since_s is None else one.stale_since_s for one in reports]
        return cls(
            rows=np.array(rows, dtype=np.int64),
            known=np.array([one.known for one in reports], dtype=bool),
            stale_since_s=np.array(since, dtype=np.float64),
            rate_per_s=_column([one.rate_per_s for one in reports]),
            low_per_s=_column([one.low_per_s for one in reports]),
            high_per_s=_column([one.high_per_s for one in reports]),
            cost_s=_column([one.cost_s for one in reports]),
            dispersion=_column([one.dispersion for one in reports]),
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

    def correct_values(
        self, value: Float64s, weight: Float64s, cost: Float64s, paid_off_s: Float64s
    ) -> Float64s:
        """Return the poll values of all rows, with those of the observed rows corrected; −∞ if a poll gains
        nothing. ``weight``, ``cost`` and ``paid_off_s`` have an entry for each observed row; ``paid_off_s``
        is the number of seconds for which a refresh delays other polls."""
        rates, gains = self.rates(), np.full(self.rows.size, np.nan)
        seen = self.known & (rates > 0)
        if seen.any():
            gains[seen] = refresh_gains(
                self.stale[seen], rates[seen], 1.0, weights=weight[seen], costs=paid_off_s[seen]
            )
        gains[self.fresh] = -np.inf
        gains /= cost
        gains = np.where(gains > 0, np.minimum(gains, _MOST), np.where(np.isnan(gains), np.nan, -np.inf))
        own = np.where(np.isnan(gains), value[self.rows], gains)
        stale = self.stale
        for lower, upper in reversed(self.below):
            # An item cannot become fresh before the item it is made from, which therefore gets its value.
            if stale[lower] and stale[upper] and own[upper] > 0:
                own[lower] = max(own[lower], own[upper] * _FIRST)
        found = value.copy()
        found[self.rows] = own
        return found


def _column(values: Sequence[float | None]) -> Float64s:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def observed_staleness(
    reports: Mapping[str, Mapping[str, StalenessReport]],
    ids: Mapping[str, Mapping[str, int]],
    item_rows: ItemRows,
) -> ObservedStaleness | None:
    """Return what sources reported of these rows, or None if they reported nothing. ``reports`` and ``ids``
    (of items) are by source and key."""
    seen: dict[int, StalenessReport] = {}
    below: dict[int, list[int]] = {}
    for source, of_source in reports.items():
        known = ((key, item_rows.row(item_id)) for key, item_id in ids.get(source, {}).items())
        rows = {key: row for key, row in known if row is not None and key in of_source}
        for key, row in rows.items():
            seen[row] = of_source[key]
            below[row] = [rows[lower] for lower in of_source[key].below if lower in rows]
    return ObservedStaleness.of(seen, below) if seen else None


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
