"""What a shard learns reaches the others, through a real coordinator, and what they learned is used."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.cluster.coordination import ClusterBudget, ShardReport, ShareAnswer
from afresh.cluster.coordinator import Coordinator
from afresh.cluster.shard_reporter import LESSONS_EVERY_S, CoordinatorLink, ShardReporter
from afresh.engine.engine import Engine
from afresh.engine.runner.engine_run import Run
from afresh.stores.sqlite.memory_store import MemoryStore

BUDGET = ClusterBudget(4.0, 4.0, 2)


class Shard:
    """A shard of a cluster in virtual time: its engine, and what it sent and got."""

    def __init__(self, number: int, engine: Engine, coordinator: Coordinator) -> None:
        self.engine, self.coordinator = engine, coordinator
        self.sent: list[ShardReport] = []
        self.runs: list[Run] = []
        self._reporter = ShardReporter(
            number, engine.store, CoordinatorLink(self._report, self._deliver), 3.0
        )
        engine.beside = self._beside

    def _beside(self, run: Run) -> Coroutine[object, object, None]:
        self.runs.append(run)
        return self._reporter(run)

    async def _report(self, report: ShardReport) -> ShareAnswer | None:
        self.sent.append(report)
        return self.coordinator.report(report)

    async def _deliver(self, packed: bytes) -> bool | None:
        raise AssertionError(packed)


def test_a_new_shard_starts_from_what_the_others_learned(tmp_path: Path) -> None:
    with VirtualSite([0.05] * 12, lasts_s=400.0) as site:
        coordinator = Coordinator(MemoryStore(), site.time, BUDGET, owner="one", every_s=1.0)
        with site.engine(tmp_path / "a", store=MemoryStore()) as engine:
            old = Shard(0, engine, coordinator)
            engine.add(site.urls())
            engine.run(for_s=200.0)
            learned = old.runs[0].scheduler.policy.ranking.adaptive.belief
        told = sum(report.lessons is not None for report in old.sent)
        assert told == pytest.approx(200.0 / LESSONS_EVERY_S, abs=2)
        with site.engine(tmp_path / "b", store=MemoryStore()) as engine:
            new = Shard(1, engine, coordinator)
            engine.run(for_s=4.0)  # it has no items yet
            belief = new.runs[0].scheduler.policy.ranking.adaptive.belief
    typical, started_with = (each.prior @ np.log(each.rates) for each in (learned, belief))
    assert typical == pytest.approx(np.log(0.05), abs=1.0)
    assert started_with == pytest.approx(typical, abs=0.7)


def test_reports_without_lessons_are_answered_without(tmp_path: Path) -> None:
    del tmp_path
    with VirtualSite() as site:
        coordinator = Coordinator(MemoryStore(), site.time, BUDGET, owner="one", every_s=1.0)
        answer = coordinator.report(ShardReport(0))
    assert answer is not None
    assert answer.common is None
