"""Describes item views for people: their lines of ``afresh status``, and ``afresh why`` of one of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh.cli.summary import format_number
from afresh.values.formatting import format_count, format_moment
from afresh.values.units import CHANGES_PER, UNIT_SECONDS, changes_unit, format_duration

if TYPE_CHECKING:
    from afresh.engine.reporting.item_view_status import ItemViewStatus, ViewedItem, ViewWhy

_ITEMS_SHOWN = 10


def format_rates(per_s: float, low_per_s: float, high_per_s: float) -> str:
    """Describe a rate and its 90 % interval in the shortest unit of time that gives a rate from 1 on.

    >>> format_rates(2 / 3600, 1 / 3600, 4 / 3600)
    '2 changes an hour (1 … 4 with 90 % probability)'
    """
    unit = changes_unit(per_s)
    rates = (UNIT_SECONDS[unit] * each for each in (per_s, low_per_s, high_per_s))
    rate, low, high = (format_number(float(f"{each:.2g}")) for each in rates)
    return f"{rate} changes {CHANGES_PER[unit]} ({low} … {high} with 90 % probability)"


def describe_item_view(view: ItemViewStatus) -> str:
    """Describe an item view in one line: its items, freshness, rate, and the last change."""
    parts = [f"{format_count(view.items, 'item')}, fresh with {view.fresh:.3f}"]
    if not math.isnan(view.rate_per_s):
        parts.append(format_rates(view.rate_per_s, view.low_per_s, view.high_per_s))
    if not math.isnan(view.changed_s):
        parts.append(f"a change was last found {format_moment(view.changed_s)}")
    if view.unknown:
        parts.append(f"{format_count(view.unknown, 'item')} of it not known")
    return "; ".join(parts)


def view_why_rows(found: ViewWhy) -> list[tuple[str, str]]:
    """Return a tuple (name, text) for each line of ``afresh why`` about an item view."""
    view, none = found.view, "none found yet"
    rate = none if math.isnan(view.rate_per_s) else ""
    rows = [
        ("rate", rate or format_rates(view.rate_per_s, view.low_per_s, view.high_per_s)),
        ("fresh now", f"{view.fresh:.3f}: no item changed since its last poll, with this probability"),
        ("weight", f"{format_number(view.weight)}, added to that of each item"),
        ("last change", none if math.isnan(view.changed_s) else format_moment(view.changed_s)),
        ("items", f"{view.items:,}" + (f", {view.unknown:,} of them not known" if view.unknown else "")),
    ]
    rows += [(f"  {item.key}", _describe_item(item, found.time_s)) for item in found.items[:_ITEMS_SHOWN]]
    if len(found.items) > _ITEMS_SHOWN:
        rows.append(("", f"… {len(found.items) - _ITEMS_SHOWN:,} more with --json"))
    return rows + [("" if index else "because", text) for index, text in enumerate(found.reasons)]


def _describe_item(item: ViewedItem, now_s: float) -> str:
    if not item.known:
        return "there is no such item"
    if math.isnan(item.polled_s):
        return "no copy yet"
    ago = format_duration(max(now_s - item.polled_s, 0.0))
    return f"fresh with {item.fresh:.3f}, polled {ago} ago"
