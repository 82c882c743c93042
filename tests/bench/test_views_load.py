"""Five tables and eight views under load: younger than in turn, in turn if stale, or in proportion."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.view_simulation import run_afresh, run_rival
from bench.view_world import LOADS, Load
from bench.views import POLICIES, SHARE, draw_writes, in_turn, mean_result, proportional
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
    """The mean of three draws: in one of them the ratio to another policy varies by a tenth."""
    rivals = {"in turn": in_turn, "in proportion": proportional}
    loads = [replace(load, seconds=40.0, seed=load.seed + 10 * at) for at in (1, 2, 3)]
    with running_postgres() as server:
        draws = [draw_writes(server, each, rivals) for each in loads]
    ours = mean_result([draw.ours for draw in draws])
    others = [mean_result([draw.rivals[rival] for draw in draws]) for rival in rivals]
    assert ours.age_s < min(other.age_s for other in others)
    assert ours.spent_s <= 1.1 * max(other.spent_s for other in others)
    held = [each for draw in draws for each in draw.held]
    assert len(held) == 24
    assert sum(held) >= 18  # at 90 %
