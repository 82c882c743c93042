"""What the settings demand of items whose staleness is observed: objective and target lag."""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.engine.settings.tables import Settings


@dataclass(frozen=True, slots=True)
class RefreshGoal:
    """The objective of an item, its target lag in seconds (infinite without one), the longest time until a
    change is seen, and the part of it by which counters are behind each reading."""

    objective: str = "freshness"
    target_lag_s: float = math.inf
    delay_s: float = 0.0
    behind_s: float = 0.0


def refresh_goal(settings: Settings, source: str, key: str) -> RefreshGoal:
    """Return the goal of the item ``key`` of ``source``.

    >>> from afresh.engine.settings.parsing import parse_settings
    >>> text = "[[source]]\\nname = 'w'\\nkind = 'view'\\nurl = 'postgresql:///w'\\ntarget_lag = '5m'"
    >>> refresh_goal(parse_settings(text), "w", "public.v")
    RefreshGoal(objective='age', target_lag_s=300.0, delay_s=15.0, behind_s=10.0)
    """
    table = settings.source(source)
    if table is None:
        return RefreshGoal(settings.plan.objective)
    own = table.settings
    target_s, delay_s = own.target_lag_s(key), own.detection_delay_s
    behind_s = max(delay_s - (own.listings_every_s or 0.0), 0.0)
    return RefreshGoal(
        settings.objective_of(source), math.inf if target_s is None else target_s, delay_s, behind_s
    )
