"""Five tables and eight views under load: younger than in turn, in turn if stale, or in proportion."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from bench.view_engine import run_engine
from bench.view_simulation import run_afresh, run_rival
from bench.view_world import LOADS, Load
from bench.views import POLICIES, ROWS, SHARE, in_turn, make_world, proportional, result_of, run, within
from tests.servers.postgres import running_postgres
from tests.slow_cases import with_slow_cases


@pytest.mark.parametrize("name", with_slow_cases(list(LOADS), kept=1))
def test_views_are_younger_in_virtual_time(name: str) -> None:
    """A small part of the benchmark: one draw of the writes."""
    load = replace(LOADS[name], seconds=60.0, seed=20)
    ours = run_afresh(load)
    others = [run_rival(other, load) for other in POLICIES]
    assert ours.age_s < min(other.age_s for other in others)
    assert 0.7 * SHARE * load.seconds < ours.spent_s < 1.1 * SHARE * load.seconds


@pytest.mark.slow
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_views_are_younger_at_the_same_seconds(load: Load) -> None:
    load = replace(load, seconds=40.0, seed=load.seed + 10)
    with running_postgres() as server:
        make_world(server.url(), ROWS)
        ran = run_engine(server.url(), load, SHARE, look_every_s=0.25)
        others = []
        for policy in (in_turn, proportional):
            make_world(server.url(), ROWS)
            others.append(asyncio.run(run(server.url(), policy, load)))
    ours = result_of(ran.refreshes, ran.committed, load, ran.spent_s)
    assert ours.age_s < min(other.age_s for other in others)
    assert ours.spent_s <= 1.1 * max(other.spent_s for other in others)
    held = within(ran, load)
    assert len(held) == 8
    assert sum(held) >= 6  # at 90 %
