"""Histories of disturbed fleets: whatever happens, outcomes, budget, the order of hooks and feed are kept.

A small history runs with every change. The slow ones are 1,000 kills, on SQLite and PostgreSQL with one and
three engines, and long mixtures of kills, pauses, cuts of the network and jumps of clocks.

Disturbances last for fixed or random times by design: they make what is judged, and nothing waits for its
result that way. A history must be in order whatever the moments were, on a slow machine too.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event

import numpy as np
import pytest
from tests.engine.history import Told, judge_order
from tests.engine.recorded_fleet import BUDGET, LEASE_S, RecordedFleet, Worker, recorded_fleet
from tests.servers.quick_afresh import QuickAfresh
from tests.stores.backends import schema_url

pytestmark = pytest.mark.waits

_LONG_PAUSE_S = LEASE_S + 0.5


def kill(fleet: RecordedFleet, worker: Worker, _rng: np.random.Generator) -> None:
    fleet.kill(worker)


def pause(fleet: RecordedFleet, worker: Worker, _rng: np.random.Generator) -> None:
    fleet.pause(worker, _LONG_PAUSE_S)


def cut_network(fleet: RecordedFleet, worker: Worker, rng: np.random.Generator) -> None:
    """Lose the next COMMIT or its answer, and keep the engine away from the database for a while."""
    assert worker.proxy is not None
    fleet.wait_for_start(worker)
    worker.proxy.away_after_cut = True
    worker.proxy.cut = "after" if rng.random() < 0.7 else "before"
    Event().wait(0.5)
    worker.proxy.hang_up()
    worker.proxy.cut, worker.proxy.away = None, False


def freeze_network(fleet: RecordedFleet, worker: Worker, _rng: np.random.Generator) -> None:
    """Nothing arrives for longer than a lease lasts; then everything does."""
    assert worker.proxy is not None
    fleet.wait_for_start(worker)
    worker.proxy.freeze()
    Event().wait(_LONG_PAUSE_S)
    worker.proxy.thaw()


def set_clock(_fleet: RecordedFleet, worker: Worker, rng: np.random.Generator) -> None:
    """Set the clock of one engine forward or back, by seconds or by hours."""
    worker.set_clock(float(rng.choice([-7200.0, -3.0, 0.0, 3.0, 7200.0])))


ALL = (kill, pause, cut_network, freeze_network, set_clock)


def assert_kept(fleet: RecordedFleet) -> None:
    fleet.finish()
    problems = fleet.problems()
    assert not problems, "\n".join(problems[:20])


def test_the_judge_sees_a_hook_that_is_told_late() -> None:
    """The order that kill -9 left in 0.1.0: v5 … v13, then v4."""
    numbers = [1, 2, 3, *range(5, 14), 4]
    assert judge_order([Told("a", number, number) for number in numbers], {"a": 13})


def test_a_fleet_that_is_disturbed_in_every_way(
    quick_afresh: QuickAfresh, postgres_url: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng()
    url = schema_url(postgres_url, tmp_path)
    with recorded_fleet(quick_afresh, tmp_path / "fleet", url, 3, pages=24) as fleet:
        for disturbance in rng.permutation(np.array(ALL)):
            fleet.wait_for_requests(int(rng.integers(1, 30)))
            disturbance(fleet, fleet.workers[int(rng.integers(3))], rng)
        assert_kept(fleet)


@pytest.mark.slow
@pytest.mark.parametrize("disturbances", [150])
def test_a_fleet_that_is_disturbed_for_long(
    quick_afresh: QuickAfresh, postgres_url: str, tmp_path: Path, disturbances: int
) -> None:
    rng = np.random.default_rng()
    url = schema_url(postgres_url, tmp_path)
    with recorded_fleet(quick_afresh, tmp_path / "fleet", url, 3, pages=60, lasts_s=3600.0) as fleet:
        for _ in range(disturbances):
            fleet.wait_for_requests(int(rng.integers(1, 60)))
            disturbance = ALL[int(rng.integers(len(ALL)))]
            disturbance(fleet, fleet.workers[int(rng.integers(3))], rng)
        assert_kept(fleet)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_thousand_kills(
    quick_afresh: QuickAfresh, postgres_url: str, tmp_path: Path, backend: str, workers: int
) -> None:
    """250 kills for each of the four; a tenth of them while the engine starts."""
    rng = np.random.default_rng()
    url = (
        schema_url(postgres_url, tmp_path)
        if backend == "postgres"
        else f"sqlite:{tmp_path / 'fleet' / 'shared.db'}"
    )
    with recorded_fleet(quick_afresh, tmp_path / "fleet", url, workers, pages=60, lasts_s=3600.0) as fleet:
        while fleet.kills < 250:
            if rng.random() < 0.9:
                fleet.wait_for_requests(int(rng.integers(1, int(BUDGET))))
            Event().wait(rng.random() * 0.1)
            fleet.kill(fleet.workers[int(rng.integers(workers))])
        assert_kept(fleet)
