"""The Now page's words and series: one dictionary of texts that the page shows and live updates replace."""

from __future__ import annotations

import math
from hashlib import blake2b

import numpy as np

from afresh.engine.reporting.pulse import FIELDS
from afresh.engine.scheduler.audits import ShareEstimate, wilson_interval
from afresh.values.formatting import format_count
from afresh.values.stored import ObservationColumns
from afresh.web import wording
from afresh.web.watching import Look

_STATES = {
    "running": "Engine running",
    "stopped": "Engine stopped",
    "lost": "Engine silent",
    "none": "No engine yet",
    "no store": "Store lost",
}
_AUDIT_BINS, _FEWEST = 24, 5
_RECENT_S, _GAP_S, _HOUR_S = 65.0, 300.0, 3600.0
_SHORTEST_S = 2.0  # of a run that tells how much of its budget it uses
_WELL_ABOVE = 1.1  # times the budget: more than chance, since no engine spends more than it has
Series = dict[str, list[float | None]]


def fields(look: Look) -> dict[str, str]:
    """Every text of the page that changes, by name."""
    status = look.status
    polls, changes = per_minute(look)
    return {
        "state": look.state,
        "state-words": _STATES[look.state],
        "state-detail": _detail(look),
        "freshness": wording.share(status.freshness.value),
        "freshness-range": _range(status.freshness),
        "audited": wording.share(status.audited.value) if status.audited.n else "none yet",
        "audited-range": _audited(look),
        "age": wording.duration(status.age_s),
        "polls": wording.number(polls),
        "changes": wording.number(changes),
        "items": wording.count(status.items),
        "items-detail": _items(look),
        "due": wording.count(status.due),
        "due-detail": f"{wording.count(status.failing)} waiting after a failure",
        "dropped": _dropped(look),
        "budget": wording.rate(status.budget_per_s),
        "budget-share": wording.share(_used(look)),
        "budget-detail": _spent(look),
        "store": wording.size(status.file_bytes),
        "store-detail": f"{format_count(status.events, 'event')} and"
        f" {format_count(status.notices, 'notice')} waiting",
        "sampled": _sampled(look),
        "trouble": _trouble(look),
        "as-of": wording.moment(look.time_s),
    }


def per_minute(look: Look) -> tuple[float, float]:
    """Polls and changes in the last minute of the course; NaN where there is too little of it."""
    course = look.course
    if look.state != "running" or course.shape[0] < 2:
        return math.nan, math.nan
    last = course[-1]
    inside = course[course[:, 0] >= last[0] - _RECENT_S]
    # Counts start again with the engine.
    inside = inside[inside[:, FIELDS.index("polls")] <= last[FIELDS.index("polls")]]
    span_s = float(last[0] - inside[0, 0])
    if span_s <= 0:
        return math.nan, math.nan
    format_count = [
        float(last[column] - inside[0, column]) for column in map(FIELDS.index, ("polls", "changes"))
    ]
    return 60.0 * format_count[0] / span_s, 60.0 * format_count[1] / span_s


def series(look: Look) -> dict[str, object]:
    """What the charts draw: the course, audits by bins, requests a minute, the promise."""
    columns = look.course.T
    course = {name: columns[place].tolist() for place, name in enumerate(FIELDS)} if columns.size else {}
    minutes: dict[float, int] = {}
    for row in look.ledger:
        minutes[row.start_s] = minutes.get(row.start_s, 0) + row.spent.requests
    return {
        "time_s": look.time_s,
        "course": wording.plain(course),
        "rates": rates_of(look),
        "audits": audit_bins(look.audits),
        "minutes": {"time_s": list(minutes), "requests": list(minutes.values())},
        "budget_per_minute": 60.0 * look.status.budget_per_s,
        "target": look.status.target,
    }


def rates_of(look: Look) -> Series:
    """Polls and changes per minute between the points of the course; nothing across a restart or a gap."""
    course = look.course
    if course.shape[0] < 2:
        return {"time_s": [], "polls": [], "changes": []}
    step_s = np.diff(course[:, 0])
    polls, changes = (np.diff(course[:, FIELDS.index(name)]) for name in ("polls", "changes"))
    broken = (polls < 0) | (step_s <= 0) | (step_s > _GAP_S)
    scale = np.where(broken, np.nan, 60.0 / np.where(step_s > 0, step_s, 1.0))
    shown = {"time_s": course[1:, 0], "polls": scale * polls, "changes": scale * changes}
    return {
        name: [None if math.isnan(value) else value for value in column.tolist()]
        for name, column in shown.items()
    }


def audit_bins(audits: ObservationColumns) -> Series:
    """Audits of the last day in at most 24 bins of equal number, each with Wilson's 95 % interval."""
    told = np.flatnonzero(audits.elapsed_s > 0)
    found: Series = {"time_s": [], "value": [], "low": [], "high": [], "n": []}
    bins = min(_AUDIT_BINS, told.size // _FEWEST)
    for part in np.array_split(told, bins) if bins else []:
        share = wilson_interval(int(np.count_nonzero(~audits.changed[part])), int(part.size))
        values = (float(np.mean(audits.time_s[part])), share.value, share.low, share.high, float(share.n))
        for name, value in zip(found, values, strict=True):
            found[name].append(value)
    return found


def _detail(look: Look) -> str:
    pulse = look.pulse
    if look.problem:
        return f"{look.problem}. Trying again; the numbers are those of before."
    if pulse is None:
        return "Start one with 'afresh run'."
    if look.state == "stopped":
        return f"It stopped at {wording.moment(pulse.time_s)}. Nothing is polled until it runs again."
    if look.state == "lost":
        return f"No sign of life since {wording.moment(pulse.time_s)}: it was killed, or lost its store."
    return pulse.trouble or f"since {wording.moment(pulse.started_s)}"


def _trouble(look: Look) -> str:
    """A mark that is another when other hosts or items are in trouble."""
    items = [(item.key, item.failures, item.problem) for item in look.failing]
    rests = [(name, rest.group, rest.failures, rest.why) for name, rest in look.rests]
    return blake2b(repr((items, rests)).encode(), digest_size=6).hexdigest()


def _audited(look: Look) -> str:
    found = look.status.audited
    if not found.n:
        return "random polls will measure it"
    return f"{_range(found)}, by {format_count(found.n, 'random poll')}"


def _range(share: ShareEstimate) -> str:
    return f"{wording.share(share.low)} … {wording.share(share.high)} with 95 % probability"


def _items(look: Look) -> str:
    states = [f"{wording.count(items)} {name}" for name, items in look.status.by_status.items() if items]
    return ", ".join(states) or "add some"


def _dropped(look: Look) -> str:
    """Items that no poll is spent on, and where copies earn those whose polls never pay."""
    money = look.status.money
    futile = f", {wording.count(money.futile)} futile" if money is not None and money.futile else ""
    return f"{wording.count(look.status.dropped)} dropped{futile}"


def ran_s(look: Look) -> float:
    """For how long an engine ran in the last hour, by its signs of life; a silence is no running."""
    if look.pulse is None:
        return 0.0
    end_s = look.time_s if look.state == "running" else look.pulse.time_s
    signs_s = np.append(look.course[:, 0], [look.pulse.started_s, end_s])
    steps_s = np.diff(np.sort(np.clip(signs_s, look.time_s - _HOUR_S, look.time_s)))
    return float(steps_s[steps_s <= _GAP_S].sum())


def _used(look: Look) -> float:
    """Requests of the last hour against those promised while an engine ran; NaN before it tells anything."""
    time_s, spent = ran_s(look), look.status.spent_last_hour.requests
    promised = look.status.budget_per_s * time_s
    return spent / promised if time_s >= _SHORTEST_S and promised > 0 else math.nan


def _spent(look: Look) -> str:
    """What was spent, and in which time."""
    spent, time_s = look.status.spent_last_hour, ran_s(look)
    over = f"{wording.duration(time_s)} of running so far"
    words = "the last hour" if not 0 < time_s < 0.98 * _HOUR_S else over
    before = "; the budget was larger before" if _used(look) > _WELL_ABOVE else ""
    return f"{format_count(spent.requests, 'request')}, {wording.size(spent.bytes)} in {words}{before}"


def _sampled(look: Look) -> str:
    status = look.status
    if status.looked_at >= status.items:
        return ""
    return f"Estimated from a sample of {wording.count(status.looked_at)} items."
