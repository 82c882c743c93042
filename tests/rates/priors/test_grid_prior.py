"""Which form the rates have, Gamma or lognormal: the items say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rates.populations import draw_rates, poll

from afresh.rates.likelihood import log_likelihood, rate_grid
from afresh.rates.priors.gamma_prior import GammaPrior, cell_masses, fit_gamma_table, weak_prior
from afresh.rates.priors.grid_prior import LogNormalPrior, fit_lognormal


def fitted(population: str, number: int) -> tuple[LogNormalPrior, float]:
    rng = np.random.default_rng(1)
    polls = poll(draw_rates(population, 2000, rng), number, number, rng, scale=5.0, regular=True)
    grid = rate_grid(polls)
    table = log_likelihood(polls, grid)
    gamma = cell_masses(fit_gamma_table(table, grid, weak_prior(polls)), grid)[0]
    return fit_lognormal(table, grid, gamma, np.ones(2000))


@pytest.mark.parametrize(
    ("population", "mean", "deviation"), [("lognormal", -1.5, 1.2), ("wide lognormal", -2, 2)]
)
def test_lognormal_rates_are_known_as_such(population: str, mean: float, deviation: float) -> None:
    found, probable = fitted(population, 30)
    assert probable > 0.99
    assert found.mean == pytest.approx(mean, abs=0.25)
    assert found.deviation == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("population", ["gamma 0.2", "gamma 0.5", "gamma 2"])
def test_gamma_rates_stay_gamma(population: str) -> None:
    assert fitted(population, 30)[1] < 0.01


def test_masses_and_density_agree_on_a_fine_grid() -> None:
    grid = np.exp2(np.arange(-200, 200) / 16)
    prior = LogNormalPrior(0.5, 1.5)
    np.testing.assert_allclose(prior.cell_masses(grid).sum(), 1.0)
    none = np.full((1, grid.size), -1000.0)
    density = np.exp(prior.mixed_density(none, grid, 0.5))[0]
    np.testing.assert_allclose(2 * density[1:-1], prior.cell_masses(grid)[1:-1], rtol=1e-2)  # ends are open


def test_nothing_is_lost_where_one_form_is_certain() -> None:
    grid = np.exp2(np.arange(-20.0, 10.0))
    gamma = np.log(cell_masses(GammaPrior.of(0.5, 1.0), grid))
    for probable in (1e-304, 1.0):
        assert np.all(np.isfinite(LogNormalPrior(0.0, 0.1).mixed_density(gamma, grid, probable)))
