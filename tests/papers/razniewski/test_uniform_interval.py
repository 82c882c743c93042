"""One interval for all items and a fixed number of refreshes, beside the best ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from afresh.money.best_interval import best_intervals
from afresh.money.total_refreshes import best_total_refreshes
from afresh.papers.razniewski.crawl_income import refreshes_by_ratio
from afresh.papers.razniewski.incomes import against_uniform, net_income
from afresh.values.errors import InputError

TIMES = settings(max_examples=30, deadline=None)
SPECS = ["exponential", "linear", "weibull:0.7", "lomax:1.5"]
amounts = hnp.arrays(np.float64, 6, elements=st.floats(1e-2, 1e1))
columns = st.fixed_dictionaries(
    {
        "rate": amounts,
        "benefit": amounts,
        "cost": hnp.arrays(np.float64, 6, elements=st.floats(1e-3, 1.0)),
        "update_cost": st.one_of(st.just(0.0), st.floats(1e-3, 1e-1)),
        "decay": st.sampled_from(SPECS),
    }
)


@TIMES
@given(columns)
def test_no_single_interval_beats_the_best_one(given_columns: dict[str, Any]) -> None:
    best = against_uniform(**given_columns)
    scale = given_columns["benefit"].sum()
    others = net_income([[u] for u in np.geomspace(1e-4, 1e4, 400)], **given_columns).sum(axis=1)
    assert best.net_income >= max(0.0, others.max()) - 1e-9 * scale
    assert best.loss >= -1e-9 * scale
    assert best.best_net_income == pytest.approx(best_intervals(**given_columns).net_income.sum())


def test_a_loss_of_nothing_has_no_share() -> None:
    assert np.isnan(against_uniform([10.0, 20.0], 1.0, 1.0).loss_share)
    assert against_uniform(0.163, 1.0, 1.0).loss == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match="interval is 0"):
        against_uniform(0.163, 1.0, 1.0, interval=0)


def test_counts_are_repeats() -> None:
    counted = against_uniform([0.1, 0.4], 1.0, 0.5, count=[3, 2], update_cost=0.1)
    repeated = against_uniform([0.1, 0.1, 0.1, 0.4, 0.4], 1.0, 0.5, update_cost=0.1)
    assert counted.interval == pytest.approx(repeated.interval)
    assert counted.net_income == pytest.approx(repeated.net_income)
    assert best_total_refreshes([0.1, 0.4], 1.0, 0.5, count=[3, 2]) == pytest.approx(
        best_total_refreshes([0.1, 0.1, 0.1, 0.4, 0.4], 1.0, 0.5)
    )


def test_ratios_where_nothing_pays_have_no_gain() -> None:
    table = refreshes_by_ratio([10.0, 20.0], [1.0, 50.0], fixed=1.0)
    assert table.refreshes[0] == 0
    assert np.isnan(table.gain[0])
    assert 0 < table.gain[1] < 1
