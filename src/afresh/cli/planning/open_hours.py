"""Plans under ``--windows``: what is reached if refreshes may happen only at some hours of the week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.cli.planning.planned_items import PlannedItems
from afresh.model.decay import Windowed
from afresh.model.decays.windowed import OpenHours
from afresh.sources.windows import Windows
from afresh.values.errors import UsageError

_WEEK_S = 7 * 86400.0
_MONDAY_S = 4 * 86400.0  # 5 January 1970, 00:00 UTC
_NOT_WITH = {"decay": "a column 'decay'", "update_costs": "a column 'update_cost'"}


@dataclass(frozen=True, slots=True)
class WindowsEffect:
    """What windows do to a plan. They are open for ``open_share`` of the week. ``without`` is the freshness
    at the same budget without windows, ``most`` the freshness that no budget exceeds with them."""

    open_share: float
    without: float
    most: float


def read_open_hours(texts: Sequence[str], unit_s: float) -> OpenHours | None:
    """Return the hours of the weekly windows ``texts`` (UTC), in units of ``unit_s`` seconds; None if they
    are always open.

    >>> read_open_hours(["22:00-06:00"], 3600.0)
    OpenHours(period=24.0, ends=array([8.]), closed=array([16.]))
    """
    windows = Windows.parse(tuple(texts), "UTC")
    start_s = windows.next_opening_s(_MONDAY_S)
    if start_s == _MONDAY_S:  # Monday begins inside a window, which may have opened on Sunday
        start_s = windows.next_opening_s(windows.closes_s(_MONDAY_S))
    opens, closes, now_s = [], [], start_s
    if windows.closes_s(start_s) >= start_s + _WEEK_S:
        return None
    while (now_s := windows.next_opening_s(now_s)) < start_s + _WEEK_S:
        opens.append(now_s)
        closes.append(now_s := windows.closes_s(now_s))
    return OpenHours.of(np.array(opens) / unit_s, np.array(closes) / unit_s, _WEEK_S / unit_s)


def with_windows(
    given: PlannedItems, chosen: Mapping[str, Any], texts: Sequence[str], unit_s: float
) -> dict[str, Any]:
    """Return ``chosen``, arguments of ``allocate`` for the items ``given``, with the windows ``texts``. Raise
    ``UsageError`` for arguments with which plans under windows are not known."""
    hours = read_open_hours(texts, unit_s) if texts else None
    if hours is None:
        return dict(chosen)
    for name, words in _NOT_WITH.items():
        if name in chosen:
            raise UsageError(f"--windows cannot be used with {words}")
    if chosen["objective"] not in ("freshness", "age") or chosen["order"] != "fixed":
        raise UsageError("--windows needs the objective freshness or age, and the order fixed")
    return {**chosen, "decay": Windowed(given.rates, hours)}


def describe_effect(
    given: PlannedItems, budget: float, policy: str, chosen: Mapping[str, Any]
) -> WindowsEffect | None:
    """Return what the windows in ``chosen`` do to the plan of a budget; None if there are none."""
    decay = chosen.get("decay")
    if not isinstance(decay, Windowed):
        return None
    plain = {name: value for name, value in chosen.items() if name != "decay"}
    without = allocate(given.rates, budget, policy=policy, **plain)
    weights = np.asarray(chosen.get("weights", np.ones(given.count)), dtype=np.float64)
    most = float(weights @ decay.survival(0.0) / weights.sum()) if weights.sum() > 0 else 1.0
    return WindowsEffect(decay.hours.open_time / decay.hours.period, without.freshness, most)
