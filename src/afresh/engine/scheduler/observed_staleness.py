"""What sources observe of items without polls: which are stale, how often they change, what a refresh takes.

A source that watches what its items are made from (``sources.capabilities``) reports staleness; nothing is
estimated. A fresh item is worth no poll. A stale one buys 1/λ of fresh time on average, and while its cost is
paid off the others wait: ``allocation.watched.refresh_gains`` compares both. Items of unknown staleness are
ranked like any other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from afresh.allocation.watched import refresh_gains
from afresh.engine.state_names import STALENESS_REPORTS
from afresh.sources.capabilities import StalenessReport
from afresh.stores.store import Store
from afresh.values.arrays import Bools, Float64s, Ints

_MOST = 1e290  # keeps gains finite
_FIRST = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class ObservedStaleness:
    """Columns over the observed rows; NaN where a rate or cost is not known yet. ``stale_since_s`` is +∞ for
    what is fresh; ``known`` False where staleness cannot be seen. ``below`` are pairs of places in the
    columns: the second is made from the first; what is lowest comes first."""

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
        cls, seen: Mapping[int, StalenessReport], rows_of: Mapping[str, int] | None = None
    ) -> ObservedStaleness:
        """Return the columns of these reports; ``rows_of`` keys tells which rows are made from others.

        >>> report = StalenessReport(5.0, changed=True, stale_since_s=7.0, rate_per_s=0.5)
        >>> staleness = ObservedStaleness.of({3: report})
        >>> staleness.stale.tolist(), staleness.fresh.tolist(), staleness.cost_s.tolist()
        ([True], [False], [nan])
        """
        rows = sorted(seen)
        told = [seen[row] for row in rows]
        since = [math.inf if one.stale_since_s is None else one.stale_since_s for one in told]
        return cls(
            rows=np.array(rows, dtype=np.int64),
            known=np.array([one.known for one in told], dtype=bool),
            stale_since_s=np.array(since, dtype=np.float64),
            rate_per_s=_column([one.rate_per_s for one in told]),
            low_per_s=_column([one.low_per_s for one in told]),
            high_per_s=_column([one.high_per_s for one in told]),
            cost_s=_column([one.cost_s for one in told]),
            dispersion=_column([one.dispersion for one in told]),
            below=_places(seen, rows, rows_of or {}),
        )

    @property
    def stale(self) -> Bools:
        """Known to be out of date."""
        return self.known & np.isfinite(self.stale_since_s)

    @property
    def fresh(self) -> Bools:
        """Known to be right."""
        return self.known & ~np.isfinite(self.stale_since_s)

    def rates(self) -> Float64s:
        """Return the rates to compute with: where no change was ever seen, the upper end of the interval."""
        return np.where(self.rate_per_s > 0, self.rate_per_s, self.high_per_s)

    def valued(self, value: Float64s, weight: Float64s, cost: Float64s, paid_off_s: Float64s) -> Float64s:
        """Return the values per cost of all rows, corrected for observed ones; −∞ where a poll gains nothing.
        ``weight``, ``cost`` and ``paid_off_s``, for how long nothing else can start after a refresh, are of
        the observed rows."""
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
            # An item made from a stale one is right only after that one is: it passes its value on to it.
            if stale[lower] and stale[upper] and own[upper] > 0:
                own[lower] = max(own[lower], own[upper] * _FIRST)
        found = value.copy()
        found[self.rows] = own
        return found


def _column(values: Sequence[float | None]) -> Float64s:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _places(
    seen: Mapping[int, StalenessReport], rows: Sequence[int], rows_of: Mapping[str, int]
) -> tuple[tuple[int, int], ...]:
    """Return pairs (lower, upper) of positions in ``rows``, ordered by what the upper is made from."""
    place = {row: at for at, row in enumerate(rows)}
    pairs = [
        (len(told.below), place[rows_of[key]], place[row])
        for row, told in seen.items()
        for key in told.below
        if key in rows_of and rows_of[key] in place
    ]
    return tuple((lower, upper) for _, lower, upper in sorted(pairs))


def pack_reports(seen: Mapping[str, StalenessReport]) -> bytes:
    """Return the reports of a source as the store keeps them.

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


def read_staleness_reports(store: Store, sources: list[str]) -> dict[str, StalenessReport]:
    found: dict[str, StalenessReport] = {}
    for name in sources:
        found |= unpack_reports(store.state.get(STALENESS_REPORTS + name))
    return found
