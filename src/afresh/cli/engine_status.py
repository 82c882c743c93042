"""``afresh status`` and ``afresh why``: how the mirror does, and why an item is polled as often as it is."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from afresh.cli.engine_project import ListJson, Sets, open_project
from afresh.cli.summary import number, print_summary
from afresh.values.units import format_duration

_VIEWS_SHOWN = 20

if TYPE_CHECKING:
    from afresh.engine.audits import Share
    from afresh.engine.seen import SeenItem
    from afresh.engine.status import Status
    from afresh.engine.why import Why


def status(sets: Sets = None, as_json: ListJson = False) -> None:
    """Freshness now and as audits found it, age, budget, hosts, problems."""
    with open_project(sets) as engine:
        found = engine.status()
    if as_json:
        typer.echo(json.dumps(_plain(asdict(found)), ensure_ascii=False))
        return
    print_summary("mirror", _status_rows(found))


def why(
    key: Annotated[str, typer.Argument(metavar="URL", help="The item.")],
    sets: Sets = None,
    as_json: ListJson = False,
) -> None:
    """An item's rate, frequency and worth, its polls, and what would change them."""
    with open_project(sets) as engine:
        found = engine.why(key)
    if as_json:
        typer.echo(json.dumps(_plain(asdict(found)), ensure_ascii=False))
        return
    print_summary(found.item.key, _why_rows(found))


def _status_rows(found: Status) -> list[tuple[str, str]]:
    states = ", ".join(f"{count:,} {name}" for name, count in found.by_status.items())
    spent = found.spent_last_hour
    rows = [
        ("items", f"{found.items:,} ({states or 'none'}); {found.copies:,} with a copy"),
        ("freshness, model", f"{_share(found.freshness)} now"),
        ("freshness, audited", _audited(found)),
        ("age", f"{format_duration(found.age_s)} on average"),
        ("due", f"{found.due:,} now, {found.failing:,} waiting after a failure"),
        ("dropped", f"{found.dropped:,} change too often to be worth a poll at this budget"),
        ("budget", f"{number(found.budget_per_s)}/s; {spent.requests:,} requests in the last hour"),
        ("hosts can take", f"{number(found.absorbed_per_s)}/s"),
        ("store", f"{found.file_bytes / 1e6:,.1f} MB; {found.leases} leases, {found.events} events waiting"),
    ]
    for group in found.groups:
        rests = f"; rests until {_moment(group.rests_until_s)}: {group.why}" if group.why else ""
        rows.append((f"  {group.group}", f"{group.items:,} items{rests}"))
    rows += [(f"  {one.source}", f"in trouble: {one.problem}") for one in found.troubles]
    rows += _money_rows(found)
    rows += [(f"  {view.item}", _view_words(view)) for view in found.views[:_VIEWS_SHOWN]]
    if len(found.views) > _VIEWS_SHOWN:
        rows.append(("", f"… {len(found.views) - _VIEWS_SHOWN:,} more with --json"))
    for worker in found.workers:
        role = ", plans for all" if worker.plans else ""
        words = f"seen {_moment(worker.seen_s)}, holds {worker.groups:,} hosts{role}"
        rows.append((f"  worker {worker.name}", words))
    if found.below_target:
        rows.append(("target", f"missed: audits say less than {found.target}"))
    return rows


def _money_rows(found: Status) -> list[tuple[str, str]]:
    money = found.money
    if money is None:
        return []
    spent = (
        f"{number(86400.0 * money.requests_per_s)} requests and {number(86400.0 * money.money_per_s)} a day"
    )
    words = f"{number(86400.0 * money.income_per_s)} a day net; {spent}, chosen by what pays"
    if money.price > 0:
        words += f"; one more unit of money would earn {number(money.price)} beyond itself"
    left = f"{money.futile:,} futile" + (f", {money.dropped:,} beyond the limit" if money.dropped else "")
    return [("income", words), ("left alone", f"{left}: a poll would cost more than it earns")]


def _view_words(view: SeenItem) -> str:
    """Stale or not, how often, how dear, what is next."""
    state: str = view.state
    if view.state in ("stale", "left alone"):
        state = f"stale for {format_duration(view.stale_for_s)}"
    parts = [state]
    if not math.isnan(view.rate_per_s):
        rates = [number(3600.0 * rate) for rate in (view.rate_per_s, view.low_per_s, view.high_per_s)]
        parts.append(f"{rates[0]} changes an hour ({rates[1]} … {rates[2]})")
    if not math.isnan(view.cost_s):
        parts.append(f"{format_duration(view.cost_s)} a refresh")
    following = {
        "stale": "next: as soon as the budget allows",
        "fresh": f"next: when it changes, about {_moment(view.next_s)}",
        "left alone": "next: never, it gains less than it costs",
        "unknown": f"next: {_moment(view.next_s)}",
    }
    parts.append(following[view.state])
    return "; ".join(parts) + (f"; {view.problem}" if view.problem else "")


def _audited(found: Status) -> str:
    if found.audited.n == 0:
        return "no audits yet"
    return f"{_share(found.audited)} by {found.audited.n:,} random polls"


def _share(share: Share) -> str:
    return f"{share.value:.3f} ({share.low:.3f} … {share.high:.3f})"


def _why_rows(found: Why) -> list[tuple[str, str]]:
    item = found.item
    per_day = [86400.0 * rate for rate in (found.rate_per_s, found.rate_low, found.rate_high)]
    rows = [
        ("rate", f"{number(per_day[0])} changes a day ({number(per_day[1])} … {number(per_day[2])})"),
        ("polled", f"every {format_duration(found.interval_s)}, as things are"),
        ("fresh now", f"{found.fresh_now:.3f}"),
        ("worth of a poll now", f"{number(found.marginal)}; items are polled at {number(found.threshold)}"),
        ("weight, cost", f"{number(item.weight)}, {number(item.cost)}"),
        *([("counts only", item.selector)] if item.selector else []),
        ("next poll", _moment(found.next_s)),
        (
            "polls",
            f"{item.polls:,}, of which {item.changes:,} found a change; {item.failures} failures in a row",
        ),
    ]
    for poll in found.polls[-5:]:
        what = "changed" if poll.changed else "first look" if poll.elapsed_s == 0 else "unchanged"
        rows.append(("  " + _moment(poll.time_s), what + (", an audit" if poll.audit else "")))
    return rows + [("because" if place == 0 else "", words) for place, words in enumerate(found.reasons)]


def _moment(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _plain(value: Any) -> Any:
    """JSON has no infinity: null instead."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
