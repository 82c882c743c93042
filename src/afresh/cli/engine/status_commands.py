"""``afresh status`` reports how fresh the copies are; ``afresh why`` explains how often an item is polled."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from afresh.cli.engine.item_view_lines import describe_item_view, format_rates, view_why_rows
from afresh.cli.engine.lag_lines import lag_rows
from afresh.cli.engine.project import OfSource, SetOptions, known_source, open_project
from afresh.cli.options import PrintJson
from afresh.cli.summary import format_number, print_json, print_report
from afresh.values.formatting import format_bytes, format_count, format_moment
from afresh.values.units import format_duration, format_rate

if TYPE_CHECKING:
    from afresh.engine.reporting.group_status import GroupStatus
    from afresh.engine.reporting.item_view_status import ViewWhy
    from afresh.engine.reporting.status import SearchStatus, Status
    from afresh.engine.reporting.watched_items import WatchedItem
    from afresh.engine.reporting.why import Why
    from afresh.engine.scheduler.audits import ShareEstimate

_VIEWS_SHOWN = 20
_NO_DELAY = "no host limit"
_BEFORE_ALL = 1e300  # items that are polled before all others have at least this poll value


def status(sets: SetOptions = None, as_json: PrintJson = False) -> None:
    """Show the freshness (by the model and by audits), the age, the budget, the hosts and the problems."""
    with open_project(sets, reading=True) as engine:
        found, set_per_s = engine.status(), engine.current().budget.requests
    if as_json:
        print_json(asdict(found))
    else:
        print_report(Path().resolve().name, status_rows(found, set_per_s))


def why(
    key: Annotated[str, Argument(metavar="URL", help="The item, or the name of a view.")],
    source: OfSource = None,
    sets: SetOptions = None,
    as_json: PrintJson = False,
) -> None:
    """Show an item's change rate, how often it is polled, its poll value, its last polls, and the reasons."""
    with open_project(sets, reading=True) as engine:
        if engine.settings.views.view(key) is not None and not engine.store.items.find([key]):
            view = engine.why_view(key)
            found: Why | ViewWhy = view
            title, rows = f"view {view.view.name}", view_why_rows(view)
        else:
            item = engine.why(key, source=known_source(engine, source))
            found, title, rows = item, item.item.key, why_rows(item)
    if as_json:
        print_json(asdict(found))
    else:
        print_report(title, rows)


def status_rows(found: Status, set_per_s: float) -> list[tuple[str, str]]:
    """Return a tuple (name, text) per line of ``afresh status``; ``set_per_s`` is the settings' budget."""
    states = ", ".join(f"{count:,} {name}" for name, count in found.by_status.items())
    waiting = f"{format_count(found.leases, 'lease')}, {format_count(found.events, 'event')} waiting"
    # The copies may be kept by whoever polls; without any poll the age is unknown.
    copied, none, limit_per_s = not math.isnan(found.age_s), "no copies yet", found.absorbed_per_s
    rows = [
        ("engine", _describe_run(found)),
        ("items", f"{found.items:,} ({states or 'none'}); {found.copies:,} with a copy"),
        ("freshness, model", f"{_format_share(found.freshness)} now" if copied else none),
        ("freshness, audited", _describe_audits(found)),
        ("uniform needs", _describe_savings(found)),
        ("age", f"{format_duration(found.age_s)} on average" if copied else none),
        ("content lag", f"{format_duration(found.content_lag_s)}; 0 is best" if copied else none),
        ("due", f"{found.due:,} now, {found.failing:,} waiting after a failure"),
        ("given up", f"{format_count(found.dropped, 'item')}: changes too fast for this budget"),
        ("budget", _describe_budget(found, set_per_s)),
        *_other_limits(found),
        ("hosts can take", _NO_DELAY if math.isinf(limit_per_s) else f"{format_number(limit_per_s)}/s"),
        ("store", f"{found.file_bytes / 1e6:,.1f} MB{_describe_room(found)}; {waiting}"),
    ]
    for group in found.groups:
        rests = f"; rests until {format_moment(group.rests_until_s)}: {group.why}" if group.why else ""
        pace = (
            "" if math.isinf(group.pace_per_s) else f"; takes {format_number(group.pace_per_s)}/s (learned)"
        )
        quota = f"; {_describe_quota(group)}" if group.quota else ""
        rows.append((f"  {group.group}", f"{format_count(group.items, 'item')}{pace}{quota}{rests}"))
    for index, problem in enumerate(found.problems):
        text = f"{format_count(problem.items, 'item')}, such as {problem.example}: {problem.words}"
        rows.append(("" if index else "problems", text))
    rows += [(f"  {one.source}", f"in trouble: {one.problem}") for one in found.troubles]
    rows += _hook_rows(found)
    rows += _notify_rows(found)
    rows += [(f"  {one.source}", one.words) for one in found.found_pages]
    rows += [(f"  noise? {hint.source}", hint.words) for hint in found.noise]
    rows += [(f"  {one.source}", _describe_search(one)) for one in found.searches]
    rows += [
        (f"  {name}", f"outside its windows until {format_moment(opens_s)}")
        for name, opens_s in found.closed.items()
    ]
    rows += _money_rows(found)
    rows += lag_rows(found.target_lags)
    rows += _view_rows(found)
    item_views = found.item_views[:_VIEWS_SHOWN]
    rows += [(f"  view {view.name}", describe_item_view(view)) for view in item_views]
    if len(found.item_views) > _VIEWS_SHOWN:
        rows.append(("", f"… {len(found.item_views) - _VIEWS_SHOWN:,} more views with --json"))
    for worker in found.workers:
        role = ", plans for all" if worker.plans else ""
        words = f"seen {format_moment(worker.seen_s)}, holds {format_count(worker.groups, 'host')}{role}"
        rows.append((f"  worker {worker.name}", words))
    if found.below_target:
        rows.append(("target", f"missed: audits measure less than {found.target}"))
    if found.above_content_lag_target and found.content_lag_target_s is not None:
        rows.append(
            ("target", f"missed: the content lag is more than {format_duration(found.content_lag_target_s)}")
        )
    return rows


def _hook_rows(found: Status) -> list[tuple[str, str]]:
    """Return the lines about changes that hooks could not be told."""
    if not found.hook_failures:
        return []
    first = found.hook_failures[0]
    lost = f"{format_count(found.events_given_up, 'change')} given up; " if found.events_given_up else ""
    words = f"{lost}{first.kind} {first.item} failed {format_count(first.attempts, 'time')}: {first.problem}"
    return [("hooks", f"{words}; see 'afresh hooks'")]


def _notify_rows(found: Status) -> list[tuple[str, str]]:
    """Return a line for each address that could not be told of changes."""
    rows = []
    for one in found.notify_failures:
        parts = []
        if one.attempts:
            parts.append(f"{one.address} failed {format_count(one.attempts, 'time')}: {one.problem}")
        if one.given_up:
            again = f"'afresh consumers reset {one.name} --to {one.since}' and a new run tell them"
            parts.append(f"{format_count(one.given_up, 'change')} given up: {again}")
        rows.append((f"  notify {one.source}", "; ".join(parts)))
    return rows


def _describe_quota(group: GroupStatus) -> str:
    """Describe how much of a quota is used, and until when."""
    until = f" until {format_moment(group.quota_until_s)}" if math.isfinite(group.quota_until_s) else ""
    return f"{group.quota_used:,} of {group.quota:,} requests of its quota used{until}"


def _describe_room(found: Status) -> str:
    """Describe how much of ``max_size`` is used, and what is refused if this is nearly all of it."""
    share = found.used_bytes / found.max_bytes
    used = f", {share:.1%} of max_size = {format_bytes(found.max_bytes)} in use"
    if found.is_store_full:
        return f"{used}: the store is full, and copies of new items are refused; remove items, or allow more"
    return used


def _describe_savings(found: Status) -> str:
    """Describe by what factor uniform polling needs more requests for the same freshness."""
    needs = found.uniform_needs
    if math.isnan(needs.value):
        return "not known yet"
    span = "" if math.isnan(needs.low) else f" ({needs.low:.2f}–{needs.high:.2f})"
    return f"{needs.value:.2f}{span} times the requests for this plan's freshness, by the model"


def _describe_run(found: Status) -> str:
    """Describe whether an engine runs, and how many polls it made; if none runs, describe the last run."""
    run = found.run
    if run is None:
        return "none has run yet: 'afresh run'"
    counts = f"{format_count(run.polls, 'poll')}, {format_count(run.changes, 'change')}"
    counts += f", {run.failures:,} failed"
    state = run.state(found.time_s)
    if state == "running":
        return f"running since {format_moment(run.started_s)}: {counts}"
    if state == "stopped":
        return f"stopped {format_moment(run.time_s)} after {counts}"
    return f"silent since {format_moment(run.time_s)}: it was killed, or cannot reach the store; {counts}"


def _describe_budget(found: Status, set_per_s: float) -> str:
    """Describe the budget that applies, and how much of it was used. If the settings and the running (or
    last) engine have different budgets, name both."""
    from afresh.engine.reporting.pulse import describe_use_of_requests, used_requests

    words, run = format_rate(found.budget_per_s), found.run
    own = None if run is None else run.budget_per_s
    if run is not None and own is not None:
        running = run.state(found.time_s) == "running"
        if own != set_per_s:
            where, per_s = ("the settings say", set_per_s) if running else ("the last run had", own)
            words += f" ({where} {format_rate(per_s)})"
        if not math.isnan(used_requests(run)):
            words += f"; {describe_use_of_requests(run, 'this' if running else 'the last')}"
    return f"{words}; {format_count(found.spent_last_hour.requests, 'request')} in the last hour"


def _other_limits(found: Status) -> list[tuple[str, str]]:
    """Return a tuple (name, text) for each limit on bytes, seconds or money: its use in the last hour."""
    spent = found.spent_last_hour
    parts = (
        ("bytes", found.limits.bytes, spent.bytes, f"{spent.bytes / 1e6:,.2f} MB"),
        ("seconds", found.limits.seconds, spent.seconds, f"{format_number(spent.seconds)} s"),
        ("money", found.limits.money, spent.money, format_number(spent.money)),
    )
    rows = [
        (f"  {name}", f"{words} in the last hour, {used / (3600.0 * limit):.0%} of the limit")
        for name, limit, used, words in parts
        if math.isfinite(limit)
    ]
    return rows + _seconds_of_run(found)


def _seconds_of_run(found: Status) -> list[tuple[str, str]]:
    """Return a line about the seconds that the run used and was allowed, and why the rest was not used."""
    from afresh.engine.reporting.pulse import describe_use_of_seconds

    run, share = found.run, found.limits.seconds
    if run is None or math.isinf(share) or run.time_s <= run.started_s:
        return []
    allowed_s = share * (run.time_s - run.started_s)
    which = "this" if run.state(found.time_s) == "running" else "the last"
    words = f"{format_number(run.seconds)} s of {format_number(allowed_s)} s allowed"
    return [("", f"{words}: {describe_use_of_seconds(run, share, which)}")]


def _money_rows(found: Status) -> list[tuple[str, str]]:
    money = found.money
    if money is None:
        return []
    per_day = (money.requests_per_s, money.money_per_s, money.income_per_s)
    requests, spent, income = (format_number(86400.0 * per_s) for per_s in per_day)
    words = f"{income} a day net; {requests} requests and {spent} a day, chosen by what pays"
    if money.price > 0:
        words += f"; one more unit of money would earn {format_number(money.price)} beyond itself"
    left = f"{money.futile:,} futile" + (f", {money.dropped:,} beyond the limit" if money.dropped else "")
    return [("income", words), ("left alone", f"{left}: a poll would cost more than it earns")]


def _describe_search(search: SearchStatus) -> str:
    """Describe how many records a search source has reached, and how many its server has."""
    reached = f"{search.seen:,} of {format_count(search.records, 'record')} reached"
    queries = f"{format_count(search.queries, 'query')} sent {format_count(search.sent, 'time')}"
    look_ups = format_count(search.look_ups, "look-up")
    parts = [f"{reached}, {search.by_queries:,} by queries", f"{queries}, {look_ups}"]
    for one in search.scales:
        of = f" by {one.attribute}" if one.attribute else ""
        span = f"{format_number(one.low)} … {format_number(one.high)}"
        parts.append(f"the server has {format_number(one.times)} times as many{of} ({span})")
    return "; ".join(parts)


def _view_rows(found: Status) -> list[tuple[str, str]]:
    """Return a line for each view. Without a running engine, the views are as they were seen last."""
    run = found.run
    runs = run is not None and run.state(found.time_s) == "running"
    rows = [(f"  {view.item}", describe_view(view, runs=runs)) for view in found.views[:_VIEWS_SHOWN]]
    if rows and run is not None and not runs:
        words = f"as they were seen {format_moment(run.time_s)}: nobody looks at them until an engine runs"
        rows.insert(0, ("views", words))
    if len(found.views) > _VIEWS_SHOWN:
        rows.append(("", f"… {len(found.views) - _VIEWS_SHOWN:,} more with --json"))
    return rows


def describe_view(view: WatchedItem, *, runs: bool = True) -> str:
    """Describe whether a view is stale, its change rate, the cost of a refresh, and the next refresh.
    ``runs`` says whether an engine runs."""
    from afresh.engine.reporting.watched_items import describe_given_up

    state: str = view.state
    if view.state in ("stale", "left alone"):
        state = f"stale for {format_duration(view.stale_for_s)}"
    parts = [state]
    if not math.isnan(view.rate_per_s):
        rates = [format_number(3600.0 * rate) for rate in (view.rate_per_s, view.low_per_s, view.high_per_s)]
        parts.append(f"{rates[0]} changes an hour ({rates[1]} … {rates[2]})")
    if not math.isnan(view.cost_s):
        parts.append(f"{format_duration(view.cost_s)} a refresh")
    expected = f", about {format_moment(view.next_s)}" if math.isfinite(view.next_s) else ""
    turn = f"after {format_count(view.ahead, 'other view')}" if view.ahead else "as soon as the budget allows"
    following = {
        "stale": f"next: {turn if runs else 'when an engine runs'}",
        "fresh": f"next: when {f'it changes{expected}' if runs else 'an engine runs and it changes'}",
        "left alone": describe_given_up(view),
        "unknown": f"next: {format_moment(view.next_s)}",
    }
    parts.append(following[view.state])
    if not math.isnan(view.target_lag_s):
        parts.append(f"target lag {format_duration(view.target_lag_s)}{_describe_shortage(view)}")
    if math.isfinite(view.max_interval_s):
        parts.append(f"refreshed at least every {format_duration(view.max_interval_s)} (max_interval)")
    parts.append(f"objective {view.objective}")
    return "; ".join(parts) + (f"; {view.problem}" if view.problem else "")


def _describe_shortage(view: WatchedItem) -> str:
    if view.missing_s <= 0:
        return ""
    if math.isinf(view.missing_s):
        return ", which no budget keeps"
    return f", for which {format_number(view.missing_s)} s of refreshing an hour are missing"


def _describe_audits(found: Status) -> str:
    if found.audited.n == 0 and 0 < found.by_status.get("active", 0) <= len(found.views):
        return "not needed: staleness is observed, so that no random polls are made"
    if found.audited.n == 0:
        return "no audits yet"
    return describe_audited(found.audited)


def describe_audited(audited: ShareEstimate) -> str:
    """Describe the freshness that random polls measured, with its interval."""
    polls = format_count(audited.n, "random poll")
    if audited.high <= audited.value:  # the end of the interval is the estimate
        return f"{audited.low:.3f} or more by {polls}, which found no change"
    if audited.low >= audited.value:
        return f"{audited.high:.3f} or less by {polls}, which all found a change"
    return f"{_format_share(audited)} by {polls}"


def _format_share(share: ShareEstimate) -> str:
    return f"{share.value:.3f} ({share.low:.3f} … {share.high:.3f})"


def why_rows(found: Why) -> list[tuple[str, str]]:
    """Return a tuple (name, text) for each line of ``afresh why`` about one item."""
    item = found.item
    polls = f"{item.polls:,}, {item.changes:,} of which found a change" if item.polls else "none yet"
    rows = [
        *([("comes from", found.address)] if found.address else []),
        ("rate", _describe_rate(found)),
        ("polled", _describe_frequency(found)),
        ("fresh now", f"{found.fresh_now:.3f}" if item.polled_s is not None else "no copy yet"),
        ("priority", _describe_poll_value(found)),
        ("weight, cost", f"{format_number(item.weight)}, {_describe_cost(found)}"),
        *([("counts only", item.selector)] if item.selector else []),
        ("next poll", _describe_next_poll(found)),
        ("polls", polls),
    ]
    for poll in found.polls[-5:]:
        what = "changed" if poll.changed else "first look" if poll.elapsed_s <= 0 else "unchanged"
        rows.append(("  " + format_moment(poll.time_s), what + (", an audit" if poll.audit else "")))
    return rows + [("" if index else "because", text) for index, text in enumerate(found.reasons)]


def _describe_rate(found: Why) -> str:
    """Describe an item's median rate and its 90 % interval, in the shortest unit that gives a rate ≥ 1."""
    words = format_rates(found.rate_per_s, found.rate_low, found.rate_high)
    if found.seen is not None or found.item.changes:
        return words
    compared = any(poll.elapsed_s > 0 for poll in found.polls)
    return f"{'no change seen yet' if compared else 'not known yet'}, thought to be {words}"


def _describe_frequency(found: Why) -> str:
    if found.item.status != "active":
        return f"not while it is {found.item.status}"
    if found.item.polled_s is None:
        return "not planned yet: the first copy comes before all others"
    gaps_s = [poll.elapsed_s for poll in found.polls if poll.elapsed_s > 0]
    late = f"; recently: every {format_duration(sum(gaps_s) / len(gaps_s))}" if gaps_s else ""
    if found.waits_for_cursor:
        return f"when its cursor moves{late}"
    if found.seen is not None and found.seen.state in ("fresh", "stale"):
        return f"when it is stale and its turn comes{late}"
    if math.isinf(found.interval_s):
        return f"planned: never, except for reviews{late}"
    return f"planned: every {format_duration(found.interval_s)}{late}"


def _describe_poll_value(found: Why) -> str:
    """Describe the priority of an item: its poll value, compared with the shadow price at which items are
    polled; for a stale view, how many others are refreshed before it."""
    if found.seen is not None and found.seen.state == "fresh":
        return "none: it is fresh"
    if found.marginal == -math.inf:
        return "none: it may not be polled now"
    if found.marginal >= _BEFORE_ALL:
        why = "it has no copy yet" if math.isinf(found.marginal) else "it was asked for, or is overdue"
        return f"before all others: {why}"
    if found.seen is not None and found.seen.state == "stale":
        ahead = found.seen.ahead
        return f"{format_count(ahead, 'other view')} first" if ahead else "before all other views"
    if found.threshold <= 0:
        return "not known yet: nothing was polled to compare with"
    turn = ": its turn has come" if found.marginal >= found.threshold else ""
    return (
        f"{format_number(found.marginal / found.threshold)} times what a poll must gain to be made now{turn}"
    )


def _describe_cost(found: Why) -> str:
    """Describe the cost of a poll; for a view this is the duration of its refreshes."""
    if found.seen is None or math.isnan(found.seen.cost_s):
        return format_number(found.item.cost)
    return f"{format_duration(found.seen.cost_s)} a refresh"


def _describe_next_poll(found: Why) -> str:
    if found.item.status != "active":
        return f"none while it is {found.item.status}"
    if found.waits_for_cursor and found.next_s > found.time_s:
        overdue = f", at the latest {format_moment(found.next_s)}" if math.isfinite(found.next_s) else ""
        return f"when its cursor moves{overdue}"
    if not math.isfinite(found.next_s):
        return "never, at this budget"
    if found.next_s <= found.time_s:
        if found.seen is not None:
            return "when its turn comes"
        # Its time has come by what was planned after its last poll, but by now others gain more.
        others_first = not found.item.failures and -math.inf < found.marginal < found.threshold
        return "now, after those that gain more" if others_first else "now"
    return f"in {format_duration(found.next_s - found.time_s)}, {format_moment(found.next_s)}"
