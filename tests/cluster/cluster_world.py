"""A cluster in virtual time: the real coordinator and limiters, with messages that are late or lost, clocks
that run at different speeds, shards that pause, die and return, and coordinators that are replaced.

Every shard sends requests as fast as its share allows, which is the worst that it can do to the budget,
unless it ``is_saving`` up for a burst. A shard that ``is_cut_off`` hears nothing and is not heard.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from afresh.allocation.spend_curve import SpendCurve
from afresh.cluster.coordination import (
    ClusterBudget,
    CoordinatorState,
    ShardReport,
    ShareAnswer,
    is_overdue,
)
from afresh.cluster.share import ShareLimiter

CurveOf = Callable[[int, float], SpendCurve]


class ShardProcess:
    """One run of a shard: a limiter, and a clock that is ``speed`` times as fast as the true one."""

    def __init__(self, shard: int, speed: float, offset_s: float) -> None:
        self.shard, self._speed, self._offset_s = shard, speed, offset_s
        self.limiter, self.run, self.requests = ShareLimiter(), 0, 0
        self.is_paused = self.is_saving = self.is_cut_off = False
        self.is_alive = True
        self.next_report_s = self.next_curve_s = -np.inf

    def clock_s(self, now_s: float) -> float:
        return now_s * self._speed + self._offset_s

    def spend(self, now_s: float) -> int:
        """Start as many requests as the share allows now, and return how many."""
        own_s, started = self.clock_s(now_s), 0
        if self.is_saving:
            return 0
        while self.limiter.ready_s(own_s) <= own_s:
            self.limiter.record_start(own_s)
            started += 1
        return started

    def report(self, curve: SpendCurve | None, items: int) -> ShardReport:
        held = self.limiter.share
        return ShardReport(self.shard, self.run, None if held is None else held.number, curve, items)

    def receive(self, answer: ShareAnswer, sent_s: float, now_s: float) -> None:
        """Apply the answer to a report that was sent at ``sent_s`` by this shard's clock."""
        if answer.is_replaced:
            self.limiter.drop()
            self.is_alive = False
            return
        self.run = answer.run
        if answer.share is not None:
            self.limiter.hold(answer.share, self.clock_s(now_s), sent_s + answer.duration_s)


class SavedState:
    """What a compare-and-set of the store keeps."""

    def __init__(self) -> None:
        self.packed: bytes | None = None
        self.saves, self.bytes = 0, 0

    def replace(self, before: bytes | None, after: bytes) -> bool:
        if self.packed != before:
            return False
        self.packed, self.saves, self.bytes = after, self.saves + 1, self.bytes + len(after)
        return True


class CoordinatorProcess:
    """One coordinator. It is over when another one has saved, or when it may not answer any more."""

    def __init__(self, budget: ClusterBudget, saved: SavedState, now_s: float) -> None:
        self.budget, self._saved, self._last = budget, saved, saved.packed
        self.state = CoordinatorState.resumed(saved.packed, budget, now_s)
        self.saved_s, self.is_paused, self.is_over = -np.inf, False, False
        self._save(self.state, now_s)

    def _save(self, state: CoordinatorState, now_s: float) -> bool:
        packed = state.pack()
        if not self._saved.replace(self._last, packed):
            self.is_over = True
            return False
        self.state, self.saved_s, self._last = state, now_s, packed
        return True

    def release(self, ended: Mapping[int, int], now_s: float) -> None:
        if not self.is_over:
            self._save(self.state.without_runs(ended), now_s)

    def rebalance(self, now_s: float) -> None:
        if not self.is_over:
            self._save(self.state.rebalanced(now_s), now_s)

    def answer(self, report: ShardReport, now_s: float) -> ShareAnswer | None:
        if self.is_over or is_overdue(self.saved_s, self.budget, now_s):
            return None
        state, answer = self.state.with_report(report, now_s)
        if answer.run != report.run and not self._save(state, now_s):
            return None
        self.state = state
        return answer


@dataclass
class Periods:
    """How often what happens, in seconds."""

    step: float = 0.25
    report: float = 5.0
    curve: float = 20.0
    rebalance: float = 5.0
    longest_delay: float = 0.5


@dataclass
class ClusterWorld:
    """A coordinator and its shards. ``counts`` has the requests of all shards at each step."""

    budget: ClusterBudget
    curve_of: CurveOf
    rng: np.random.Generator
    periods: Periods = field(default_factory=Periods)
    lost: float = 0.01
    drift: float = 1e-4

    def __post_init__(self) -> None:
        self.now_s, self.saved = 0.0, SavedState()
        self.coordinators = [CoordinatorProcess(self.budget, self.saved, 0.0)]
        self.processes: list[ShardProcess] = []
        self.current: dict[int, ShardProcess] = {}
        self.counts: list[int] = []
        self.committed: list[tuple[float, float]] = []
        self.messages = 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._rebalance_s = 0.0
        for shard in range(self.budget.shards):
            self.start(shard)

    # What happens to the processes.

    def start(self, shard: int, *, is_old_alive: bool = False) -> None:
        """Start a new run of a shard; the old process of it may go on, as behind a broken network."""
        old = self.current.get(shard)
        if old is not None and not is_old_alive:
            old.is_alive = False
        speed = 1.0 + self.drift * self.rng.uniform(-1, 1)
        process = ShardProcess(shard, speed, float(self.rng.uniform(-1e6, 1e6)))
        process.next_report_s = self.now_s + float(self.rng.uniform(0, self.periods.report))
        self.processes = [each for each in self.processes if each.is_alive] + [process]
        self.current[shard] = process

    def kill(self, shard: int) -> None:
        self.current[shard].is_alive = False

    def end(self, shard: int) -> None:
        """End the run of a shard in order: then it spends nothing, and the coordinator is told so."""
        process = self.current[shard]
        if process.is_alive and process.run:
            process.is_alive = False
            self.coordinator.release({shard: process.run}, self.now_s)

    def replace_coordinator(self, *, is_old_alive: bool = False) -> None:
        if not is_old_alive:
            self.coordinators.clear()
        self.coordinators.append(CoordinatorProcess(self.budget, self.saved, self.now_s))
        self.coordinators = self.coordinators[-3:]

    @property
    def coordinator(self) -> CoordinatorProcess:
        return self.coordinators[-1]

    # Time.

    def run_until(self, until_s: float) -> None:
        while self.now_s < until_s:
            self.step()

    def step(self) -> None:
        while self._queue and self._queue[0][0] <= self.now_s:
            heapq.heappop(self._queue)[2]()
        if self.now_s >= self._rebalance_s:
            self._rebalance_s = self.now_s + self.periods.rebalance
            for coordinator in self.coordinators:
                if not coordinator.is_paused:
                    coordinator.rebalance(self.now_s)
        started = 0
        for process in self.processes:
            if process.is_alive and not process.is_paused:
                started += process.spend(self.now_s)
                if self.now_s >= process.next_report_s and not process.is_cut_off:
                    self._report(process)
        self.counts.append(started)
        self.committed.append(self.coordinator.state.committed(self.now_s))
        self.now_s += self.periods.step

    def _report(self, process: ShardProcess) -> None:
        process.next_report_s = self.now_s + self.periods.report
        curve = None
        if self.now_s >= process.next_curve_s:
            process.next_curve_s = self.now_s + self.periods.curve
            curve = self.curve_of(process.shard, self.coordinator.state.price)
        report, sent_s = process.report(curve, 1), process.clock_s(self.now_s)
        for coordinator in self.coordinators:  # a shard that cannot tell them apart asks all

            def arrive(coordinator: CoordinatorProcess = coordinator) -> None:
                answer = None if coordinator.is_paused else coordinator.answer(report, self.now_s)
                if answer is not None:
                    self._send(lambda: self._deliver(process, answer, sent_s))

            self._send(arrive)

    def _deliver(self, process: ShardProcess, answer: ShareAnswer, sent_s: float) -> None:
        if process.is_alive and not process.is_cut_off:
            process.receive(answer, sent_s, self.now_s)

    def _send(self, work: Callable[[], None]) -> None:
        self.messages += 1
        if self.rng.random() >= self.lost:
            arrives_s = self.now_s + float(self.rng.uniform(0, self.periods.longest_delay))
            heapq.heappush(self._queue, (arrives_s, next(self._numbers), work))

    # The promise.

    def most_over_budget(self) -> float:
        """Return max over all windows [first step, last step] of requests − rate·T − burst; at most 0 if the
        budget was kept. All requests of a step start at its beginning."""
        rate, step = self.budget.rate_per_s * (1.0 + self.drift), self.periods.step
        sums = np.concatenate([[0.0], np.cumsum(self.counts)])
        steps = np.arange(sums.size) * step * rate
        # Requests in steps i…j: sums[j+1] − sums[i], in a time of (j − i)·step.
        after, before = sums[1:] - steps[:-1], sums[:-1] - steps[:-1]
        return float((after - np.minimum.accumulate(before)).max() - self.budget.burst)
