"""One interval for all items beside the best one of each."""

from __future__ import annotations

import pytest

from afresh.money.best_interval import best_intervals
from afresh.money.total_refreshes import best_total_refreshes
from afresh.papers.razniewski.incomes import against_uniform


def test_one_interval_for_all_loses_nothing_only_where_it_is_the_best_of_each() -> None:
    best = float(best_intervals(0.163, 1.0, 1.0).interval)
    alike, each = against_uniform([0.163, 0.163], 1.0, 1.0, interval=best)
    assert alike == pytest.approx(each, rel=1e-12)
    alike, each = against_uniform([0.163, 0.4], 1.0, 1.0, interval=best)
    assert alike < each


def test_counts_are_repeats() -> None:
    counted = against_uniform([0.1, 0.4], 1.0, 0.5, interval=3.0, count=[3, 2], update_cost=0.1)
    repeated = against_uniform([0.1, 0.1, 0.1, 0.4, 0.4], 1.0, 0.5, interval=3.0, update_cost=0.1)
    assert counted == pytest.approx(repeated)
    assert best_total_refreshes([0.1, 0.4], 1.0, 0.5, count=[3, 2]) == pytest.approx(
        best_total_refreshes([0.1, 0.1, 0.1, 0.4, 0.4], 1.0, 0.5)
    )
