"""A process that ends leaves its mind behind: the next one ranks, claims and explains as it did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engine.ratelimit.test_fleet_member import name_of_the_dead
from tests.engine.run_through import run_through
from tests.engine.virtual_site import VirtualSite

from afresh.engine.engine import Engine
from afresh.engine.runner.engine_run import Run
from afresh.engine.scheduler.restore import restore_scheduler, unpack_learned
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.state_names import LEARNED
from afresh.values.stored import Worker

RATES = np.repeat([0.0, 0.3, 3.0], 10)


def ran(site: VirtualSite, engine: Engine, for_s: float) -> Run:
    """A run that has ended."""
    return site.time.run(run_through(engine, for_s=for_s))


def again(engine: Engine, now_s: float) -> Scheduler:
    """What the next process knows."""
    return restore_scheduler(engine.store, engine.current(), engine.store.plan.columns(), now_s)


def test_the_next_process_ranks_as_the_last_one_did(tmp_path: Path) -> None:
    with VirtualSite(RATES.tolist()) as site, site.engine(tmp_path, budget="60/s") as engine:
        engine.add(site.urls())
        before = ran(site, engine, 3.0).scheduler
        now_s = site.time.now_s() + 1.0
        after = again(engine, now_s)
        assert after.policy.poll_values(now_s) == pytest.approx(before.policy.poll_values(now_s), rel=1e-4)
        assert after.forecast.mean_freshness(now_s) == pytest.approx(
            before.forecast.mean_freshness(now_s), rel=5e-3
        )
        assert after.policy.shadow_price == pytest.approx(before.policy.shadow_price)
        found = engine.why(site.url(25))
        row = before.item_rows.row(found.item.id)
        assert row is not None
        believed = float(before.forecast.median_rates(np.array([row]))[0])
        assert found.rate_low < believed < found.rate_high


def test_killed_before_anything_common_was_kept_the_evidence_of_each_item_is_there(tmp_path: Path) -> None:
    with VirtualSite(RATES.tolist()) as site, site.engine(tmp_path, budget="60/s") as engine:
        engine.add(site.urls())
        before = ran(site, engine, 3.0).scheduler
        engine.store.state.set({LEARNED: None})
        assert unpack_learned(engine.store.state.get(LEARNED)) is None
        after = again(engine, site.time.now_s())
        old, new = before.policy.ranking.adaptive.rates(), after.policy.ranking.adaptive.rates()
        # The prior is learned anew from the evidence of all: much the same, not exactly.
        assert np.corrcoef(np.log(old), np.log(new))[0, 1] > 0.9


def test_what_a_killed_engine_was_polling_is_polled_by_the_next_at_once(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 2) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        now_s, dead = site.time.now_s(), name_of_the_dead()
        engine.store.fleet.beat(Worker(dead, "here", now_s, now_s))
        engine.store.leases.take([1], now_s, 1000.0, worker=dead)
        engine.store.leases.take([2], now_s, 1000.0)  # somebody fetches it themselves
        assert "leased by a worker until" in " ".join(engine.why(site.url(0)).reasons)
        engine.run(for_s=1.0)
        polled = {path for _, path in site.requests}
        assert polled == {"/p/0"}
        assert "leased by a worker until" not in " ".join(engine.why(site.url(0)).reasons)
        assert "leased by a worker until" in " ".join(engine.why(site.url(1)).reasons)


def test_two_runs_learn_as_much_as_one(tmp_path: Path) -> None:
    with VirtualSite(RATES.tolist()) as site:
        for _ in range(2):
            with site.engine(tmp_path, budget="60/s") as engine:
                engine.add(site.urls())
                loop = ran(site, engine, 2.0)
        rates = loop.scheduler.policy.ranking.adaptive.rates()
        medians = [float(np.median(rates[begin : begin + 10])) for begin in (0, 10, 20)]
        assert medians[0] < medians[1] < medians[2]
