"""Every source may have an objective of its own; what a poll gains is compared over all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import NOW, policy
from tests.engine.virtual_site import VirtualSite

from afresh.engine.scheduler.row_policy import RowPolicy


def always_changing(objective: str) -> RowPolicy:
    """Two items of two sources that changed at each of forty polls; ``objective`` is that of the second."""
    chosen = policy(2, source=np.array([1, 2]))
    rows, now_s = np.arange(2), NOW
    for _ in range(40):
        now_s += 10.0
        chosen.ranking.learn(rows, np.full(2, now_s), np.full(2, 10.0), np.ones(2, dtype=bool))
        chosen.item_rows.polled_s[:] = now_s
    if objective != chosen.ranking.objective:
        chosen.ranking.source_objectives = {2: objective}
    return chosen


def test_an_item_that_freshness_drops_is_polled_for_its_age() -> None:
    same, other = always_changing("freshness"), always_changing("age")
    for chosen in (same, other):
        chosen.record_pick(100.0)  # the price: a hundred seconds of freshness
    assert np.isinf(same.intervals_s(np.arange(2))).all()
    first, second = other.intervals_s(np.arange(2))
    assert np.isinf(first)
    assert 10.0 < second < np.inf


def test_an_age_of_one_mean_interval_counts_as_much_as_a_stale_copy() -> None:
    other, now_s = always_changing("age"), NOW + 400.0
    unit_s = 1.0 / other.ranking.adaptive.items.mean_frequency
    value = other.ranking.values(now_s + 1000.0)
    plain = always_changing("freshness").ranking.values(now_s + 1000.0)
    assert value[0] == pytest.approx(plain[0])
    # Under age the gain of an item that changes all the time grows like τ²/2.
    assert value[1] == pytest.approx(1000.0**2 / 2 / unit_s, rel=0.2)


def test_rows_that_others_picked_are_valued_under_their_own_objective_and_decay() -> None:
    other, now_s = always_changing("age"), NOW + 1400.0
    value = other.ranking.values(now_s)
    assert other.ranking.values_of(np.arange(2), now_s) == pytest.approx(value)
    other.ranking.source_decays = {1: "linear"}
    decayed = other.ranking.values_of(np.arange(2), now_s)
    assert decayed == pytest.approx(other.ranking.values(now_s))
    assert decayed[0] == pytest.approx(value[0] / 2, rel=0.2)  # ∫z of a linear decay is half as long
    assert other.ranking.values_of(np.array([1]), now_s)[0] == 0.0


def test_a_source_with_its_own_objective_in_a_run(tmp_path: Path) -> None:
    """A page that changes far too fast for its freshness is polled all the same, for its age."""

    def polls_of_the_fast_page(source: str) -> int:
        site = VirtualSite([200.0, *[0.02] * 9])
        folder = tmp_path / ("other" if source else "same")
        folder.mkdir()
        with site.engine(folder, budget="1/s", source=source) as engine:
            engine.add(site.urls())
            engine.run(for_s=150.0)
            return engine.why(site.urls()[0]).item.polls

    assert polls_of_the_fast_page("objective = 'age'") > 1.5 * polls_of_the_fast_page("")
