"""Sharp changes of rates: false alarms among steady items, places, weights, and coverage of today's rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from afresh.rates.common_belief import PollTotals, learn_common
from afresh.rates.estimator import ESTIMATORS, estimate_polls, find_regime
from afresh.rates.poll_table import PollTable
from afresh.rates.season import Season
from afresh.rates.sharp_changes import SURE, find_sharp_changes
from afresh.values.results import RateEstimates

Array = NDArray[np.float64]


def polled(rng: np.random.Generator, rates: Array, *, irregular: bool = False) -> PollTable:
    """Polls of items (rows) at the rates that they have before each poll (columns), mean interval 1."""
    items, polls = rates.shape
    elapsed = rng.exponential(1, rates.shape) + 1e-9 if irregular else np.ones(rates.shape)
    changed = rng.random(rates.shape) < -np.expm1(-rates * elapsed)
    item, end = np.repeat(np.arange(items), polls), np.cumsum(elapsed, axis=1).ravel()
    return PollTable(item, elapsed.ravel(), changed.ravel(), items, end=end)


def jumping(before: Array, after: Array, polls: int, at: int) -> Array:
    return np.where(np.arange(polls) < at, before[:, None], after[:, None])


def coverage(found: RateEstimates, rates: Array) -> float:
    return float(np.mean((found.low <= rates) & (rates <= found.high)))


POPULATIONS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "gamma": lambda rng, n: rng.gamma(0.3, 0.5, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(-1, 1.5, n)),
    "fast": lambda rng, n: rng.gamma(4, 0.5, n),
    "equal": lambda _, n: np.full(n, 0.2),
}


def false_alarms(items: int, lengths: tuple[int, ...]) -> float:
    """The share of steady Poisson items that get a mark, over populations, regular and irregular polls."""
    rng, marked = np.random.default_rng(31), []
    for draw in POPULATIONS.values():
        for polls in lengths:
            for irregular in (False, True):
                rates = np.repeat(draw(rng, items)[:, None], polls, axis=1)
                found = find_sharp_changes(polled(rng, rates, irregular=irregular))
                marked.append(np.unique(found.item).size / items)
    return float(np.mean(marked))


def test_steady_items_are_rarely_split() -> None:
    assert false_alarms(100, (10, 40)) <= 0.001


@pytest.mark.slow
def test_of_many_steady_items_fewer_than_one_in_a_thousand_is_split() -> None:
    assert false_alarms(1000, (10, 20, 50, 200)) <= 0.001


def jump_together(items: int, polls: int, at: int, factor: float, seed: int) -> tuple[float, float, float]:
    """Coverage of today's rates by 90 % intervals when all items jumped at once: of all polls, with
    forgetting as it is found, and with sharp changes."""
    rng = np.random.default_rng(seed)
    before = rng.gamma(2, 0.05 if factor > 1 else 0.5, items)
    table = polled(rng, jumping(before, before * factor, polls, at))
    horizon = find_regime(table, hour=1 / 24).horizon
    sharp = find_sharp_changes(table).weigh(table, horizon)
    ways = (estimate_polls(table), estimate_polls(table, horizon=horizon), estimate_polls(sharp))
    whole, fading, since = (coverage(found, before * factor) for found in ways)
    return whole, fading, since


def test_todays_rates_are_covered_when_all_items_jumped_together() -> None:
    """The log of which intervals covered 0 of 300 items: 39 changes a year, then 548."""
    whole, fading, since = jump_together(300, 100, 90, 14, 1)
    assert whole < 0.02
    assert fading < 0.5
    assert since > 0.82


@pytest.mark.slow
@pytest.mark.parametrize(
    ("polls", "at", "factor", "least"),
    [(100, 60, 14, 0.86), (200, 180, 14, 0.84), (60, 30, 14, 0.86), (100, 60, 5, 0.84), (100, 60, 0.2, 0.84)],
)
def test_coverage_after_a_common_jump(polls: int, at: int, factor: float, least: float) -> None:
    found = np.array([jump_together(300, polls, at, factor, seed) for seed in range(21, 24)]).mean(axis=0)
    assert found[0] < 0.2
    assert found[2] > least


def cover_world(share: float, factor: float, logs: range, items: int, polls: int, since: int) -> list[float]:
    """Coverage by the 90 % intervals that ``afresh estimate`` finds: of all items, of those whose rate jumped
    ``since`` polls ago, which are this ``share``, and of the others; NaN if there are none. Mean of all
    ``logs``, which are seeds."""
    covered, jumped = [], []
    for seed in logs:
        rng = np.random.default_rng(seed)
        before = rng.gamma(2, 0.05 if factor > 1 else 0.5, items)
        jumped.append(rng.random(items) < share)
        rates = np.where(jumped[-1], before * factor, before)
        table = polled(rng, jumping(before, rates, polls, polls - since))
        common = learn_common(table, totals_of(table), ESTIMATORS["grid"], hour=1 / 24)
        found, _ = common.estimate(table, 0.9)
        covered.append((found.low <= rates) & (rates <= found.high))
    inside, moved = np.concatenate(covered), np.concatenate(jumped)
    parts = (np.ones_like(moved), moved, ~moved)
    return [float(inside[part].mean()) if part.any() else np.nan for part in parts]


def totals_of(table: PollTable) -> Callable[[Season], PollTotals]:
    return lambda season: PollTotals.of(season.apply_to(table) if season.is_supported else table)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_todays_rates_are_covered_whatever_share_of_the_items_jumped(share: float) -> None:
    """If it was unclear whether an item had jumped, its interval had been that of a steady rate. Of the tenth
    it covered 0.55, now 0.78."""
    every, moved, steady = cover_world(share, 14.0, range(5), items=150, polls=80, since=10)
    assert every >= 0.87
    assert not moved < 0.68
    assert not steady < 0.87


@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "factor", "since", "least"),
    [
        *((share, 14.0, since, 0.87) for share in (0.0, 0.1, 1.0) for since in (10, 40)),
        *((share, 0.1, 20, 0.87) for share in (0.1, 1.0)),
        (0.1, 5.0, 20, 0.82),
        (1.0, 5.0, 20, 0.86),
    ],
)
def test_coverage_over_many_logs(share: float, factor: float, since: int, least: float) -> None:
    """Of a tenth of the items whose rates are multiplied by 5, most jumps cannot be seen in 20 polls."""
    assert cover_world(share, factor, range(12), items=300, polls=100, since=since)[0] >= least


def test_one_item_of_many_is_found_and_the_others_stay_as_they_are() -> None:
    rng = np.random.default_rng(5)
    rates = np.repeat(rng.gamma(1, 0.2, 200)[:, None], 80, axis=1)
    rates[17] = np.where(np.arange(80) < 50, 0.02, 1.5)
    rates[40] = np.where((np.arange(80) < 25) | (np.arange(80) > 54), 0.02, 2.0)
    table = polled(rng, rates)
    found = find_sharp_changes(table)
    assert found.item.tolist() == [17, 40, 40]
    assert (found.poll - 80 * found.item).tolist() == pytest.approx([50, 25, 55], abs=3)
    assert found.probability[[17, 40]].min() > SURE
    assert found.periods(table)[[17, 40]].tolist() == pytest.approx([30, 25], abs=3)
    assert found.periods(table)[0] == 80
    weighed = found.weigh(table).weight
    assert weighed is not None
    assert weighed.reshape(200, 80)[17, :45].max() < 0.01 < 0.9 < weighed.reshape(200, 80)[17, 55:].min()
    plain, now = estimate_polls(table), estimate_polls(found.weigh(table))
    assert plain.high[17] < 1.5 * now.rate[17]
    assert now.low[17] < 1.5 < now.high[17]
    kept = found.present(table)
    assert kept.polls_per_item()[[0, 17, 40]].tolist() == pytest.approx([80, 30, 25], abs=3)


def test_a_jump_at_a_common_time_is_easier_to_see() -> None:
    rng = np.random.default_rng(7)
    before = rng.gamma(2, 0.05, 150)
    table = polled(rng, jumping(before, 5 * before, 120, 100))
    common, any_time = (find_sharp_changes(one).item.size for one in (table, replace(table, end=None)))
    assert common > 1.2 * any_time > 15


def test_polls_without_enough_to_say_are_left_alone() -> None:
    few = PollTable(np.repeat([0, 1], 5), np.ones(10), np.arange(10) % 2 == 0, 3)
    found = find_sharp_changes(few)
    assert (found.item.size, found.weight, found.probability.tolist()) == (0, None, [0, 0, 0])
    assert found.weigh(few) is few is found.present(few)
    nothing = PollTable(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool), 0)
    assert find_sharp_changes(nothing).item.size == 0
