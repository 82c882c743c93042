"""The coordinator as a state machine: a state and a message give a new state and an answer, without I/O.

    state, answer = state.with_report(report, now_s)     at every report of a shard
    state = state.rebalanced(now_s)                      every few seconds

Whoever drives it saves ``state.pack()`` before it sends any answer that follows from ``rebalanced`` or from a
new run, and saves it with a compare-and-set, so that a second coordinator ends the first. A coordinator that
starts again counts every saved share as held until it must have ended (``resumed``). What is not saved is
safe: answers only prolong shares, and a coordinator that has not saved for ``duration_s`` must not answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from afresh.allocation.spend_curve import SpendCurve, share_budget
from afresh.cluster.budget_ledger import SentShare, ShardLedger, ShardTarget, largest_sum, move_shares
from afresh.cluster.share import Share, ShareNumber
from afresh.policy.adaptive.common_lessons import CommonLessons, Lessons
from afresh.values.errors import UsageError

FLOOR = 1e-3
"""The least share of a shard, relative to an equal one: it still sees whether its items change."""


@dataclass(frozen=True, slots=True)
class ClusterBudget:
    """The promise: at most rate·T + ``burst`` requests of all ``shards`` together in any T seconds. A share
    lasts ``duration_s``, and is given to others ``slack_s`` after that."""

    rate_per_s: float
    burst: float
    shards: int
    duration_s: float = 30.0
    slack_s: float = 2.0

    def __post_init__(self) -> None:
        if self.burst < self.shards:
            raise UsageError(
                f"{self.shards} shards need a burst of at least {self.shards} requests, because each may "
                f"send one at any time; it is {self.burst:g}: set [budget] burst, or use fewer shards"
            )

    @property
    def counted_s(self) -> float:
        """How long a share counts after it was sent."""
        return self.duration_s + self.slack_s


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What a shard sends every few seconds. ``run`` is the number that its first answer gave it, 0 before.
    ``holds`` is the share that it holds, if any. ``curve`` is None if it is as before, ``lessons`` too."""

    shard: int
    run: int = 0
    holds: ShareNumber | None = None
    curve: SpendCurve | None = None
    items: int = 0
    lessons: Lessons | None = None


@dataclass(frozen=True, slots=True)
class ShareAnswer:
    """``share`` is None if there is none yet. It lasts ``duration_s`` from when the report was sent. With
    ``is_replaced``, another run of this shard has begun, and this one must end. ``common`` is what all shards
    learned, in answers to reports with lessons."""

    run: int
    share: Share | None
    duration_s: float
    price: float = 0.0
    is_replaced: bool = False
    common: CommonLessons | None = None


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The state of the coordinator. ``runs`` has the number of the latest run of each shard, ``ledgers`` the
    shares by "shard/run". Curves and item counts are those of the last report; they are not saved."""

    budget: ClusterBudget
    term: int = 1
    epoch: int = 0
    runs: Mapping[int, int] = field(default_factory=dict)
    ledgers: Mapping[str, ShardLedger] = field(default_factory=dict)
    curves: Mapping[int, SpendCurve] = field(default_factory=dict)
    items: Mapping[int, int] = field(default_factory=dict)
    price: float = 0.0

    # Messages.

    def with_report(self, report: ShardReport, now_s: float) -> tuple[CoordinatorState, ShareAnswer]:
        """Return the state after a report, and the answer. If ``run`` in the answer is not that of the
        report, the state must be saved before the answer is sent."""
        duration_s, latest = self.budget.duration_s, self.runs.get(report.shard, 0)
        if report.run != latest and report.run != 0:
            return self, ShareAnswer(report.run, None, duration_s, is_replaced=True)
        run = report.run or latest + 1
        name = _name(report.shard, run)
        ledger = self.ledgers.get(name, ShardLedger()).at(now_s).with_report(report.holds, now_s)
        share = ledger.share
        if share is not None:
            ledger = ledger.with_answer(now_s + self.budget.counted_s)
        state = replace(
            self,
            runs={**self.runs, report.shard: run},
            ledgers={**self.ledgers, name: ledger},
            curves=self.curves if report.curve is None else {**self.curves, report.shard: report.curve},
            items={**self.items, report.shard: report.items},
        )
        return state, ShareAnswer(run, share, duration_s, self.price)

    def rebalanced(self, now_s: float) -> CoordinatorState:
        """Return the state with new shares for the shards that were heard of lately, at the common price of
        their curves. Save it before any further answer."""
        ledgers = {name: ledger.at(now_s) for name, ledger in self.ledgers.items()}
        ledgers = {name: each for name, each in ledgers.items() if each.sent or self._is_latest(name)}
        live = [shard for shard in sorted(self.runs) if self._is_live(shard, ledgers, now_s)]
        price, targets = self._targets(live)
        number = ShareNumber(self.term, self.epoch + 1)
        limits = ShardTarget(self.budget.rate_per_s, self.budget.burst)
        ledgers = move_shares(ledgers, targets, limits, number, now_s + self.budget.counted_s)
        return replace(self, epoch=self.epoch + 1, ledgers=ledgers, price=price or self.price)

    def without_runs(self, ended: Mapping[int, int]) -> CoordinatorState:
        """Return the state after runs of shards (numbers by shard) that ended in order: they spend nothing
        any more, so that the next runs need not wait until their shares have ended. Save it."""
        over = {_name(shard, run) for shard, run in ended.items()}
        return replace(self, ledgers={name: each for name, each in self.ledgers.items() if name not in over})

    def _is_latest(self, name: str) -> bool:
        shard, _, run = name.partition("/")
        return self.runs.get(int(shard)) == int(run)

    def _is_live(self, shard: int, ledgers: Mapping[str, ShardLedger], now_s: float) -> bool:
        ledger = ledgers.get(_name(shard, self.runs[shard]))
        return ledger is not None and ledger.heard_s + self.budget.duration_s > now_s

    def live_shards(self, now_s: float) -> list[int]:
        """Return the shards that were heard of within the duration of a share."""
        return [shard for shard in sorted(self.runs) if self._is_live(shard, self.ledgers, now_s)]

    def _targets(self, live: list[int]) -> tuple[float, dict[str, ShardTarget]]:
        """Return the common price and, for each live shard, what it should have. A shard that has sent no
        curve yet gets the part of its items."""
        budget = self.budget
        curved = [shard for shard in live if shard in self.curves]
        total = sum(self.items.get(shard, 0) + 1 for shard in live)
        rates = {
            shard: budget.rate_per_s * (self.items.get(shard, 0) + 1) / total
            for shard in live
            if shard not in self.curves
        }
        left = max(budget.rate_per_s - sum(rates.values()), 0.0)
        shared = share_budget([self.curves[shard] for shard in curved], left)
        rates |= dict(zip(curved, shared.spend.tolist(), strict=True))
        least = FLOOR * budget.rate_per_s / max(budget.shards, 1)
        floored = {shard: max(rate, least) for shard, rate in rates.items()}
        scale = budget.rate_per_s / max(sum(floored.values()), 1e-300)
        spare = budget.burst - budget.shards
        targets = {}
        for shard, rate in floored.items():
            rate *= scale
            burst = 1.0 + spare * rate / budget.rate_per_s
            targets[_name(shard, self.runs[shard])] = ShardTarget(rate, burst)
        return shared.price, targets

    # What may be spent now.

    def committed(self, now_s: float) -> tuple[float, float]:
        """Return the rate and burst that all shards together may be using at ``now_s``."""
        return largest_sum(ledger.at(now_s) for ledger in self.ledgers.values())

    def share_of(self, shard: int) -> Share | None:
        run = self.runs.get(shard)
        ledger = None if run is None else self.ledgers.get(_name(shard, run))
        return None if ledger is None else ledger.share

    # Saving.

    def pack(self) -> bytes:
        """Return what a next coordinator needs: runs and shares."""
        shares = {
            name: [[*sent.share.number, sent.share.rate_per_s, sent.share.burst] for sent in ledger.sent]
            for name, ledger in self.ledgers.items()
        }
        saved = {"term": self.term, "epoch": self.epoch, "price": self.price}
        return json.dumps(saved | {"runs": list(self.runs.items()), "shares": shares}).encode()

    @classmethod
    def resumed(cls, packed: bytes | None, budget: ClusterBudget, now_s: float) -> CoordinatorState:
        """Return the state of a new coordinator after one that saved ``packed`` (None: there was none). The
        old one may have answered for ``duration_s`` after its last save, so that a share may be held until
        ``duration_s + counted_s`` from now."""
        if packed is None:
            return cls(budget)
        saved, until_s = json.loads(packed), now_s + budget.duration_s + budget.counted_s
        ledgers = {
            name: ShardLedger(
                tuple(
                    SentShare(Share(ShareNumber(term, epoch), rate, burst), until_s)
                    for term, epoch, rate, burst in shares
                )
            )
            for name, shares in saved["shares"].items()
        }
        runs = {int(shard): int(run) for shard, run in saved["runs"]}
        term = int(saved["term"]) + 1
        return cls(budget, term, int(saved["epoch"]), runs, ledgers, price=float(saved["price"]))


def _name(shard: int, run: int) -> str:
    return f"{shard}/{run}"


def is_overdue(saved_s: float, budget: ClusterBudget, now_s: float) -> bool:
    """Return whether a coordinator that last saved at ``saved_s`` must not answer any more."""
    return math.isinf(saved_s) or now_s - saved_s >= budget.duration_s
