"""Target lags in words, for ``status``, ``config check`` and ``plan --views``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.cli.summary import format_number
from afresh.values.formatting import format_count
from afresh.values.units import format_duration

if TYPE_CHECKING:
    from afresh.engine.reporting.lag_status import LagStatus, UnfitTarget

_NAMED = 10


def lag_rows(found: LagStatus | None) -> list[tuple[str, str]]:
    """Return a tuple (name, text) for each line about target lags; none if no view has one."""
    if found is None:
        return []
    need = f"need {format_number(found.demand_s)} s of refreshing an hour"
    words = (
        f"{format_count(found.targets, 'target')}, which {need}; {format_number(found.allowed_s)} s allowed"
    )
    if not found.unfit:
        return [("target lags", f"{words}; all fit")]
    named = found.unfit[:_NAMED]
    rows = [("target lags", f"{words}; {_count_unfit(found)}: {_describe_remedy(found)}")]
    rows += [(f"  {each.item}", describe_unfit(each)) for each in named]
    if len(found.unfit) > _NAMED:
        rows.append(("", f"… {len(found.unfit) - _NAMED:,} more with --json"))
    return rows


def _count_unfit(found: LagStatus) -> str:
    return "1 does not fit" if len(found.unfit) == 1 else f"{len(found.unfit):,} do not fit"


def describe_unfit(target: UnfitTarget) -> str:
    """Describe a target that does not fit, with what is missing for each condition that fails.

    >>> from afresh.engine.reporting.lag_status import UnfitTarget
    >>> describe_unfit(UnfitTarget("v", 300.0, 42.0, demand_missing_s=42.0))
    'its target of 5 m does not fit: 42 s of refreshing an hour are missing for all targets together'
    """
    target_lag = format_duration(target.target_lag_s)
    if target.target_lag_s <= target.least_s:
        least = f"seeing a change and refreshing take {format_duration(target.least_s)}"
        return f"no budget keeps its target of {target_lag}: {least}{_also_demand(target)}"
    if math.isinf(target.missing_s):
        return (
            f"no budget keeps its target of {target_lag}: seeing a change, waiting and refreshing take longer"
        )
    parts = []
    if target.demand_missing_s > 0:
        parts.append(f"{_describe_missing(target.demand_missing_s)} for all targets together")
    if target.wait_missing_s > 0:
        missing = _describe_missing(target.wait_missing_s)
        parts.append(f"{missing} to pay off the longest other refresh in time")
    return f"its target of {target_lag} does not fit: {', and '.join(parts)}"


def _describe_missing(seconds: float) -> str:
    return f"{format_number(seconds)} s of refreshing an hour are missing"


def _also_demand(target: UnfitTarget) -> str:
    """Describe the second condition of a target that is too short for any budget."""
    if not 0 < target.demand_missing_s < math.inf:
        return ""
    return f"; also, {_describe_missing(target.demand_missing_s)} for all targets together"


def _describe_remedy(found: LagStatus) -> str:
    if found.needed_s > 3600.0:
        return "no budget would do for all: give longer targets, or make refreshes cheaper"
    return f'[budget] seconds = "{math.ceil(found.needed_s)}s/h" would do{_except_for(found.unfit)}'


def _except_for(unfit: Sequence[UnfitTarget]) -> str:
    hopeless = [each.item for each in unfit if math.isinf(each.missing_s)]
    return f", but not for {', '.join(hopeless[:3])}" if hopeless else ""
