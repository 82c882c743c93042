"""The numbers and texts of the dashboard, each declared once.

The Now page, its live updates and the metrics all read ``FIGURES``. A new number is one more ``Figure`` here,
one field of ``Status`` if nothing there shows it yet (the API then sends it too), and one row in
``docs/metrics.md`` if it is a metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from operator import attrgetter

from afresh.engine.reporting.pulse import (
    FIELDS,
    describe_unused_requests,
    describe_unused_seconds,
    used_requests,
    used_seconds,
)
from afresh.engine.scheduler.audits import ShareEstimate
from afresh.values.formatting import format_count
from afresh.web.snapshot_cache import StatusSnapshot
from afresh.web.text_formats import (
    format_bytes,
    format_number,
    format_rate,
    format_seconds,
    format_share,
    format_time,
    format_whole,
)

STATE_TITLES = {
    "running": "Engine running",
    "stopped": "Engine stopped",
    "lost": "Engine silent",
    "none": "No engine yet",
    "no store": "Store lost",
}
VIEWS_SHOWN = 100
LONGEST_GAP_S = 300.0  # if two pulses of an engine are further apart, it did not run in between
_MINUTE_S = 65.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the dashboard. ``value`` computes it from a snapshot, or is a path of attributes such as
    ``status.due``. ``name`` is the ``data-field`` of its text on the page and in live updates, and ``text``
    formats it; a figure without a name is not on the page. ``metric`` is its name in ``/metrics``, without
    the prefix ``afresh_``, and ``meaning`` is its help text there."""

    value: str | Callable[[StatusSnapshot], float]
    name: str = ""
    text: Callable[[float], str] = format_number
    metric: str = ""
    meaning: str = ""

    def read(self, snapshot: StatusSnapshot) -> float:
        value = attrgetter(self.value) if isinstance(self.value, str) else self.value
        return float(value(snapshot))


@dataclass(frozen=True, slots=True)
class Card:
    """A card of the Now page: a heading, the name of the figure that is shown large, and a line of detail, in
    which ``{name}`` stands for a text of ``page_texts``."""

    title: str
    figure: str
    detail: str


CARDS = (
    Card("Fresh now, by the model", "freshness", "{freshness-range}{uniform-needs}"),
    Card("Fresh when audited", "audited", "{audited-range}"),
    Card(
        "Age of the copies",
        "age",
        "time out of date, on average; content lag {content-lag}",
    ),
    Card("Polls per minute", "polls", "{changes} found a change"),
    Card("Budget used", "budget-share", "of {budget}{budget-detail}"),
    Card("Items", "items", "{items-detail}; {due} due, {dropped}"),
)


def per_minute(snapshot: StatusSnapshot, name: str) -> float:
    """Return the number of ``polls`` or ``changes`` (``name``) in the last minute, or NaN if no engine runs
    or it has just started."""
    course, column, polls = snapshot.course, FIELDS.index(name), FIELDS.index("polls")
    if snapshot.state != "running" or course.shape[0] < 2:
        return math.nan
    last = course[-1]
    recent = course[course[:, 0] >= last[0] - _MINUTE_S]
    recent = recent[recent[:, polls] <= last[polls]]  # The counts start again when an engine starts.
    span_s = float(last[0] - recent[0, 0])
    return 60.0 * float(last[column] - recent[0, column]) / span_s if span_s > 0 else math.nan


def budget_share(snapshot: StatusSnapshot) -> float:
    """Return the share of the budget that the engine has used since it started, or in its last run; NaN if it
    is too short to tell. If the budget limits seconds, they count instead of requests."""
    run, per_s = snapshot.status.run, snapshot.status.limits.seconds
    if run is None:
        return math.nan
    return used_requests(run) if math.isinf(per_s) else used_seconds(run, per_s)


def _finite(number: float) -> float:
    return number if math.isfinite(number) else 0.0


FIGURES = (
    Figure(
        "status.freshness.value",
        "freshness",
        format_share,
        "freshness_ratio",
        "Share of weight that is fresh, by the model.",
    ),
    Figure("status.freshness.low", metric="freshness_low_ratio", meaning="Lower end of its 95 % interval."),
    Figure("status.freshness.high", metric="freshness_high_ratio", meaning="Upper end of its 95 % interval."),
    Figure(
        "status.uniform_needs.value",
        "uniform-needs",
        lambda value: "" if math.isnan(value) else f"; uniform polling needs {value:.2f} times the requests",
        "uniform_needs_ratio",
        "How many times the requests uniform polling would need for the freshness of this plan.",
    ),
    Figure(
        "status.audited.value",
        "audited",
        lambda value: "none yet" if math.isnan(value) else format_share(value),
        "audited_freshness_ratio",
        "The same as random polls found it.",
    ),
    Figure("status.audited.n", metric="audits_used", meaning="How many random polls it is computed from."),
    Figure("status.age_s", "age", format_seconds, "age_seconds", "Expected weighted mean age of the copies."),
    Figure(
        "status.content_lag_s",
        "content-lag",
        format_seconds,
        "content_lag_seconds",
        "Expected content lag F(L;t): mean over the copies of weight · Σ time since each missed change.",
    ),
    Figure(partial(per_minute, name="polls"), "polls"),
    Figure(partial(per_minute, name="changes"), "changes"),
    Figure("status.budget_per_s", "budget", format_rate, "budget_requests_per_second", "The budget."),
    Figure(budget_share, "budget-share", format_share),
    Figure(
        lambda snapshot: (
            snapshot.status.limits.seconds if math.isfinite(snapshot.status.limits.seconds) else 0.0
        ),
        metric="budget_seconds_per_second",
        meaning="Seconds of requests and refreshes that the budget allows per second; 0 if it limits none.",
    ),
    Figure(
        "status.spent_last_hour.requests", metric="requests_last_hour", meaning="Requests in the last hour."
    ),
    Figure("status.items", "items", format_whole),
    Figure("status.due", "due", format_whole, "due_items", "Items that are due and not yet polled."),
    Figure("lag_s", metric="lag_seconds", meaning="How long the longest due item has waited."),
    Figure(
        "status.failing",
        "due-detail",
        lambda value: f"{format_whole(value)} waiting after a failure",
        "failing_items",
        "Items that wait after a failure.",
    ),
    Figure(
        "status.dropped",
        metric="dropped_items",
        meaning="Items given up because they change too fast for this budget.",
    ),
    Figure("status.file_bytes", "store", format_bytes, "store_bytes", "Size of the store."),
    Figure("status.events", metric="events_waiting", meaning="Changes not yet told to hooks."),
    Figure(
        "status.events_given_up",
        metric="events_given_up",
        meaning="Changes that hooks could not be told, and that were given up.",
    ),
    Figure(
        lambda snapshot: sum(one.attempts > 0 for one in snapshot.status.notify_failures),
        metric="notify_failing",
        meaning="Addresses of notifications whose last message could not be sent.",
    ),
    Figure(
        lambda snapshot: sum(one.given_up for one in snapshot.status.notify_failures),
        metric="notify_given_up",
        meaning="Changes of which people were not told, because the messages were given up.",
    ),
    Figure("status.notices", metric="notices_open", meaning="Notices not yet answered by a poll."),
)


def page_texts(snapshot: StatusSnapshot) -> dict[str, str]:
    """Return every text of the Now page that live updates change, by the name of its ``data-field``."""
    status = snapshot.status
    is_sampled, by_status = status.looked_at < status.items, status.by_status.items()
    figures = {figure.name: figure.text(figure.read(snapshot)) for figure in FIGURES if figure.name}
    return figures | {
        "state": snapshot.state,
        "state-words": STATE_TITLES[snapshot.state],
        "state-detail": _describe_state(snapshot),
        "freshness-range": "seen, not estimated"
        if is_all_observed(snapshot)
        else _describe_range(status.freshness),
        "audited": figures["audited"] if status.audited.n or not is_all_observed(snapshot) else "not needed",
        "audited-range": _describe_audits(snapshot),
        "items-detail": ", ".join(f"{format_whole(items)} {name}" for name, items in by_status if items)
        or "add some",
        "dropped": _describe_dropped(snapshot),
        "budget": _describe_budget(snapshot),
        "budget-detail": _describe_spending(snapshot),
        "store-detail": f"{format_count(status.events, 'event')} and"
        f" {format_count(status.notices, 'notice')} waiting",
        "sampled": f"Estimated from a sample of {format_whole(status.looked_at)} items."
        if is_sampled
        else "",
        "trouble": _hash_failures(snapshot),
        "last-change": str(snapshot.last_change),
        "item-views": _hash_views(snapshot),
        **{f"view-{at}": format_share(view.fresh) for at, view in enumerate(status.item_views[:VIEWS_SHOWN])},
        "as-of": format_time(snapshot.time_s),
    }


def _describe_state(snapshot: StatusSnapshot) -> str:
    pulse = snapshot.pulse
    if snapshot.problem:
        return f"{snapshot.problem}. Trying again; the numbers are old."
    if pulse is None:
        return f"Start one with '{snapshot.run_command}'."
    if snapshot.state == "stopped":
        return f"It stopped at {format_time(pulse.time_s)}. Nothing is polled until it runs again."
    if snapshot.state == "lost":
        return f"No sign of life since {format_time(pulse.time_s)}: it was killed, or lost its store."
    return pulse.trouble or f"since {format_time(pulse.started_s)}"


def _describe_range(share: ShareEstimate) -> str:
    return f"{format_share(share.low)} … {format_share(share.high)} with 95 % probability"


def is_all_observed(snapshot: StatusSnapshot) -> bool:
    """Return whether the staleness of every active item is observed, so that none is polled at random."""
    status = snapshot.status
    return 0 < status.by_status.get("active", 0) <= len(status.views)


def _describe_audits(snapshot: StatusSnapshot) -> str:
    audited = snapshot.status.audited
    if not audited.n and is_all_observed(snapshot):
        return "staleness is observed, so that no random polls are made"
    if not audited.n:
        return "random polls will measure it"
    polls = format_count(audited.n, "random poll")
    if audited.high <= audited.value:  # the end of the interval is the estimate
        bound = f"{format_share(audited.low)} or more with 95 % probability"
        return f"{bound}; the last {polls} found no change"
    return f"{_describe_range(audited)}; mean over the last {polls}, not of this moment"


def _describe_dropped(snapshot: StatusSnapshot) -> str:
    """Describe how many items are dropped and, if copies earn money, how many are futile."""
    money = snapshot.status.money
    futile = f", {format_whole(money.futile)} futile" if money is not None and money.futile else ""
    return f"{format_whole(snapshot.status.dropped)} given up{futile}"


def _describe_budget(snapshot: StatusSnapshot) -> str:
    """Describe the budget: the seconds of refreshing, if it limits them, or else the requests."""
    per_s = snapshot.status.limits.seconds
    if math.isinf(per_s):
        return format_rate(snapshot.status.budget_per_s)
    return f"{format_number(3600.0 * per_s)} s of requests and refreshes an hour"


def _describe_spending(snapshot: StatusSnapshot) -> str:
    """Say which run the share of the budget is about, why the rest was not used, and the last hour."""
    spent, run, per_s = snapshot.status.spent_last_hour, snapshot.status.run, snapshot.status.limits.seconds
    has_seconds = math.isfinite(per_s)
    words = format_count(spent.requests, "request")
    lately = f"{format_number(spent.seconds)} s" if has_seconds else f"{words}, {format_bytes(spent.bytes)}"
    if run is None or math.isnan(budget_share(snapshot)):
        return f"; {lately} in the last hour"
    which = " by this run" if snapshot.state == "running" else " by the last run"
    if not has_seconds and run.budget_per_s != snapshot.status.budget_per_s:
        which += f", which had {format_rate(run.budget_per_s)}"
    unused = describe_unused_seconds(run, per_s) if has_seconds else describe_unused_requests(run)
    return f"{which}{f'; not used: {unused}' if unused else ''}; {lately} in the last hour"


def _hash_failures(snapshot: StatusSnapshot) -> str:
    """Return a hash that changes when other hosts or items fail, or if other settings are proposed. The page
    then reloads their table."""
    items = [(item.key, item.failures, item.problem) for item in snapshot.failing]
    hosts = [(name, one.group, one.failures, one.why) for name, one in snapshot.backoffs]
    hooks = [(one.id, one.attempts, one.problem) for one in snapshot.status.hook_failures]
    told = [hooks, [(one.name, one.attempts, one.given_up) for one in snapshot.status.notify_failures]]
    return blake2b(repr((items, hosts, snapshot.status.noise, told)).encode(), digest_size=6).hexdigest()


def _hash_views(snapshot: StatusSnapshot) -> str:
    """Return a hash that changes when item views are added, removed or found to have changed. The page then
    reloads their table; only their freshness changes without a reload."""
    views = [(view.name, view.items, view.unknown, view.changed_s) for view in snapshot.status.item_views]
    return blake2b(repr(views).encode(), digest_size=6).hexdigest()
