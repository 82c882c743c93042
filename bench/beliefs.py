"""What docs/estimators.md says beside its tables: few items, several paces, long histories, drift, plans.

``python -m bench.beliefs`` prints one line for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from tests.rates.populations import FAR_APART, POPULATIONS, draw_rates, poll, poll_at_own_pace
from tests.rates.test_drift import drifting, steady
from tests.rates.test_regime import HOUR, steady_log
from tests.rates.test_season import PROFILES, fitted

from afresh.allocation.allocate import allocate
from afresh.model.freshness import freshness
from afresh.rates.drift import choose_horizon
from afresh.rates.estimate import estimate_polls
from afresh.rates.observations import Float64s, Polls
from afresh.rates.prior import fit_gamma
from afresh.rates.regime import find_regime
from afresh.rates.view_estimates import with_views
from afresh.values.results import RateEstimates

ITEMS = 2000


def covered(found: RateEstimates, rates: Float64s) -> Float64s:
    """1 where the interval holds the true rate."""
    return ((found.low <= rates) & (rates <= found.high)).astype(np.float64)


def other_populations() -> Iterator[str]:
    """Coverage where rates are nearly equal, clustered or zero, polls regular, and of views of five items."""
    amounts = ((3, 3, 1.0, False), (3, 30, 1.0, False), (20, 60, 3.0, False), (10, 10, 5.0, True))
    names, views = [str(i) for i in range(ITEMS)], [f"v{i // 5}" for i in range(ITEMS)]
    for population in ("gamma 0.5", "lognormal", "narrow lognormal", "three points", "80 % static"):
        for fewest, most, scale, regular in amounts:
            hits, seen_to = [], []
            for seed in range(3):
                rng = np.random.default_rng(seed)
                rates = draw_rates(population, ITEMS, rng)
                found = estimate_polls(poll(rates, fewest, most, rng, scale=scale, regular=regular))
                hits.append(covered(found, rates)[rates > 0].mean())
                _, both = with_views(names, found, views, names)
                true = np.concatenate((rates, rates.reshape(-1, 5).sum(axis=1)))
                seen_to.append(covered(both, true)[ITEMS:].mean())
            polls = f"{fewest}–{most} polls, interval {scale:g}{', regular' if regular else ''}"
            yield f"{population}, {polls}: covered {np.mean(hits):.3f}, views {np.mean(seen_to):.3f}"


def few_items() -> Iterator[str]:
    """Coverage with one to three polls of a few items."""
    for items in (1, 2, 5):
        hits = []
        for seed in range(200):
            rng = np.random.default_rng(seed)
            rates = rng.gamma(1.0, 0.7, items)
            hits.append(covered(estimate_polls(poll(rates, 1, 3, rng)), rates).mean())
        yield f"{items} items, one to three polls: covered {np.mean(hits):.3f}"


def several_paces() -> Iterator[str]:
    """Fast items among slow ones, each polled three times at its own pace."""
    for method, fast, share in (("grid", 1.0, 0.1), ("gamma", 1.0, 0.1), ("grid", 24.0, 0.3)):
        rates, is_fast, polls = poll_at_own_pace(fast, 1 / 365, share, 3, np.random.default_rng(4))
        found = estimate_polls(polls, method=method)
        hit, changed = covered(found, rates), is_fast & (found.changes > 0)
        ratio = float(np.median(found.rate[is_fast] / rates[is_fast]))
        ends = f"fast ones seen to change {hit[changed].mean():.2f}, all {hit.mean():.2f}"
        yield f"{method}, {fast:g} a day, {share:.0%}: {ratio:.2f} times the rate, covered: {ends}"


def long_histories() -> Iterator[str]:
    """Coverage after very many polls."""
    for number, items in ((1000, 1200), (5000, 600), (20_000, 120), (100_000, 32)):
        rng = np.random.default_rng(0)
        rates = np.exp(rng.uniform(np.log(0.05), np.log(5.0), items))
        item = np.repeat(np.arange(items), number)
        changed = rng.random(item.size) < -np.expm1(-rates[item])
        polls = Polls(item, np.ones(item.size), changed, items)
        shares = [
            f"{m} {covered(estimate_polls(polls, method=m), rates).mean():.3f}" for m in ("grid", "mle")
        ]
        yield f"{number} polls of {items} items: covered {', '.join(shares)}"


def regimes() -> Iterator[str]:
    """How often drift and seasons are seen, where they are and where not."""
    worlds: dict[str, Callable[[np.random.Generator], Polls]] = {
        "all alike, regular": lambda rng: steady(rng, 60, regular=True),
        "all alike, irregular": lambda rng: steady(rng, 60, regular=False),
        "steady": lambda rng: drifting(rng, np.inf),
        "drawn anew every 20": lambda rng: drifting(rng, 20.0),
    }
    for name, make in worlds.items():
        logs = [make(np.random.default_rng(seed)) for seed in range(20)]
        found = [choose_horizon(polls, fit_gamma(polls)) for polls in logs]
        horizons = [drift.horizon for drift in found if drift.supported]
        median = f", horizon {np.median(horizons):.1f}" if horizons else ""
        yield f"{name}: {len(horizons)} of 20 called drifting{median}"
    for fast, slow, share in ((24.0, 1 / 365, 0.3), (3.0, 0.1, 0.3), (24.0, 1 / 30, 0.1)):
        each = [find_regime(steady_log(fast, slow, share, seed), hour=HOUR) for seed in range(20)]
        seasonal = sum(regime.season.supported for regime in each)
        moving = sum(bool(np.isfinite(regime.horizon)) for regime in each)
        paces = f"{share:.0%} at {fast:g} a day, others at {slow:.3g}, each at its pace"
        yield f"{paces}: {seasonal} of 20 called seasonal, {moving} drifting"
    for profile in PROFILES:
        seen = sum(fitted(profile, seed).supported for seed in range(8))
        yield f"{profile}: {seen} of 8 called seasonal"


def plans_after_three_polls() -> Iterator[str]:
    """Points of freshness of plans made from three polls per item, less those of uniform ones."""
    gains: dict[str, list[float]] = {"with the rate to plan with": [], "with the mean": []}
    for seed, population, scale in product(range(3), (*POPULATIONS, *FAR_APART), (0.2, 1.0, 5.0)):
        rng = np.random.default_rng(seed)
        rates = draw_rates(population, ITEMS, rng)
        polls = poll(rates, 3, 3, rng, scale=scale)
        mean = estimate_polls(polls).rate
        typical = min(2.0 * float(np.median(rates[rates > 1e-5])), float(rates.mean()))
        for frequency in (0.1 * float(rates.mean()), 0.1 * typical, 0.3 * typical, 2.0 * typical):
            uniform = float(np.mean(freshness(rates, np.full(ITEMS, frequency))))
            planned = estimate_polls(polls, interval=1.0 / frequency).rate
            for column, rate in zip(gains.values(), (planned, mean), strict=True):
                plan = allocate(rate, frequency * ITEMS).frequency
                column.append(100 * (float(np.mean(freshness(rates, plan))) - uniform))
    for name, points in gains.items():
        yield f"plans {name}: worst {min(points):+.2f}, mean {np.mean(points):+.2f} of {len(points)}"


def main() -> None:
    """Print all lines."""
    for part in (
        few_items,
        several_paces,
        long_histories,
        regimes,
        other_populations,
        plans_after_three_polls,
    ):
        for line in part():
            print(line, flush=True)


if __name__ == "__main__":
    main()
