"""The fourth of benefit, interval, rate and cost, and back again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from afresh.model.decay import Empirical, Exponential, Geometric
from afresh.money.best_interval import best_interval
from afresh.money.inverse import implied_benefit, implied_cost, implied_rates
from afresh.values.errors import InfeasibleError, InputError, UsageError

TIMES = settings(deadline=None)
SMOOTH = [
    "exponential",
    "linear",
    "weibull:0.7",
    "weibull:2.5",
    "lomax:0.8",
    "lomax:1.5",
    "gamma:0.7",
    "gamma:3",
]
amounts = st.floats(1e-2, 1e2)
extras = st.one_of(st.just(0.0), st.floats(1e-3, 1e-1))


@pytest.mark.parametrize("decay", SMOOTH)
@TIMES
@given(rate=amounts, benefit=amounts, cost=amounts, update=extras, stale=extras, size=st.floats(1, 50))
@example(rate=8.0, benefit=10.0, cost=3.0, update=0.0625, stale=0.0, size=11.75)  # two rates nearly one
@example(rate=0.1, benefit=0.0625, cost=3.0, update=0.0625, stale=0.0625, size=11.75)
def test_round_trips(
    decay: str, rate: float, benefit: float, cost: float, update: float, stale: float, size: float
) -> None:
    """Wherever refreshing pays, benefit, cost and rate come back from the interval."""
    options: dict[str, Any] = {
        "update_cost": update,
        "stale_cost": stale,
        "size": size,
        "cost_of_size": "sqrt",
        "decay": decay,
    }
    best = best_interval(rate, benefit, cost, **options)
    never = -stale * size
    if best.futile or best.net_income - never < 1e-4 * size * (benefit + stale):
        return
    assert implied_benefit(best.interval, rate, cost, **options) + stale == pytest.approx(
        benefit + stale, rel=1e-7
    )
    assert implied_cost(best.interval, rate, benefit, **options) == pytest.approx(cost, rel=1e-7)
    rates = implied_rates(best.interval, benefit, cost, **options)
    # at the very peak two rates fall together and rounding may lose both
    assert any(found == pytest.approx(rate, rel=1e-4) for found in rates) or _near_the_peak(
        rate, best.interval, options
    )


def _near_the_peak(rate: float, interval: float, options: dict[str, Any]) -> bool:
    """Whether a ten-thousandth more or less of the rate moves the cost by less than a ten-millionth."""
    costs = [implied_cost(interval, [rate * x], 1.0, **options)[0] for x in (0.9999, 1.0, 1.0001)]
    return bool(np.ptp(costs) < 1e-7 * costs[1])


@TIMES
@given(st.floats(-12, 12), st.floats(-6, 1.4), st.floats(-12, 12))
def test_exponential_over_24_decades(scale: float, age: float, money: float) -> None:
    rate, cost = 10.0**scale, 10.0**money
    u = 10.0**age / rate
    benefit = implied_benefit(u, rate, cost)
    assert best_interval(rate, benefit, cost).interval == pytest.approx(u, rel=1e-4)
    assert implied_cost(u, rate, benefit) == pytest.approx(cost, rel=1e-12)


def test_two_rates_one_rate_none() -> None:
    slow, fast = implied_rates(4.0, 1.0, 1.0)
    assert slow < 1.7933 / 4 < fast
    for rate in (slow, fast):
        assert best_interval(rate, 1.0, 1.0).interval == pytest.approx(4.0, rel=1e-9)
    assert implied_rates(1 / 0.299, 1.0, 1.0) == ()  # g(r)/r is 0.2984 at its peak
    assert len(implied_rates(4.0, 1.0, 1.0, decay="linear")) == 1
    assert implied_rates(4.0, 1.0, 1.0, decay="linear")[0] == pytest.approx(2 / 16)
    # the fast one changes 75² times between refreshes and earns nothing that could be seen
    assert implied_rates(1 / 75, 11350.2, 1.0) == pytest.approx((1.0,), rel=1e-4)


def test_intervals_that_are_never_the_best() -> None:
    with pytest.raises(InfeasibleError, match="no benefit makes this interval the best"):
        implied_benefit(10.0, 0.1, 1.0, decay="linear")
    with pytest.raises(InfeasibleError, match="no cost makes"):
        implied_cost(1.0, 2.0, 1.0, update_cost=1.0)
    with pytest.raises(InfeasibleError):
        implied_benefit(1.0, 0.0, 1.0)
    some = implied_benefit([5.0, 10.0, 5.0], [0.1, 0.1, 0.0], 1.0, decay="linear")
    assert some[0] == pytest.approx(0.8)
    assert np.isnan(some[1:]).all()


def test_steps_are_the_best_for_a_range_of_benefits() -> None:
    """The smallest benefit and the largest cost of that range come back; between steps nothing does."""
    for decay in (Geometric(0.2), Empirical([1.0, 2.0, 3.0, 4.0], [0.8, 0.64, 0.5, 0.2])):
        least = implied_benefit(3.0, 0.0, 1.0, update_cost=0.1, decay=decay)
        above, below = (
            best_interval(0.0, least * x, 1.0, update_cost=0.1, decay=decay) for x in (1 + 1e-9, 1 - 1e-9)
        )
        assert above.interval == pytest.approx(3.0)
        assert below.interval > 3.5
        most = implied_cost(3.0, 0.0, least, update_cost=0.1, decay=decay)
        assert most == pytest.approx(1.0)
        assert np.isnan(implied_benefit([2.5], 0.0, 1.0, decay=decay)).all()
        assert np.isnan(implied_cost([2.5], 0.0, 1.0, decay=decay)).all()


def test_straight_lines_come_back() -> None:
    decay = Empirical([1.0, 3.0], [0.7, 0.0], linear=True)
    best = best_interval(0.0, 2.0, 0.5, update_cost=0.1, decay=decay)
    assert implied_benefit(best.interval, 0.0, 0.5, update_cost=0.1, decay=decay) == pytest.approx(
        2.0, rel=1e-6
    )
    assert implied_cost(best.interval, 0.0, 2.0, update_cost=0.1, decay=decay) == pytest.approx(0.5, rel=1e-6)


def test_a_stale_cost_alone_may_ask_for_more() -> None:
    assert implied_benefit(3.0, 0.163, 1.0, stale_cost=2.0) == pytest.approx(
        implied_benefit(3.0, 0.163, 1.0) - 2.0
    )
    assert implied_benefit(3.0, 0.163, 1.0, stale_cost=2.0) < 0


def test_wrong_questions() -> None:
    with pytest.raises(UsageError, match="has steps"):
        implied_rates(3.0, 1.0, 1.0, decay="geometric")
    with pytest.raises(UsageError, match="has its rate already"):
        implied_rates(3.0, 1.0, 1.0, decay=Exponential(1.0))
    with pytest.raises(InputError, match="interval is 0"):
        implied_benefit(0.0, 1.0, 1.0)
    with pytest.raises(InputError, match="cost is 0"):
        implied_benefit(1.0, 1.0, 0.0)
