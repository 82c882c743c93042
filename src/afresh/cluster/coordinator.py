"""The coordinator of a cluster: drives the state machine of ``coordination``, and saves it in a store.

It does something only when a shard reports, so that it needs no thread of its own. Every few reports it
rebalances; the state is saved with a compare-and-set, so that of two coordinators one stops. What shards
learned of all items together passes through it too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from afresh.cluster.coordination import (
    ClusterBudget,
    CoordinatorState,
    ShardReport,
    ShareAnswer,
    is_overdue,
)
from afresh.cluster.layout import ClusterView, ShardView
from afresh.policy.adaptive.common_lessons import LessonPool
from afresh.stores.store import Store
from afresh.values.clock import Clock
from afresh.values.errors import AfreshError, StoreError

SAVED = "cluster.coordinator"
ENDED = "another coordinator has taken over this project: this run of the cluster ends, and nothing is lost"


class CoordinatorReplacedError(AfreshError):
    """Another coordinator has saved its state since; this one must not answer any more."""


class Coordinator:
    """Answers the reports of shards. It is not for several threads at once."""

    def __init__(
        self, store: Store, clock: Clock, budget: ClusterBudget, *, owner: str, every_s: float
    ) -> None:
        """Continue after the coordinator that last saved in ``store``, and rebalance every ``every_s``
        seconds. ``owner`` is a name that no other coordinator has."""
        self._store, self._clock, self._every_s = store, clock, every_s
        self._owner = owner.encode() + b"\n"
        self._saved_s = self._rebalanced_s = -math.inf
        self._last = store.state.get(SAVED)
        saved = None if self._last is None else self._last.partition(b"\n")[2]
        self.state = CoordinatorState.resumed(saved, budget, clock.elapsed_s())
        self.is_replaced = False
        self._lessons = LessonPool()  # not saved, because every shard tells again what it learned
        self._save(self.state)

    def report(self, report: ShardReport) -> ShareAnswer | None:
        """Return the answer to a report; None while the state cannot be saved. Raise
        ``CoordinatorReplacedError`` after another coordinator has taken over."""
        if self.is_replaced:
            raise CoordinatorReplacedError(ENDED)
        try:
            self._rebalance()
            now_s = self._clock.elapsed_s()
            state, answer = self.state.with_report(report, now_s)
            if answer.run != report.run:
                self._save(state)
        except StoreError:
            return None  # the shard asks again; its share ends if this goes on
        if is_overdue(self._saved_s, state.budget, now_s):
            return None
        self.state = state
        return self._with_common(report, answer)

    def release(self, ended: Mapping[int, int]) -> None:
        """Count the shares of these runs (numbers by shard) no longer, because they have ended."""
        if self.is_replaced:
            raise CoordinatorReplacedError(ENDED)
        self._save(self.state.without_runs(ended))

    def _with_common(self, report: ShardReport, answer: ShareAnswer) -> ShareAnswer:
        if report.lessons is None or answer.is_replaced:
            return answer
        self._lessons.add(report.shard, report.lessons)
        return replace(answer, common=self._lessons.for_member(report.shard))

    def _rebalance(self) -> None:
        now_s = self._clock.elapsed_s()
        if now_s >= self._rebalanced_s + self._every_s:
            self._save(self.state.rebalanced(now_s))
            self._rebalanced_s = now_s

    def _save(self, state: CoordinatorState) -> None:
        began_s, packed = self._clock.elapsed_s(), self._owner + state.pack()
        while not self._store.state.replace(SAVED, self._last, packed):
            self._last = self._store.state.get(SAVED)
            # An attempt that raised may have succeeded, if the connection was lost during the commit.
            if self._last is None or not self._last.startswith(self._owner):
                self.is_replaced = True
                raise CoordinatorReplacedError(ENDED)
        self.state, self._last, self._saved_s = state, packed, began_s

    def view(self) -> ClusterView:
        now_s = self._clock.elapsed_s()
        live = set(self.state.live_shards(now_s))
        shards = []
        for shard in sorted(self.state.runs):
            share = self.state.share_of(shard)
            rate = 0.0 if share is None or shard not in live else share.rate_per_s
            burst = 0.0 if share is None or shard not in live else share.burst
            shards.append(ShardView(shard, rate, burst, self.state.items.get(shard, 0), shard in live))
        return ClusterView(self.state.price, self.state.budget.rate_per_s, tuple(shards))
