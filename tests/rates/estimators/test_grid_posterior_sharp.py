"""Items polled for long: the posterior is exact though it is far narrower than a cell of the grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afresh.rates.estimator import estimate_polls
from afresh.rates.estimators.grid_posterior import GridPosterior, find_sharp_items
from afresh.rates.likelihood import log_likelihood, rate_grid
from afresh.rates.poll_table import PollTable, polls_from_intervals
from afresh.rates.priors.gamma_prior import GammaPrior

LONG = 20_000


def long_and_short(rng: np.random.Generator) -> tuple[np.ndarray, PollTable]:
    """Eight items polled for long among 200 polled five times."""
    rates = np.concatenate((np.geomspace(0.05, 3.0, 8), rng.gamma(1.0, 0.5, 200)))
    item = np.repeat(np.arange(208), [LONG] * 8 + [5] * 200)
    elapsed = rng.exponential(1.0, item.size) + 1e-6
    changed = rng.random(item.size) < -np.expm1(-rates[item] * elapsed)
    return rates, PollTable(item, elapsed, changed, rates.size)


def test_long_histories_are_as_exact_as_maximum_likelihood() -> None:
    _, polls = long_and_short(np.random.default_rng(0))
    grid, mle = estimate_polls(polls, method="grid"), estimate_polls(polls, method="mle")
    width = (mle.high - mle.low)[:8]
    for ours, exact in ((grid.rate, mle.rate), (grid.low, mle.low), (grid.high, mle.high)):
        np.testing.assert_allclose((ours[:8] - exact[:8]) / width, 0.0, atol=0.03)


def test_to_plan_with_is_the_same_rate_when_it_is_known_closely() -> None:
    _, polls = long_and_short(np.random.default_rng(1))
    plain, to_plan = estimate_polls(polls), estimate_polls(polls, interval=1.0)
    np.testing.assert_allclose(to_plan.rate[:8], plain.rate[:8], rtol=0.01)


@pytest.mark.parametrize("rate", [0.07, 0.31, 0.9, 2.2])
@pytest.mark.parametrize("kind", ["counts", "stamps", "all"])
def test_events_told_are_exact_too(rate: float, kind: str) -> None:
    rng = np.random.default_rng(3)
    count = rng.poisson(rate, LONG).astype(np.float64)
    since = np.where(count > 0, np.minimum(rng.exponential(1.0 / rate, LONG), 0.99), np.nan)
    bits = polls_from_intervals(np.ones(LONG), count > 0, item=np.zeros(LONG, dtype=np.int64))
    told = np.arange(LONG) % 3
    polls = {
        "counts": replace(bits, count=count),
        "stamps": replace(bits, since=since),
        "all": replace(
            bits, count=np.where(told == 0, count, np.nan), since=np.where(told == 1, since, np.nan)
        ),
    }[kind]
    found = estimate_polls(polls, prior=GammaPrior.of(0.5, 0.5))
    fine = found.rate[0] * np.exp2(np.linspace(-0.3, 0.3, 6001))  # ± 0.2 in ln λ
    height = log_likelihood(polls, fine)[0] + 0.5 * np.log(fine) - 0.5 * fine
    density = np.exp(height - height.max())
    below = np.cumsum(density) / density.sum()
    assert found.rate[0] == pytest.approx(fine @ density / density.sum(), rel=5e-4)
    assert np.interp(found.low[0], fine, below) == pytest.approx(0.05, abs=0.005)
    assert np.interp(found.high[0], fine, below) == pytest.approx(0.95, abs=0.005)


def test_short_histories_and_those_without_a_top_need_no_points_of_their_own() -> None:
    always = polls_from_intervals(
        np.ones(LONG), np.ones(LONG, dtype=bool), item=np.zeros(LONG, dtype=np.int64)
    )
    short = polls_from_intervals(np.ones(50), np.arange(50) % 2 == 0, item=np.zeros(50, dtype=np.int64))
    for polls in (always, short):
        rates = rate_grid(polls)
        assert find_sharp_items(polls, log_likelihood(polls, rates), rates) is None


def test_new_polls_count_after_sharpening() -> None:
    _, polls = long_and_short(np.random.default_rng(2))
    grid = GridPosterior(rate_grid(polls))
    once = grid.update(grid.start(GammaPrior.of(0.5, 0.5), polls.items), polls)
    after = grid.update(grid.sharpen(once, polls), polls)
    np.testing.assert_array_equal(grid.rate(after), grid.rate(grid.update(once, polls)))
