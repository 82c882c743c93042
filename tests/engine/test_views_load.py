"""Five tables and four views under a steady load: stale for less time than in turn or in proportion."""

from __future__ import annotations

import asyncio

import numpy as np
import psycopg
import pytest
from bench.view_engine import run_engine
from bench.view_world import make, staleness
from bench.views import in_turn, proportional, run, true_rate
from tests.servers.postgres import running_postgres

SHARE = 0.05


@pytest.mark.slow
def test_views_are_stale_for_less_of_the_time_at_the_same_seconds() -> None:
    seconds, pace, seed = 30.0, 1.0, 2
    with running_postgres() as server:
        _make(server.url())
        ran = run_engine(server.url(), seconds, pace, seed, SHARE, look_every_s=0.25)
        others = []
        for policy in (in_turn, proportional):
            _make(server.url())
            others.append(asyncio.run(run(server.url(), policy, seconds, pace, seed, prompt=True)))
    ours = float(np.mean(list(staleness(ran.refreshes, ran.committed, seconds).values())))
    spent_s = sum(one.end_s - one.start_s for one in ran.refreshes)
    assert ours < min(other.stale for other in others)
    assert spent_s <= 1.1 * min(other.spent_s for other in others)
    held = [view.low_per_s <= true_rate(view.item) <= view.high_per_s for view in ran.status.views]
    assert sum(held) >= 3  # of four, at 90 %


def _make(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        make(connection, 4000)
