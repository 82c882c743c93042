"""Every item as one row of arrays in memory, from which the engine decides what to poll.

Rows are sorted by item id. New items have higher ids, so a row is found by bisection. A removed item keeps
its row, marked inactive, until the engine is started again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from afresh.engine.scheduler import stored_beliefs
from afresh.engine.scheduler.stored_beliefs import StoredBeliefs
from afresh.values.arrays import Float64s, Ints
from afresh.values.items import MOST_WEIGHT, STATUSES
from afresh.values.stored import PolicyColumns

_ROUNDED_S = 1e-3  # the store may round times by this much
REQUESTED_S = 1.0
"""If a poll is requested, the stored due time is so many seconds before the last poll."""

_ACTIVE = STATUSES.index("active")
_FLOATS = ("weight", "cost", "min_interval_s", "max_interval_s", "prior_rate_per_s", "polled_s", "due_s")


class ItemRows:
    """One array per column, with one entry per item. ``not_before_s`` is the earliest time of the next poll,
    ``is_busy`` marks items that are being polled, ``is_requested`` items that are polled before others.
    ``pending_beliefs`` holds batches of stored beliefs, each with the row of its first item, until the
    ranking restores them. The ranking multiplies the weight by ``value_factor`` (what a fresh copy earns) and
    the cost by ``cost_factor`` (what a poll was measured to cost), and the weight of a page by its
    ``gain_factor`` (see ``link_gains``). All are 1 if nothing is known. ``update_cost`` is what taking over a
    change costs beyond that, in the same unit. ``weight`` is the item's ``own_weight`` and what item views
    add to it, ``view_weights`` by item id. The interval ``min_interval_s`` is the item's
    ``own_min_interval_s`` or, if that is 0, the default of its source (``default_intervals`` by the number of
    the source), but not above ``max_interval_s``."""

    def __init__(self, view_weights: Mapping[int, float] | None = None) -> None:
        self.size, self.view_weights = 0, dict(view_weights or {})
        self.ids, self.source, self.group = (np.empty(0, dtype=np.int64) for _ in range(3))
        self.is_active, self.is_busy, self.is_requested = (np.empty(0, dtype=np.bool_) for _ in range(3))
        self.weight, self.own_weight = np.empty(0), np.empty(0)
        self.cost, self.prior_rate_per_s = np.empty(0), np.empty(0)
        self.min_interval_s, self.max_interval_s = np.empty(0), np.empty(0)
        self.polled_s, self.due_s, self.not_before_s = (np.empty(0) for _ in range(3))
        self.value_factor, self.cost_factor = np.empty(0), np.empty(0)
        self.gain_factor, self.link_gains = np.empty(0), dict[int, float]()
        self.update_cost = np.empty(0)
        self.own_min_interval_s, self.default_intervals = np.empty(0), dict[int, float]()
        self.pending_beliefs: list[tuple[int, StoredBeliefs]] = []

    def load(self, batches: Iterable[PolicyColumns]) -> int:
        """Append items, with ids higher than all loaded ones, as rows; return the number of items added."""
        parts = [part for part in batches if part.id.size]
        if not parts:
            return 0
        self._extend("ids", [part.id for part in parts])
        for name in ("source", "group", *_FLOATS):
            self._extend(name, [getattr(part, name) for part in parts])
        self._extend("own_weight", [part.weight for part in parts])
        self._extend("own_min_interval_s", [part.min_interval_s for part in parts])
        self._extend("is_active", [part.status == _ACTIVE for part in parts])
        first, holds = self.size, []
        for part in parts:
            found = stored_beliefs.unpack(part.beliefs, part.belief_size)
            self.pending_beliefs.append((first, found))
            holds.append(np.minimum(found.not_before_s, part.due_s))
            first += part.id.size
        self._extend("not_before_s", holds)
        added = self.ids.size - self.size
        self._extend("is_busy", [np.zeros(added, dtype=np.bool_)])
        self._extend("is_requested", [part.due_s < part.polled_s - REQUESTED_S / 2 for part in parts])
        for name in ("value_factor", "cost_factor", "gain_factor"):
            self._extend(name, [np.ones(added)])
        self._extend("update_cost", [np.zeros(added)])
        self.size = int(self.ids.size)
        self._add_view_weights()
        self._apply_default_intervals(np.arange(self.size - added, self.size))
        return added

    def set_default_intervals(self, by_source: Mapping[int, float]) -> None:
        """Set the least interval in seconds of items without their own, by the number of their source."""
        if by_source != self.default_intervals:
            self.default_intervals = dict(by_source)
            self._apply_default_intervals(np.arange(self.size))

    def _apply_default_intervals(self, rows: Ints) -> None:
        default_s = np.zeros(rows.size)
        for source, least_s in self.default_intervals.items():
            default_s[self.source[rows] == source] = least_s
        own_s = self.own_min_interval_s[rows]
        default_s = np.minimum(default_s, self.max_interval_s[rows])
        self.min_interval_s[rows] = np.where(own_s > 0, own_s, default_s)

    def set_view_weights(self, weights: Mapping[int, float]) -> Ints:
        """Replace what item views add to the weights, by item id; return the rows of the items concerned."""
        concerned = self.rows([*{**self.view_weights, **weights}])
        self.view_weights = dict(weights)
        self.weight[concerned] = self.own_weight[concerned]
        self._add_view_weights()
        return concerned

    def _add_view_weights(self) -> None:
        for item_id, weight in self.view_weights.items():
            row = self.row(item_id)
            if row is not None:
                self.weight[row] = self.own_weight[row] + weight

    def set_link_gains(self, gains: Mapping[int, float]) -> Ints:
        """Replace how many new pages a change of each page is expected to show, by item id; return the rows
        of the items concerned."""
        concerned = self.rows([*{**self.link_gains, **gains}])
        self.link_gains = dict(gains)
        self.gain_factor[concerned] = [1.0 + gains.get(int(each), 0.0) for each in self.ids[concerned]]
        return concerned

    def _extend(self, name: str, parts: Sequence[npt.NDArray[np.generic]]) -> None:
        setattr(self, name, np.concatenate((getattr(self, name), *parts)))

    def ranked_weight(self, rows: Ints | slice) -> Float64s:
        """Return the weights by which ``rows`` are ranked, 0 for inactive items."""
        weight = np.minimum(self.weight[rows], MOST_WEIGHT)  # older versions stored any
        factor = self.value_factor[rows] * self.gain_factor[rows]
        return np.where(self.is_active[rows], weight * factor, 0.0)

    def ranked_cost(self, rows: Ints | slice) -> Float64s:
        return np.asarray(np.minimum(self.cost[rows], MOST_WEIGHT) * self.cost_factor[rows])

    def group_key(self, row: int) -> tuple[int, int]:
        return int(self.source[row]), int(self.group[row])

    def row(self, item_id: int) -> int | None:
        row = int(np.searchsorted(self.ids, item_id))
        return row if row < self.size and self.ids[row] == item_id else None

    def rows(self, item_ids: Sequence[int]) -> Ints:
        """Return the rows of the items ``item_ids``; ids without a row are left out."""
        wanted = np.asarray(item_ids, dtype=np.int64)
        rows = np.searchsorted(self.ids, wanted)
        rows = np.minimum(rows, max(self.size - 1, 0))
        return rows[self.ids[rows] == wanted] if self.size else rows[:0]

    def edit(self, item_ids: Sequence[int], now: PolicyColumns, now_s: float) -> None:
        """Update the rows of ``item_ids`` from the columns ``now``. Items that ``now`` does not contain were
        removed, and become inactive."""
        rows = self.rows(item_ids)
        self.is_active[rows] = False
        rows = self.rows(now.id.tolist())
        part = np.isin(now.id, self.ids[rows])
        # If an edit makes an item due now, a person has asked for a poll.
        due_s = now.due_s[part]
        is_requested = (due_s <= now_s) & (due_s != self.due_s[rows])
        self.is_requested[rows[is_requested]] = True
        self.not_before_s[rows[is_requested]] = -np.inf
        for name in _FLOATS:
            if name != "polled_s":
                getattr(self, name)[rows] = getattr(now, name)[part]
        self.own_weight[rows] = now.weight[part]
        self.own_min_interval_s[rows] = now.min_interval_s[part]
        self._apply_default_intervals(rows)
        self._add_view_weights()
        self.is_active[rows] = now.status[part] == _ACTIVE

    def catch_up(self, row: int, polled_s: float) -> bool:
        """Record that another engine polled ``row`` at ``polled_s``. Return False if this poll was known."""
        if polled_s <= self.polled_s[row] + _ROUNDED_S:
            return False
        self.polled_s[row] = polled_s
        return True
