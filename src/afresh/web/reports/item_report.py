"""Collects the data of an item's page: the probability that its copy is right, its poll value, past polls."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.item_snapshot import (
    ItemEstimate,
    ItemSnapshot,
    PastPoll,
    estimate_items,
    last_polls,
)
from afresh.engine.reporting.why import Why, explain
from afresh.stores.store import Store
from afresh.values.items import Item
from afresh.values.stored import Version
from afresh.web.schemas import CurvesOut, ItemDetailOut, ItemOut, VersionOut

_CURVE_POINTS, _POLLS_SHOWN = 121, 300
_CURVE_SPAN = 3.0  # times the usual polling interval
_FAR_ABOVE = 3.0  # times the threshold; an item with such a poll value should have been polled long ago
_HEADINGS = {
    **dict.fromkeys(("left alone", "dropped", "futile", "unweighted"), "Why it is left alone"),
    **dict.fromkeys(("paused", "gone", "refused"), "Why it is not polled"),
    "new": "What is next",
}


@dataclass(frozen=True, slots=True)
class ItemReport:
    """Everything that an item's page shows. ``polls`` are the last polls, oldest first. ``curves`` is None if
    there is no copy, or if the source reports the item's staleness, which is then not estimated."""

    why: Why
    estimate: ItemEstimate
    curves: CurvesOut | None
    polls: tuple[PastPoll, ...]
    versions: list[Version]

    @property
    def heading(self) -> str:
        return _HEADINGS.get(self.estimate.plan, "Why so often")

    @property
    def is_behind(self) -> bool:
        """Whether the item has been due for longer than its polling interval, and its poll value is far above
        the threshold. This happens while the plan has not settled yet."""
        why = self.why
        waits_s, poll_value = why.time_s - why.next_s, why.marginal
        return waits_s > why.interval_s and _FAR_ABOVE * why.threshold < poll_value < math.inf

    def to_schema(self) -> ItemDetailOut:
        return ItemDetailOut(
            item=item_schema(self.why.item, self.estimate),
            reasons=list(self.why.reasons),
            threshold=self.why.threshold,
            curves=self.curves,
            polls=list(self.polls),
            versions=[VersionOut.model_validate(version) for version in self.versions],
        )


def item_schema(item: Item, estimate: ItemEstimate) -> ItemOut:
    estimated = {
        "plan": estimate.plan,
        "rate_per_s": estimate.rate_per_s,
        "rate_low_per_s": estimate.low_per_s,
        "rate_high_per_s": estimate.high_per_s,
        "interval_s": estimate.interval_s,
        "fresh": estimate.fresh,
        "worth": estimate.poll_value,
    }
    stored = {name: getattr(item, name) for name in ItemOut.model_fields if name not in estimated}
    return ItemOut.model_validate(stored | estimated)


def report_item(store: Store, snapshot: ItemSnapshot, item: Item) -> ItemReport:
    """Return the report about ``item``, which must be the only item of ``snapshot``."""
    why = explain(store, snapshot, item)
    is_observed = why.seen is not None and why.seen.state != "unknown"
    return ItemReport(
        why=why,
        estimate=estimate_items(snapshot)[0],
        curves=None if item.polled_s is None or is_observed else _compute_curves(snapshot, why),
        polls=last_polls(snapshot.polls_of(item), _POLLS_SHOWN),
        versions=store.copies.versions(item.id),
    )


def _compute_curves(snapshot: ItemSnapshot, why: Why) -> CurvesOut:
    """Compute the curves over the time since the last poll. They end well after the next poll."""
    polled_s = why.item.polled_s
    since_s = 0.0 if polled_s is None else max(snapshot.time_s - polled_s, 0.0)
    due_s = why.interval_s if 0 < why.interval_s < math.inf else math.inf
    typical_s = due_s if math.isfinite(due_s) else 1.0 / max(why.rate_per_s, 1e-12)
    elapsed_s = np.linspace(0.0, _CURVE_SPAN * max(typical_s, since_s / 2, 1.0), _CURVE_POINTS)
    (row,) = snapshot.scheduler.item_rows.rows([why.item.id]).tolist()
    fresh, poll_values = snapshot.scheduler.forecast.course(row, elapsed_s)
    return CurvesOut(
        time_s=elapsed_s.tolist(),
        fresh=fresh.tolist(),
        worth=poll_values.tolist(),
        threshold=why.threshold,
        now_s=since_s,
        due_s=due_s,
    )
