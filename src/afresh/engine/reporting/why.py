"""Explains why an item is polled as often as it is: rate, polling interval, poll value and other reasons."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass

import numpy as np

from afresh.engine.reporting.item_snapshot import (
    ItemSnapshot,
    PastPoll,
    is_chosen_by_source,
    last_polls,
    mean_interval_s,
    take_snapshot,
)
from afresh.engine.reporting.noise_hints import describe_part, shared_part_of
from afresh.engine.reporting.rate_words import (
    LIMIT_DECIDES,
    TOO_OFTEN,
    describe_jump,
    expected_rate,
    explain_difference,
)
from afresh.engine.reporting.watched_items import WatchedItem, describe_given_up
from afresh.engine.scheduler.item_rows import REQUESTED_S
from afresh.engine.scheduler.reschedule import earliest_s
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import Settings
from afresh.sources.http.validators import FINAL_ADDRESS
from afresh.stores.store import Store
from afresh.values.errors import UnknownItemError, did_you_mean
from afresh.values.formatting import format_moment
from afresh.values.items import Item, ItemQuery
from afresh.values.units import format_duration

_KEYS_LOOKED_AT = 1000
_LISTED_ALONE = ("sql", "view")  # kinds of sources that list all their items
_TOGETHER = "its source requests many records at once: first the request with the highest total poll value"
_REVIEWED = "its next poll is a review: it may have become slower since it was dropped"
_TEACHES = "nevertheless it is polled now: little is known of it, and a poll tells how often it changes"
_SETTLED = (
    "its cursor has not moved since its last poll, and so far every change moved it: "
    "it is polled when the cursor moves, and for audits"
)
_HEAVIEST, _NEARLY = 1e9, 1.001  # the largest factor of a weight that is tried, and its relative precision


@dataclass(frozen=True, slots=True)
class Why:
    """Everything that ``afresh why`` shows, as of ``time_s``. Rates are per second, times in seconds.
    ``rate_per_s`` is today's rate by the item's own polls: their posterior mean, with its 90 % interval.
    ``jumped_s`` is the time of the first poll after the last sharp change of the rate, NaN without one, and
    ``period_s`` the time for which it has been polled since, or in all;
    ``interval_s`` is the polling interval, infinite if the item is dropped. ``marginal`` is the poll value
    (−∞ if the item may not be polled now, +∞ without a copy), ``threshold`` the shadow price, ``next_s`` the
    time of the next poll. ``reasons`` are sentences. ``seen`` is the observed staleness, if there is one.
    ``address`` is where redirects led when the copy was fetched; empty if they led nowhere else.
    ``waits_for_cursor`` is True if the row is left alone until its cursor, which proved right, moves.
    """

    item: Item
    time_s: float
    rate_per_s: float
    rate_low: float
    rate_high: float
    interval_s: float
    fresh_now: float
    marginal: float
    threshold: float
    next_s: float
    polls: tuple[PastPoll, ...]
    reasons: tuple[str, ...]
    seen: WatchedItem | None = None
    jumped_s: float = math.nan
    period_s: float = 0.0
    waits_for_cursor: bool = False
    address: str = ""


def explain_key(store: Store, settings: Settings, key: str, source: str | None, now_s: float) -> Why:
    """Explain the item ``key``, of ``source`` if it is given; raise ``UnknownItemError`` if there is none."""
    item = store.items.get(key, source)
    if item is None:
        raise unknown_item(store, settings, key)
    return explain(store, take_snapshot(store, settings, [item], now_s), item)


def final_address(store: Store, item: Item) -> str:
    """Return the address that the copy of an item came from, after redirects; empty if it is the item's."""
    return store.items.validators(item.id).get(FINAL_ADDRESS, "")


def explain(store: Store, snapshot: ItemSnapshot, item: Item) -> Why:
    policy, now_s = snapshot.scheduler.policy, snapshot.time_s
    row = policy.item_rows.row(item.id)
    if row is None:
        raise UnknownItemError(f"there is no item {item.key!r} any more: it was removed just now")
    rate = snapshot.rates[item.id]
    # Before any poll value is computed: that makes room for new bins of shocks and forgets the oldest.
    fresh_now = float(snapshot.scheduler.forecast.fresh(now_s)[row])
    seen = snapshot.seen.get((item.source, item.key))
    waits_for_cursor = bool(policy.is_settled()[row]) and item.status == "active" and not item.failures
    polls = last_polls(snapshot.polls_of(item))
    interval_s = _interval_s(snapshot, item, row, polls, waits_for_cursor=waits_for_cursor)
    leased_until_s = store.leases.until_s(item.id, now_s)
    reasons = _all_reasons(store, snapshot, item, row, interval_s, leased_until_s, waits_for_cursor)
    next_s = _next_s(item, policy, row, interval_s, now_s) if seen is None else seen.next_s
    if waits_for_cursor:
        next_s = _latest_s(item)
    opens_s = _next_opening_s(snapshot.settings, item, max(next_s, now_s))
    if opens_s > max(next_s, now_s):
        next_s = opens_s
        reasons.append(f"its source is polled only in its windows; the next opens {format_moment(opens_s)}")
    return Why(
        item=item,
        time_s=now_s,
        rate_per_s=rate.rate,
        rate_low=rate.low,
        rate_high=rate.high,
        jumped_s=rate.jumped_s,
        period_s=rate.period_s,
        interval_s=interval_s,
        fresh_now=fresh_now,
        marginal=float(policy.poll_values(now_s)[row]),
        threshold=policy.shadow_price,
        next_s=next_s,
        polls=polls,
        reasons=tuple(reasons),
        seen=seen,
        waits_for_cursor=waits_for_cursor,
        address=final_address(store, item),
    )


def _interval_s(
    snapshot: ItemSnapshot, item: Item, row: int, polls: tuple[PastPoll, ...], *, waits_for_cursor: bool
) -> float:
    """Return the polling interval of an item. If its source chooses what is polled, it is the mean one of the
    past; it is infinite for an item that waits for its cursor, and for a view that is left alone."""
    if is_chosen_by_source(snapshot.settings, item):
        return mean_interval_s(polls)
    seen = snapshot.seen.get((item.source, item.key))
    if waits_for_cursor or (seen is not None and seen.state == "left alone"):
        return math.inf
    return float(snapshot.scheduler.policy.intervals_s(np.array([row]))[0])


def _all_reasons(
    store: Store,
    snapshot: ItemSnapshot,
    item: Item,
    row: int,
    interval_s: float,
    leased_until_s: float | None,
    waits_for_cursor: bool,
) -> list[str]:
    """Return all sentences about an item, except that of the windows of its source."""
    policy, settings, now_s = snapshot.scheduler.policy, snapshot.settings, snapshot.time_s
    seen = snapshot.seen.get((item.source, item.key))
    least_s = float(policy.item_rows.min_interval_s[row])
    held = _holding(item, least_s, now_s, due=False)
    if is_chosen_by_source(settings, item):
        reasons = [*held, _TOGETHER]
    elif seen is not None:
        reasons = _seen_reasons(seen, item, least_s, now_s)
    else:
        due = leased_until_s is None
        reasons = (
            [_SETTLED, *held] if waits_for_cursor else _reasons(item, policy, row, interval_s, now_s, due=due)
        )
        rate = snapshot.rates[item.id]
        reasons = explain_difference([*reasons, *describe_jump(rate)], rate, expected_rate(policy, row))
        part = shared_part_of(store, item)
        reasons += [] if part is None else [describe_part(part)]
    reasons += _weighing_views(settings, item)
    if leased_until_s is not None:
        until = format_moment(leased_until_s)
        reasons.append(f"leased by a worker until {until}: nobody else polls it before")
    return reasons


def _latest_s(item: Item) -> float:
    """Return when an item that waits for its cursor is polled at the latest, unless somebody asked for it."""
    polled_s = math.nan if item.polled_s is None else item.polled_s
    return item.due_s if item.due_s < polled_s - REQUESTED_S / 2 else polled_s + item.max_interval_s


def _next_opening_s(settings: Settings, item: Item, soonest_s: float) -> float:
    """Return when the windows of an item's source are open, at ``soonest_s`` or after it."""
    table = settings.source(item.source)
    if table is None or not math.isfinite(soonest_s):
        return soonest_s
    return table.settings.open_windows.next_opening_s(soonest_s)


def unknown_item(store: Store, settings: Settings, key: str) -> UnknownItemError:
    """Return the error that there is no item ``key``, with a similar key or with how to add one."""
    known = [item.key for item in store.items.page(ItemQuery(), _KEYS_LOOKED_AT).items]
    known += [view.name for view in settings.views.tables]
    near = did_you_mean(key.replace('"', ""), known)
    if near == ".":
        kinds = {table.settings.kind for table in settings.sources}
        listed = kinds and kinds.issubset(_LISTED_ALONE)
        near = ": rows and views are found by 'afresh run'" if listed else ": 'afresh add' makes one"
    return UnknownItemError(f"there is no item {key!r}{near}")


def _weighing_views(settings: Settings, item: Item) -> list[str]:
    """Return a sentence about the views that add to the weight of an item, if there are any."""
    views = [view for view in settings.views.of_item(item.key) if view.weight > 0]
    if not views:
        return []
    names = ", ".join(f"{view.name!r} ({view.weight:g})" for view in views)
    total = item.weight + sum(view.weight for view in views)
    return [f"its weight is {total:g}, because views add theirs: {names}"]


def _due_s(item: Item, least_s: float) -> float:
    """Return when an item is due; not within ``least_s`` seconds after its last poll, unless a poll was
    requested."""
    polled_s = math.nan if item.polled_s is None else item.polled_s
    if item.due_s < polled_s - REQUESTED_S / 2:  # somebody asked for a poll now
        return item.due_s
    return max(item.due_s, float(earliest_s(polled_s, least_s)))


def _next_s(item: Item, policy: RowPolicy, row: int, interval_s: float, now_s: float) -> float:
    """Return when an item is polled next: at its stored due time. If the current polling interval is infinite
    it was dropped since, and the next poll is its review, unless what a poll teaches makes it worth it now.
    If only the due time is infinite, it is no longer dropped, and the interval counts."""
    due_s = _due_s(item, float(policy.item_rows.min_interval_s[row]))
    settled = item.status == "active" and not item.failures and due_s > now_s
    if settled and math.isinf(interval_s) and _turn_has_come(policy, row, now_s):
        return now_s
    if settled and item.polled_s is not None and (math.isinf(due_s) or math.isinf(interval_s)):
        return float(policy.next_polls_s(np.array([row]), item.polled_s)[0])
    return due_s


def _turn_has_come(policy: RowPolicy, row: int, now_s: float) -> bool:
    """Return whether a poll of ``row`` gains what a poll must gain now, so that an engine makes it next. The
    interval does not say this of an item of which little is known: it leaves out what a poll teaches."""
    return policy.name != "uniform" and 0 < policy.shadow_price <= float(policy.poll_values(now_s)[row])


def _seen_reasons(seen: WatchedItem, item: Item, least_s: float, now_s: float) -> list[str]:
    words = {
        "fresh": "fresh: nothing that it is made from changed since its refresh; it waits for a change",
        "stale": f"stale for {format_duration(seen.stale_for_s)}: refreshed as soon as the budget allows",
        "left alone": f"stale for {format_duration(seen.stale_for_s)}; {describe_given_up(seen)}",
        "unknown": "its staleness cannot be observed: it is refreshed at the rate of its changes",
    }
    found = [*_holding(item, least_s, now_s, due=False), words[seen.state]]
    if seen.cost_s > 0:
        found.append(f"a refresh takes {format_duration(seen.cost_s)} on average")
    found.append(f"the objective of its source is {seen.objective}")
    if not math.isnan(seen.target_lag_s):
        found.append(
            f"its target lag is {format_duration(seen.target_lag_s)}, or that of a view made from it"
        )
    if seen.missing_s > 0:
        found.append("its target lag does not fit the budget and gives no precedence: see 'afresh status'")
    return found


def _reasons(
    item: Item, policy: RowPolicy, row: int, interval_s: float, now_s: float, *, due: bool
) -> list[str]:
    found = _holding(item, float(policy.item_rows.min_interval_s[row]), now_s, due=due)
    if item.status != "active":
        return found
    sampled = policy.sampling.state(row)
    if sampled is not None:
        every, done = format_duration(1.0 / sampled.frequency), f"{len(sampled.changed)} of {sampled.target}"
        return [*found, f"its rate is not known yet: SAA polls it every {every}, {done} polls of this round"]
    if policy.name == "uniform":
        return [*found, "the policy is uniform: every item is polled equally often"]
    weight = float(policy.item_rows.weight[row])  # with what views add
    if weight == 0:
        found.append("its weight is 0: it is polled only when nothing else needs it, and for rare reviews")
    elif policy.shadow_price <= 0:
        found.append("nothing has been polled yet, so there is no shadow price to compare with")
    elif policy.money.break_even_value > 0 and not policy.item_rows.value_factor[row] > 0:
        found.append("futile: its source has no benefit, unlike other sources, so that no poll pays")
    elif item.polled_s is None:
        pass  # new items are polled first, whatever their poll value
    elif policy.is_futile(np.array([row]))[0]:
        words = "futile: it changes too fast for its cost, so that a poll earns less than it costs"
        found.append(_left(words, policy, row, weight, policy.money.break_even_value))
        found.append("its next poll is a rare review: it may have become slower since")
    elif math.isinf(interval_s):
        words = TOO_OFTEN
        if policy.money.break_even_value > 0:
            words = "a poll would pay, but others pay more and the budget leaves nothing for it"
        found.append(_left(f"dropped: {words}", policy, row, weight, policy.shadow_price))
        found.append(_TEACHES if _turn_has_come(policy, row, now_s) else _REVIEWED)
    else:
        found.append(_describe_other_weights(policy, row))
    return found


def _describe_other_weights(policy: RowPolicy, row: int) -> str:
    """Describe how often an item would be polled with twice and with half its weight, within its limits."""
    least_s, most_s = (
        float(each[row]) for each in (policy.item_rows.min_interval_s, policy.item_rows.max_interval_s)
    )
    twice_s, half_s = (
        min(max(_after_s(policy, row, policy.shadow_price / factor), least_s), most_s)
        for factor in (2.0, 0.5)
    )
    if half_s == twice_s:
        which = "min" if half_s == least_s else "max"
        return (
            f"with twice its weight, or half of it, it would be polled as often: its {which}_{LIMIT_DECIDES}"
        )
    twice, half = (f"every {format_duration(s)}" if math.isfinite(s) else "never" for s in (twice_s, half_s))
    return f"with twice the weight it would be polled {twice}, with half of it {half}"


def _left(words: str, policy: RowPolicy, row: int, weight: float, level: float) -> str:
    """Return ``words`` with the weight at which the poll value would reach ``level``, if there is one."""
    low, high = 1.0, _HEAVIEST
    if math.isinf(_after_s(policy, row, level / high)):
        return words
    while high / low > _NEARLY:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if math.isinf(_after_s(policy, row, level / middle)) else (low, middle)
    budget = "" if level <= policy.money.break_even_value else " or a larger budget"
    return f"{words}; with a weight of {weight * high:.3g}{budget} it would be polled"


def _after_s(policy: RowPolicy, row: int, level: float) -> float:
    """Return the seconds without a poll after which the poll value of ``row`` is ``level``, or infinity."""
    return float(policy.ranking.time_to_reach(np.array([row]), level)[0])


def _holding(item: Item, least_s: float, now_s: float, *, due: bool) -> list[str]:
    found = []
    key = shlex.quote(item.key)  # people paste the command, and a key may contain shell commands
    resume = f"after: afresh set {key} --resume"
    if item.status == "paused":
        found.append(f"paused; polled again {resume}")
    elif item.status == "gone":
        found.append(f"gone ({item.problem}): polled again when a listing names it, or {resume}")
    elif item.status == "refused":
        found.append(f"refused: {item.problem}; polled again when its source has other settings, or {resume}")
    elif item.failures:
        last = "poll" if item.failures == 1 else f"{item.failures} polls"
        soon = "as soon as possible" if item.due_s <= now_s else f"in {format_duration(item.due_s - now_s)}"
        hurry = f", sooner after: afresh set {key} --poll-now" if item.due_s > now_s else ""
        found.append(f"its last {last} failed: {item.problem}; tried again {soon}{hurry}")
    elif item.polled_s is None:
        found.append("it was never polled: new items are polled first")
    if item.min_interval_s > 0:
        found.append(f"never more often than every {format_duration(item.min_interval_s)}")
    elif item.status == "active" and item.polled_s is not None and now_s < item.polled_s + least_s:
        found.append(f"its source has a min_interval of {format_duration(least_s)}, which is not over yet")
    if math.isfinite(item.max_interval_s):
        found.append(f"at least every {format_duration(item.max_interval_s)}")
    if due and _due_s(item, least_s) <= now_s and item.status == "active" and item.polled_s is not None:
        found.append("due now: it waits for its host, for the budget, or for an engine to run")
    return found
