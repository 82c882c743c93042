"""Simulated worlds: every behaviour keeps the mean rate, and each shows what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from afresh.rates.season import Season
from afresh.replay.change_process import RateDrift, gamma_rates, power_law_rates
from afresh.replay.simulated_world import (
    MassEdits,
    SimulatedWorld,
    WorldBehaviour,
    draw_lifetimes,
    simulate_world,
    working_hours,
)
from afresh.values.errors import InputError, UsageError

DAY = 86400.0


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def world(
    nature: WorldBehaviour, *, items: int = 400, per_day: float = 0.5, days: float = 140, **more: Any
) -> SimulatedWorld:
    return simulate_world(np.full(items, per_day / DAY), 0.0, days * DAY, nature, rng(), **more)


def counts(made: SimulatedWorld) -> np.ndarray[Any, Any]:
    return np.bincount(made.item, minlength=made.items)


NATURES = {
    "poisson": WorldBehaviour(),
    "regular": WorldBehaviour(shape=6.0),
    "bursty": WorldBehaviour(shape=0.2),
    "seasonal": WorldBehaviour(season=working_hours(0.9, 0.8)),
    "drifting": WorldBehaviour(drift=RateDrift(0.7, 20 * DAY)),
    "all at once": WorldBehaviour(shape=0.5, season=working_hours(1.0, 1.0), drift=RateDrift(0.5, 10 * DAY)),
}


@pytest.mark.parametrize("name", NATURES)
def test_every_nature_keeps_the_mean_rate(name: str) -> None:
    made = world(NATURES[name])
    seen = counts(made)
    error = seen.std() / np.sqrt(seen.size)
    assert seen.mean() == pytest.approx(70, abs=4 * error)
    assert np.all(np.diff(made.time) >= 0)
    assert made.time[0] > made.start
    assert made.time[-1] <= made.end


@pytest.mark.parametrize("name", NATURES)
def test_the_same_seed_makes_the_same_world(name: str) -> None:
    one, two = world(NATURES[name], items=20), world(NATURES[name], items=20)
    assert np.array_equal(one.item, two.item)
    assert np.array_equal(one.time, two.time)


def test_poisson_gaps_are_exponential_and_counts_poisson() -> None:
    made = world(WorldBehaviour())
    assert counts(made).var() == pytest.approx(70, rel=0.25)
    gaps = np.diff(made.time[made.item == 3]) / DAY * 0.5
    assert stats.kstest(gaps, "expon").pvalue > 0.01


def test_regularity_orders_the_spread_of_counts() -> None:
    spread = [counts(world(WorldBehaviour(shape=shape))).var() / 70 for shape in (5.0, 1.0, 0.2)]
    assert spread == pytest.approx([1 / 5, 1, 1 / 0.2], rel=0.35)  # a renewal count's variance tends to M/k


def test_a_season_has_its_days_and_weekends() -> None:
    made = world(WorldBehaviour(season=working_hours(day=0.9, week=0.75)))
    hour = made.time // 3600 % 24
    weekday = (made.time // DAY + 3) % 7
    share = np.bincount(weekday.astype(int), minlength=7) / made.time.size
    assert share[5:].sum() == pytest.approx(0.5 / 5.5, abs=0.01)
    by_hour = np.bincount(hour.astype(int), minlength=24)
    assert by_hour[13] / by_hour[1] == pytest.approx((1 + 0.9 * 0.9914) / (1 - 0.9 * 0.9914), rel=0.35)


def test_drift_makes_halves_differ_more_than_chance() -> None:
    def spread(nature: WorldBehaviour) -> float:
        made = world(nature, days=400)
        late = made.time > made.end / 2
        first, second = (np.bincount(made.item[part], minlength=made.items) for part in (~late, late))
        return float(np.mean((first - second) ** 2 / (first + second)))

    assert spread(WorldBehaviour()) == pytest.approx(1, rel=0.3)
    assert spread(WorldBehaviour(drift=RateDrift(0.8, 200 * DAY))) > 5


def test_mass_edits_hit_their_group_at_once() -> None:
    group = np.repeat(np.arange(20), 20)
    made = world(
        WorldBehaviour(mass_edits=MassEdits(0.05 / DAY, 0.6)), per_day=0.0, days=2000, items=400, group=group
    )
    moments, first, sizes = np.unique(made.time, return_index=True, return_counts=True)
    assert moments.size == pytest.approx(20 * 100, rel=0.1)  # an edit that hits nobody: 0.4^20
    assert sizes.mean() == pytest.approx(0.6 * 20, rel=0.03)
    assert all(np.unique(group[made.item[made.time == made.time[at]]]).size == 1 for at in first[:50])


def test_mass_edits_keep_to_the_season_and_to_the_window() -> None:
    made = world(
        WorldBehaviour(season=working_hours(0.0, 1.0), mass_edits=MassEdits(1 / DAY, 1.0)),
        per_day=0.0,
        items=3,
    )
    assert np.all((made.time // DAY + 3) % 7 < 5)
    assert made.time.max() <= made.end


def test_nothing_changes_before_a_birth_or_after_a_death() -> None:
    nature = WorldBehaviour(births=0.5, deaths=0.5, mass_edits=MassEdits(0.2 / DAY, 1.0))
    made = world(nature)
    first, last = np.full(400, np.inf), np.full(400, -np.inf)
    np.minimum.at(first, made.item, made.time)
    np.maximum.at(last, made.item, made.time)
    lives = draw_lifetimes(20_000, 0.0, 1.0, rng(), births=0.5, deaths=0.5)
    assert np.all(lives.died > np.maximum(lives.born, 0.0))
    # At a change every day and a half, who is quiet in the first (last) fortnight is not there (any more).
    assert np.mean(first > 14 * DAY) == pytest.approx(0.45, abs=0.08)
    assert np.mean(last < made.end - 14 * DAY) == pytest.approx(0.45, abs=0.1)


def test_a_birth_and_a_death_are_the_first_and_the_last_change() -> None:
    made = world(WorldBehaviour(births=1.0, deaths=1.0), per_day=0.0)
    assert np.array_equal(counts(made), np.full(400, 2))


def test_a_still_world_and_an_empty_one() -> None:
    assert world(WorldBehaviour(), per_day=0.0).time.size == 0
    nobody = simulate_world(np.zeros(0), 0.0, 1.0, WorldBehaviour(mass_edits=MassEdits(1.0, 1.0)), rng())
    assert (nobody.items, nobody.time.size) == (0, 0)


def test_many_items_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.replay.simulated_world.CELLS_AT_ONCE", 64)
    made = world(WorldBehaviour(drift=RateDrift(0.2, 20 * DAY)), items=50)
    assert counts(made).min() > 20
    assert np.unique(made.item).size == 50


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: world(WorldBehaviour(shape=0.0)), "shape of the gaps is 0: must be above 0"),
        (lambda: world(WorldBehaviour(births=1.5)), "births is 1.5: must be a share"),
        (lambda: world(WorldBehaviour(deaths=float("nan"))), "deaths is nan"),
        (lambda: world(WorldBehaviour(), days=0.0), "the window is empty"),
        (lambda: world(WorldBehaviour(), per_day=1e9), "changes, more than 2e"),
        (lambda: working_hours(day=2.0), "season: day is 2: must be from 0"),
        (lambda: RateDrift(-1.0, 1.0), "drift: sd is -1"),
        (lambda: RateDrift(1.0, 0.0), "drift: horizon is 0 s"),
        (lambda: MassEdits(-1.0, 1.0), "mass edits: rate is -1"),
        (lambda: MassEdits(1.0, 0.0), "mass edits: share is 0"),
        (lambda: gamma_rates(1, rng(), mean=0.0, cv=1.0), "mean is 0: must be above 0"),
        (lambda: gamma_rates(1, rng(), mean=1.0, cv=-1.0), "cv is -1"),
        (lambda: power_law_rates(1, rng(), low=2.0, high=1.0, exponent=1.0), "high is 1: must be at least"),
    ],
)
def test_what_is_no_world_is_refused_in_words(make: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(InputError, match=r"rate\[1\] is -1.0"):
        simulate_world(np.array([1.0, -1.0]), 0.0, 1.0, WorldBehaviour(), rng())


def test_a_season_given_by_hand_is_used() -> None:
    only_first_hour = np.zeros(168)
    only_first_hour[0] = 168.0
    made = world(WorldBehaviour(season=Season(only_first_hour, 3600.0)), items=20)
    assert np.all(made.time % (7 * DAY) <= 3600)
