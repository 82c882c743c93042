"""Collects the data of an item's page: the probability that its copy is right, its poll value, past polls."""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.engine.reporting.item_snapshot import ItemEstimate
from afresh.engine.reporting.overview import ItemDetail
from afresh.values.items import Item
from afresh.web.schemas import CurvesOut, ItemDetailOut, ItemOut, VersionOut

_FAR_ABOVE = 3.0  # times the threshold; an item with such a poll value should have been polled long ago
_HEADINGS = {
    **dict.fromkeys(("left alone", "dropped", "futile", "unweighted"), "Why it is left alone"),
    **dict.fromkeys(("paused", "gone", "refused"), "Why it is not polled"),
    "new": "What is next",
}


@dataclass(frozen=True, slots=True)
class ItemReport(ItemDetail):
    """Everything that an item's page shows."""

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

    @property
    def drawn(self) -> CurvesOut | None:
        """The curves, as the charts and the API take them."""
        return None if self.curves is None else CurvesOut.model_validate(self.curves)

    def to_schema(self) -> ItemDetailOut:
        return ItemDetailOut(
            item=item_schema(self.why.item, self.estimate),
            reasons=list(self.why.reasons),
            threshold=self.why.threshold,
            curves=self.drawn,
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


def report_item(detail: ItemDetail) -> ItemReport:
    return ItemReport(detail.why, detail.estimate, detail.curves, detail.polls, detail.versions)
