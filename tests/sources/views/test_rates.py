"""How often tables change, from differences of their counters; and the measured cost of refreshes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.sources.views.rates import WriteTally, table_rates, view_rates
from afresh.sources.views.tracker import MeasuredCost


def test_rates_of_transactions_whatever_their_size() -> None:
    """Intervals of 90 % hold the true rate nine times out of ten, though rows come in batches."""
    rng = np.random.default_rng(7)
    truth, each_s, held, means = 0.12, 5.0, 0, []
    for _ in range(400):
        tally = WriteTally()
        for writes in rng.poisson(truth * each_s, 60):
            tally = tally.add(each_s, int(rng.geometric(0.02, writes).sum()))
        found = table_rates({"t": tally})
        held += bool(found.low[0] <= truth <= found.high[0])
        means.append(float(found.rate[0]))
        assert tally.dispersion > 20
    assert 0.86 <= held / 400 <= 0.95
    assert np.mean(means) == pytest.approx(truth, rel=0.04)


def test_rows_count_where_every_reading_found_a_change() -> None:
    rng = np.random.default_rng(3)
    tally = WriteTally()
    for writes in rng.poisson(200.0, 100):
        tally = tally.add(5.0, int(writes))
    found = table_rates({"t": tally})
    assert float(found.rate[0]) == pytest.approx(40.0, rel=0.5)
    assert found.low[0] < 40.0 < found.high[0]
    assert found.low[0] < found.rate[0] <= found.high[0]


def test_old_readings_lose_weight() -> None:
    tally = WriteTally()
    for _ in range(1000):
        tally = tally.add(86400.0, 1)
    assert tally.readings == pytest.approx(7.5, rel=0.01)


def test_views_without_bases_and_tables_without_readings() -> None:
    assert view_rates([], {}) == {}
    found = view_rates([("v", "r")], {})["v"]
    assert (found.rate, found.polls) == (0.0, 0)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_a_measured_cost_lies_between_the_least_and_the_most(measured: list[float]) -> None:
    cost = MeasuredCost()
    for one in measured:
        cost = cost.add(one)
    assert min(measured) * (1 - 1e-9) <= cost.mean <= max(measured) * (1 + 1e-9)
    assert cost.count == len(measured)
    if len(measured) <= 20:
        assert cost.mean == pytest.approx(np.mean(measured), rel=1e-9, abs=1e-9)
