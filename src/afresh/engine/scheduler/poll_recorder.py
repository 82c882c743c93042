"""Turns the result of a poll into an outcome: decides, learns, sets the time of the next poll, and counts."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.scheduler.decide import RetryRules, decide
from afresh.engine.scheduler.earnings import MoneyInput
from afresh.engine.scheduler.poll_costs import PollCosts, PollTallies, Tally
from afresh.engine.scheduler.run_failures import RunFailures
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import BudgetTable, LiveSettings, Settings
from afresh.policy.adaptive.stated_changes import StatedChanges
from afresh.sources.http.validators import MOVED
from afresh.values.arrays import Float64s, Ints
from afresh.values.backoff import Backoff
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.outcome import Observation, Outcome, Spent


class PollRecorder:
    """Turns polls into outcomes, and lets the scheduler learn from them. In a single round (``run --once``),
    only items that are due at its start are polled, and the best others that the budget allows then;
    ``only_due_s`` is the time of the start, and None if there is no such round. While further items are being
    loaded, ``is_loading`` is True, and an item that was polled is not polled again before it is due."""

    def __init__(self, settings: LiveSettings, scheduler: Scheduler, poll_costs: PollCosts) -> None:
        self._settings, self._scheduler, self.poll_costs = settings, scheduler, poll_costs
        self.counts: Counter[str] = Counter()
        self.failures = RunFailures()
        self.tallies = PollTallies()
        self.only_due_s: float | None = None
        self.is_loading = False

    def money_input(self) -> MoneyInput:
        return MoneyInput(self._settings.now, self._scheduler.names, self.poll_costs)

    def begin_single_round(self, now_s: float, allowed: float) -> int:
        """Begin a single round: from now on, each item that is due is polled once, and of the others the best
        ones, so that ``allowed`` items are polled in all: those that a run would have polled in the time
        since the last round. Return how many items could be polled, but are not."""
        scheduler, item_rows = self._scheduler, self._scheduler.item_rows
        self.only_due_s = now_s
        most = int(min(allowed, item_rows.size))
        best = scheduler.best_rows(now_s, most, set(scheduler.names.values()))
        item_rows.due_s[best] = np.minimum(item_rows.due_s[best], now_s)
        waiting = ~np.isposinf(item_rows.not_before_s) & item_rows.is_active & (item_rows.weight > 0)
        self.restrict()
        return int(np.count_nonzero(waiting & np.isposinf(item_rows.not_before_s)))

    def restrict(self) -> None:
        """In a single round, forbid polls of items that are not due, except items that were never polled."""
        item_rows = self._scheduler.item_rows
        if self.only_due_s is not None:
            not_due = (item_rows.due_s > self.only_due_s) & ~np.isnan(item_rows.polled_s)
            item_rows.not_before_s[not_due] = np.inf

    def admit_announced(self, item_ids: Sequence[int]) -> None:
        """In a single round, allow polls of items that the cursor of their source announced after its start,
        if this cursor proved right. All of them are polled, however many the budget allowed at the start."""
        if self.only_due_s is None:
            return
        item_rows, settled = self._scheduler.item_rows, self._scheduler.policy.settled_sources
        rows = item_rows.rows(item_ids)
        is_left_out = (item_rows.due_s[rows] > self.only_due_s) & (item_rows.polled_s[rows] < self.only_due_s)
        rows = rows[np.isin(item_rows.source[rows], list(settled)) & is_left_out]
        item_rows.due_s[rows] = self.only_due_s
        item_rows.not_before_s[rows] = -np.inf

    def decide(self, lease: Lease, fetched: Fetched, now_s: float, *, audit: bool) -> Outcome:
        """Decide what the poll of ``lease`` means, count it, and return its outcome with its cost. ``due_s``
        of the outcome is the time before which the item is not polled again; ``complete`` replaces it by the
        time of the next poll, and adds the belief."""
        settings = self._settings.now
        outcome = decide(lease, fetched, retry_rules(settings, lease.source), now_s, audit=audit)
        self._count(lease, fetched, outcome, audit=audit)
        if fetched.requests or fetched.is_successful:
            self.poll_costs.add(lease.source, fetched.requests, fetched.bytes, fetched.seconds)
        spent = compute_spent(settings.budget, fetched.requests, fetched.bytes, fetched.seconds)
        if outcome.observation is not None and outcome.observation.changed:
            spent = with_update_cost(spent, settings, lease.source)
        return replace(
            outcome,
            spent=spent,
            for_hooks=settings.has_hook(lease.source, lease.key),
        )

    def refuse_copy(self, outcome: Outcome, problem: str) -> Outcome:
        """Return the outcome of a poll whose new copy cannot be stored: a failed poll, of which only the cost
        counts. The next poll that is possible finds the same content again, because validators stay."""
        lease, seen, counts = outcome.lease, outcome.observation, self.counts
        rules = retry_rules(self._settings.now, lease.source)
        failures = lease.failures + 1
        due_s = outcome.time_s + Backoff(rules.first_s, rules.longest_s).wait_s(failures)
        counts["changes"] -= seen is not None and seen.changed
        counts["told"] -= seen is not None and seen.elapsed_s > 0
        counts["failures"] += 1
        self.failures.polled -= 1
        self.failures.record_item(lease.source, lease.key, problem)
        log_event(logging.INFO, "poll failed", item=lease.key, kind="full", problem=problem)
        return Outcome(
            lease,
            outcome.time_s,
            due_s,
            status=lease.status,
            failures=failures,
            problem=problem,
            spent=outcome.spent,
        )

    def complete(self, polls: Sequence[Outcome], now_s: float = math.inf) -> list[Outcome]:
        """Learn from ``polls``; return their outcomes with beliefs and next polls, ready to be committed. If
        a poll is later than ``now_s``, the clock was set back since, and ``now_s`` becomes its time."""
        scheduler, item_rows = self._scheduler, self._scheduler.item_rows
        polls = [poll if poll.time_s <= now_s else _made_at(poll, now_s) for poll in polls]
        rows = item_rows.rows([poll.lease.item_id for poll in polls])
        times_s = np.array([poll.time_s for poll in polls])
        observations = [poll.observation for poll in polls]
        observed = np.array([each is not None for each in observations], dtype=bool)
        seen = [each for each in observations if each is not None]
        # An item that is refreshed because a source saw it stale has always changed, so that this poll is no
        # evidence of its rate: an elapsed time of 0 tells the ranking so.
        is_evidence = ~scheduler.policy.is_observed()[rows[observed]]
        ranking = scheduler.policy.ranking
        ranking.learn(
            rows[observed],
            times_s[observed],
            np.array([each.elapsed_s for each in seen]) * is_evidence,
            np.array([each.changed for each in seen], dtype=bool),
            _stated_changes(seen),
        )
        scheduler.policy.sampling.observe(
            rows[observed],
            times_s[observed],
            np.array([each.elapsed_s for each in seen]),
            np.array([each.changed for each in seen], dtype=bool),
        )
        item_rows.polled_s[rows[observed]], item_rows.is_requested[rows[observed]] = times_s[observed], False
        item_rows.not_before_s[rows] = [poll.due_s for poll in polls]
        was_active = item_rows.is_active[rows]
        item_rows.is_active[rows] &= [poll.status == "active" for poll in polls]
        ranking.update_weights(rows[was_active != item_rows.is_active[rows]])
        item_rows.due_s[rows] = due_s = self._due_s(rows)
        # Packed before a single round forbids the rows below: that must not be stored in ``not_before_s``.
        beliefs = ranking.pack(rows)
        if self.only_due_s is not None:
            item_rows.not_before_s[rows] = np.inf
        elif self.is_loading:
            item_rows.not_before_s[rows] = np.where(due_s > times_s, due_s, np.inf)
        triples = zip(polls, due_s.tolist(), beliefs, strict=True)
        return [replace(poll, due_s=when_s, belief=belief) for poll, when_s, belief in triples]

    def _due_s(self, rows: Ints) -> Float64s:
        """Return when ``rows`` are due: their next polls or, before the first poll, ``not_before_s``."""
        item_rows = self._scheduler.item_rows
        polled_s = item_rows.polled_s[rows]
        next_s = self._scheduler.policy.next_polls_s(rows, np.nan_to_num(polled_s))
        return np.where(np.isnan(polled_s), item_rows.not_before_s[rows], next_s)

    def _count(self, lease: Lease, fetched: Fetched, outcome: Outcome, *, audit: bool) -> None:
        seen, counts = outcome.observation, self.counts
        # Otherwise the poll was only put off, or the item is another one.
        failed = outcome.failures > lease.failures and not fetched.for_good
        counts["polls"] += 1
        counts["audits"] += audit
        counts["changes"] += seen is not None and seen.changed
        counts["failures"] += failed
        counts["told"] += seen is not None and seen.elapsed_s > 0
        table, changed = self._settings.now.source(lease.source), seen is not None and seen.changed
        view = lease.key if table is not None and table.settings.kind == "view" else ""
        self.tallies.count(lease.source, lease.group, view, Tally(1, changed, failed, fetched.seconds))
        # That an item is not found, or is another one, is an answer too.
        answered = seen is not None or fetched.kind == "gone" or fetched.for_good
        self.failures.record_item(lease.source, lease.key, "" if answered else outcome.problem or "no answer")
        if seen is None:
            # An item that is not found is "missing" until the settings let it count as "gone".
            kind = "missing" if fetched.kind == "gone" and outcome.status != "gone" else fetched.kind
            words = {"kind": kind, "problem": outcome.problem, "failures": outcome.failures}
            log_event(logging.INFO, "poll failed" if failed else "poll put off", item=lease.key, **words)
        else:
            log_event(
                logging.DEBUG, "polled", item=lease.key, kind=fetched.kind, changed=seen.changed, audit=audit
            )
        if fetched.is_successful and fetched.moved_to not in (None, lease.validators.get(MOVED)):
            log_event(logging.INFO, "moved permanently", item=lease.key, to=fetched.moved_to)


def _stated_changes(seen: Sequence[Observation]) -> StatedChanges | None:
    """Return what the sources stated with these observations; None if they stated nothing."""
    if all(each.modified_s is None and each.count is None for each in seen):
        return None
    since_s = [math.nan if each.modified_s is None else each.time_s - each.modified_s for each in seen]
    count = [math.nan if each.count is None else float(each.count) for each in seen]
    return StatedChanges(np.array(since_s), np.array(count))


def _made_at(poll: Outcome, time_s: float) -> Outcome:
    seen = poll.observation
    return replace(poll, time_s=time_s, observation=None if seen is None else replace(seen, time_s=time_s))


def retry_rules(settings: Settings, source: str) -> RetryRules:
    run, table = settings.run, settings.source(source)
    if table is None:
        return RetryRules(run.retry_first, run.retry_longest)
    longest_s = min(run.retry_longest, table.settings.longest_retry_s)
    return RetryRules(run.retry_first, longest_s, table.settings.missing)


def compute_spent(budget: BudgetTable, requests: int, received: int, seconds: float) -> Spent:
    """Return the cost of ``requests`` requests that received ``received`` bytes, with its price in money.

    >>> compute_spent(BudgetTable(price_per_request=0.5), 2, 100, 0.25)
    Spent(requests=2, bytes=100, seconds=0.25, money=1.0)
    """
    money = requests * budget.price_per_request + received * budget.price_per_gb / 1e9
    money += seconds * budget.price_per_second
    return Spent(requests, received, seconds, money)


def with_update_cost(spent: Spent, settings: Settings, source: str) -> Spent:
    """Return the cost of a poll of ``source`` that found a change, with what the change itself costs."""
    table = settings.source(source)
    return spent if table is None else replace(spent, money=spent.money + table.update_cost)
