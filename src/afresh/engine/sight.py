"""What is seen of items without polling them: which are stale, how often they change, what a refresh takes.

A source that watches what its items stand on (``sources.evidence``) tells staleness; then nothing is guessed.
A fresh item is worth no poll. A stale one buys 1/λ of fresh time on average, and while its cost is paid off
the others wait: ``allocation.watched.gains_now`` weighs both. Items that are not known to be fresh or stale
are ranked like any other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from afresh.allocation.watched import gains_now
from afresh.engine.state_names import EVIDENCE
from afresh.rates.observations import Bools, Float64s, Ints
from afresh.sources.evidence import Evidence
from afresh.stores.store import Store

_MOST = 1e290  # below what goes before all others


@dataclass(frozen=True, slots=True)
class Sight:
    """Columns over the rows that are seen; NaN where a rate or cost is not known yet.

    ``stale_since_s`` is +∞ for what is fresh; ``known`` False where staleness cannot be seen.
    """

    rows: Ints
    known: Bools
    stale_since_s: Float64s
    rate_per_s: Float64s
    low_per_s: Float64s
    high_per_s: Float64s
    cost_s: Float64s

    @classmethod
    def of(cls, seen: Mapping[int, Evidence]) -> Sight:
        """What is seen of rows.

        >>> sight = Sight.of({3: Evidence(5.0, changed=True, stale_since_s=7.0, rate_per_s=0.5)})
        >>> sight.stale.tolist(), sight.fresh.tolist(), sight.cost_s.tolist()
        ([True], [False], [nan])
        """
        rows = sorted(seen)
        told = [seen[row] for row in rows]
        since = [math.inf if one.stale_since_s is None else one.stale_since_s for one in told]
        measured = [
            [math.nan if value is None else value for value in values]
            for values in (
                [one.rate_per_s for one in told],
                [one.low_per_s for one in told],
                [one.high_per_s for one in told],
                [one.cost_s for one in told],
            )
        ]
        return cls(
            np.array(rows, dtype=np.int64),
            np.array([one.known for one in told], dtype=bool),
            np.array(since, dtype=np.float64),
            *(np.array(values, dtype=np.float64) for values in measured),
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
        """The rates to reckon with: where no change was ever seen, the most that this allows."""
        return np.where(self.rate_per_s > 0, self.rate_per_s, self.high_per_s)

    def gains(self, weight: Float64s, paid_off_s: Float64s) -> Float64s:
        """What refreshing each row now gains in weighted fresh time; −∞ where it is fresh, NaN if unknown.

        ``paid_off_s`` is for how long nothing else can start afterwards.
        """
        found = np.full(self.rows.size, np.nan)
        reckoned = self.known & (self.rates() > 0)
        if reckoned.any():
            found[reckoned] = gains_now(
                self.stale[reckoned],
                self.rates()[reckoned],
                1.0,
                weights=weight[reckoned],
                costs=paid_off_s[reckoned],
            )
        found[self.fresh] = -np.inf
        return found

    def valued(self, value: Float64s, weight: Float64s, cost: Float64s, paid_off_s: Float64s) -> Float64s:
        """Values per cost of all rows, with those that are seen put right; −∞ for what gains nothing.

        ``weight``, ``cost`` and ``paid_off_s`` are of the seen rows.
        """
        gains = self.gains(weight, paid_off_s) / cost
        gains = np.where(gains > 0, np.minimum(gains, _MOST), np.where(np.isnan(gains), np.nan, -np.inf))
        found = value.copy()
        found[self.rows] = np.where(np.isnan(gains), value[self.rows], gains)
        return found


def pack_evidence(seen: Mapping[str, Evidence]) -> bytes:
    """What a source sees of its items, as the store keeps it.

    >>> seen = {"a": Evidence(5.0, changed=False)}
    >>> unpack_evidence(pack_evidence(seen)) == seen
    True
    """
    return json.dumps({key: asdict(one) for key, one in seen.items()}).encode()


def unpack_evidence(packed: bytes | None) -> dict[str, Evidence]:
    """What was kept; nothing where nothing was."""
    return {key: Evidence(**one) for key, one in json.loads(packed).items()} if packed else {}


def kept_evidence(store: Store, sources: list[str]) -> dict[str, Evidence]:
    """What the engine last saw of the items of these sources, by key."""
    found: dict[str, Evidence] = {}
    for name in sources:
        found |= unpack_evidence(store.state.get(EVIDENCE + name))
    return found
