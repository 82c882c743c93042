"""From what a poll brought to what is committed: memory learns, due times are set, polls are counted."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from afresh.engine.logs import log_event
from afresh.engine.scheduler.decide import Decision, RetryRules, decide
from afresh.engine.scheduler.item_rows import ItemRows
from afresh.engine.scheduler.poll_costs import PollCosts
from afresh.engine.scheduler.row_policy import RowPolicy
from afresh.engine.settings.tables import BudgetTable, Settings
from afresh.sources.http.validators import MOVED
from afresh.values.arrays import Float64s, Ints
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.outcome import NOTHING_SPENT, Outcome, Spent


class PollRecorder:
    """Turns polls into outcomes. ``only_due_s``: this is a single round over what was due then.

    ``filling``: others are still being read, and what was polled waits for them until it is due again.
    """

    def __init__(self, settings: Settings, item_rows: ItemRows, policy: RowPolicy) -> None:
        self.settings, self._item_rows, self._policy = settings, item_rows, policy
        self.counts: Counter[str] = Counter()
        self.poll_costs = PollCosts()
        self.only_due_s: float | None = None
        self.filling = False

    def begin_single_round(self, now_s: float, rng: np.random.Generator) -> None:
        """A single round from now on: what is due, and a few of the dropped items.

        Those are due never again, however wrong the rate may be that they were dropped for. In a run audits
        come by them; here as large a share of the polls goes to some drawn at random.
        """
        item_rows, share = self._item_rows, self.settings.plan.audit_share
        self.only_due_s = now_s
        known = item_rows.is_active & (item_rows.weight > 0) & ~np.isnan(item_rows.polled_s)
        dropped = np.flatnonzero(known & np.isposinf(item_rows.due_s))
        due = np.count_nonzero(item_rows.is_active & (item_rows.due_s <= now_s))
        drawn = min(int(rng.binomial(due, min(share / (1.0 - share), 1.0))), dropped.size)
        item_rows.due_s[rng.choice(dropped, drawn, replace=False)] = now_s
        self.restrict()

    def restrict(self) -> None:
        """In a single round what is not due waits for another; what is new does not."""
        item_rows = self._item_rows
        if self.only_due_s is not None:
            item_rows.not_before_s[(item_rows.due_s > self.only_due_s) & ~np.isnan(item_rows.polled_s)] = (
                np.inf
            )

    def outcome(self, lease: Lease, fetched: Fetched, now_s: float, *, audit: bool) -> Outcome:
        """What the poll of ``lease`` leaves behind, but for what ``complete`` adds."""
        decision = decide(lease, fetched, self._patient(lease.source), now_s, audit=audit)
        self._count(lease, fetched, decision, audit=audit)
        if fetched.requests or fetched.tells:
            self.poll_costs.add(lease.source, fetched.requests, fetched.bytes, fetched.seconds)
        budget = self.settings.budget
        return self.settle(
            lease,
            decision,
            now_s,
            validators=None if decision.keeps_validators else fetched.validators,
            spent=compute_spent(budget, fetched.requests, fetched.bytes, fetched.seconds),
        )

    def settle(
        self,
        lease: Lease,
        decision: Decision,
        now_s: float,
        *,
        validators: Mapping[str, str] | None = None,
        spent: Spent = NOTHING_SPENT,
    ) -> Outcome:
        """What a decision changes; until ``complete`` its due time is the earliest that may be."""
        table = self.settings.source(lease.source)
        return Outcome(
            lease=lease,
            time_s=now_s,
            due_s=-math.inf if decision.retry_s is None else decision.retry_s,
            observation=decision.observation,
            new_copy=decision.new_copy,
            validators=validators,
            status=decision.status,
            failures=decision.failures,
            problem=decision.problem,
            spent=spent,
            event=decision.event if table is not None and table.on_change else None,
        )

    def complete(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Learn from a group of polls; their outcomes with beliefs and due times, ready to be committed."""
        item_rows, policy = self._item_rows, self._policy
        rows = item_rows.rows([outcome.lease.item_id for outcome in outcomes])
        times_s = np.array([outcome.time_s for outcome in outcomes])
        told = np.array([outcome.observation is not None for outcome in outcomes], dtype=bool)
        seen = [outcome.observation for outcome in outcomes if outcome.observation is not None]
        # What is refreshed because it is seen to be stale has always changed: that tells no rate.
        unseen = ~policy.is_observed()[rows[told]]
        policy.ranking.learn(
            rows[told],
            times_s[told],
            np.array([each.elapsed_s for each in seen]) * unseen,
            np.array([each.changed for each in seen], dtype=bool),
        )
        item_rows.polled_s[rows[told]], item_rows.is_requested[rows[told]] = times_s[told], False
        item_rows.not_before_s[rows] = [outcome.due_s for outcome in outcomes]
        active = item_rows.is_active[rows]
        item_rows.is_active[rows] &= [outcome.status == "active" for outcome in outcomes]
        policy.ranking.update_weights(rows[active != item_rows.is_active[rows]])
        item_rows.due_s[rows] = due_s = self._due_s(rows)
        packed = policy.ranking.pack(rows)
        if self.only_due_s is not None:
            item_rows.not_before_s[rows] = np.inf
        elif self.filling:
            item_rows.not_before_s[rows] = np.where(due_s > times_s, due_s, np.inf)
        return [
            replace(outcome, due_s=when_s, belief=belief)
            for outcome, when_s, belief in zip(outcomes, due_s.tolist(), packed, strict=True)
        ]

    def _due_s(self, rows: Ints) -> Float64s:
        """When rows are due, from the last look that told something; without one as soon as they may be."""
        item_rows = self._item_rows
        looked_s = item_rows.polled_s[rows]
        after = self._policy.next_polls_s(rows, np.nan_to_num(looked_s))
        return np.where(np.isnan(looked_s), item_rows.not_before_s[rows], after)

    def _patient(self, source: str) -> RetryRules:
        run, table = self.settings.run, self.settings.source(source)
        if table is None:
            return RetryRules(run.retry_first, run.retry_longest)
        longest_s = min(run.retry_longest, table.settings.longest_retry_s)
        return RetryRules(run.retry_first, longest_s, table.settings.missing)

    def _count(self, lease: Lease, fetched: Fetched, decision: Decision, *, audit: bool) -> None:
        seen, counts = decision.observation, self.counts
        failed = decision.failures > lease.failures  # rather than put off
        counts["polls"] += 1
        counts["audits"] += audit
        counts["changes"] += seen is not None and seen.changed
        counts["failures"] += failed
        counts["told"] += seen is not None and seen.elapsed_s > 0
        if seen is None:
            # A page that is not there is missing; it is gone when patience ends.
            kind = "missing" if fetched.kind == "gone" and decision.status != "gone" else fetched.kind
            words = {"kind": kind, "problem": decision.problem, "failures": decision.failures}
            log_event(logging.INFO, "poll failed" if failed else "poll put off", item=lease.key, **words)
        else:
            log_event(
                logging.DEBUG, "polled", item=lease.key, kind=fetched.kind, changed=seen.changed, audit=audit
            )
        if fetched.tells and fetched.moved_to not in (None, lease.validators.get(MOVED)):
            log_event(logging.INFO, "moved for good", item=lease.key, to=fetched.moved_to)


def compute_spent(budget: BudgetTable, requests: int, received: int, seconds: float) -> Spent:
    """What was spent, in money too.

    >>> compute_spent(BudgetTable(price_per_request=0.5), 2, 100, 0.25)
    Spent(requests=2, bytes=100, seconds=0.25, money=1.0)
    """
    money = requests * budget.price_per_request + received * budget.price_per_gb / 1e9
    money += seconds * budget.price_per_second
    return Spent(requests, received, seconds, money)


def limit_time(outcome: Outcome, now_s: float) -> Outcome:
    """The outcome as of now, where the clock was set back between the poll and its learning."""
    if outcome.time_s <= now_s:
        return outcome
    seen = outcome.observation
    return replace(outcome, time_s=now_s, observation=None if seen is None else replace(seen, time_s=now_s))
