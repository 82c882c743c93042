"""From what a poll brought to what is committed: memory learns, due times are set, polls are counted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

import numpy as np

from afresh.engine.decide import Decision, Patient, decide
from afresh.engine.logs import say
from afresh.engine.memory import Memory
from afresh.engine.policy import Policy
from afresh.engine.settings import BudgetTable, Settings
from afresh.sources.patience import Patience
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.outcome import NOTHING_SPENT, Outcome, Spent


class Accounts:
    """Turns polls into outcomes. ``only_due_s``: this is a single round over what was due then."""

    def __init__(self, settings: Settings, memory: Memory, policy: Policy) -> None:
        self.settings, self._memory, self._policy = settings, memory, policy
        self.counts: Counter[str] = Counter()
        self.only_due_s: float | None = None

    def restrict(self) -> None:
        """In a single round what is not due waits for another; what is new does not."""
        memory = self._memory
        if self.only_due_s is not None:
            memory.hold_s[(memory.due_s > self.only_due_s) & ~np.isnan(memory.polled_s)] = np.inf

    def outcome(self, lease: Lease, row: int, fetched: Fetched, now_s: float, *, audit: bool) -> Outcome:
        """What the poll of ``lease`` leaves behind, in memory at once and in the store when committed."""
        decision = decide(lease, fetched, self._patient(lease.source), now_s, audit=audit)
        self._count(lease, fetched, decision, audit=audit)
        budget = self.settings.budget
        return self.settle(
            lease,
            row,
            decision,
            now_s,
            validators=None if decision.keeps_validators else fetched.validators,
            spent=spent_of(budget, fetched.requests, fetched.bytes, fetched.seconds),
        )

    def settle(
        self,
        lease: Lease,
        row: int,
        decision: Decision,
        now_s: float,
        *,
        validators: Mapping[str, str] | None = None,
        spent: Spent = NOTHING_SPENT,
    ) -> Outcome:
        """What a decision changes: memory at once, the store when the outcome is committed."""
        seen, memory = decision.observation, self._memory
        if seen is not None:
            self._policy.observe(row, now_s, seen.elapsed_s, seen.changed)
        elif decision.retry_s is not None:
            memory.hold_s[row] = decision.retry_s
        memory.active[row] = memory.active[row] and decision.status == "active"
        memory.due_s[row] = due_s = self._policy.due_s(row, now_s)
        belief = memory.evidence(row)
        if self.only_due_s is not None:
            memory.hold_s[row] = np.inf
        table = self.settings.source(lease.source)
        return Outcome(
            lease=lease,
            time_s=now_s,
            due_s=due_s,
            observation=seen,
            new_copy=decision.new_copy,
            validators=validators,
            belief=belief,
            status=decision.status,
            failures=decision.failures,
            problem=decision.problem,
            spent=spent,
            event=decision.event if table is not None and table.on_change else None,
        )

    def _patient(self, source: str) -> Patient:
        run, table = self.settings.run, self.settings.source(source)
        missing = table.settings.missing if table is not None else Patience()
        return Patient(run.retry_first, run.retry_longest, missing)

    def _count(self, lease: Lease, fetched: Fetched, decision: Decision, *, audit: bool) -> None:
        seen = decision.observation
        self.counts.update(
            polls=1,
            audits=int(audit),
            changes=int(seen is not None and seen.changed),
            failures=int(seen is None),
            told=int(seen is not None and seen.elapsed_s > 0),
        )
        if seen is None:
            words = {"kind": fetched.kind, "problem": decision.problem, "failures": decision.failures}
            say(logging.INFO, "poll failed", item=lease.key, **words)
        else:
            say(logging.DEBUG, "polled", item=lease.key, kind=fetched.kind, changed=seen.changed, audit=audit)
        if fetched.moved_to is not None:
            say(logging.INFO, "moved for good", item=lease.key, to=fetched.moved_to)


def spent_of(budget: BudgetTable, requests: int, received: int, seconds: float) -> Spent:
    """What was spent, in money too.

    >>> spent_of(BudgetTable(price_per_request=0.5), 2, 100, 0.25)
    Spent(requests=2, bytes=100, seconds=0.25, money=1.0)
    """
    money = requests * budget.price_per_request + received * budget.price_per_gb / 1e9
    return Spent(requests, received, seconds, money)
