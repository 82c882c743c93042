"""A sample of the active items, from which plans are computed: beliefs about their rates, costs and money."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afresh.allocation.allocate import allocate
from afresh.engine.scheduler.earnings import MoneyInput, has_income, money_terms
from afresh.engine.scheduler.restore import read_poll_costs, read_sample, restore_scheduler
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import Settings
from afresh.model.freshness import age, freshness
from afresh.stores.store import Store
from afresh.values.arrays import Float64s, Ints


@dataclass(frozen=True, slots=True)
class RatePosteriors:
    """The engine's beliefs about the rates of sampled items. ``mass[i, j]`` is the probability that item i
    has the rate ``rates[i, j]``, in changes per second. ``ladder`` is the grid of rates that is common to all
    items, before calibration and shocks; ``prior`` has its probabilities for an item not polled yet."""

    ladder: Float64s
    prior: Float64s
    mass: Float64s
    rates: Float64s

    def medians(self) -> Float64s:
        """Return the median of the rate of each item, which is one of the rates in its row of ``rates``."""
        column = np.argmax(np.cumsum(self.mass, axis=1) >= 0.5, axis=1)
        return np.asarray(np.take_along_axis(self.rates, column[:, None], axis=1)[:, 0])

    def mean_freshness(self, frequency: Float64s) -> Float64s:
        """Return the expected freshness of each copy at ``frequency`` polls per second of its item."""
        return np.asarray(np.sum(self.mass * self.freshness_by_rate(frequency), axis=1))

    def freshness_by_rate(self, frequency: Float64s) -> Float64s:
        """Return the freshness at each possible rate of each item, at ``frequency`` polls per second."""
        return np.asarray(freshness(self.rates, frequency[:, None]))

    def mean_age_s(self, frequency: Float64s) -> Float64s:
        """Return the expected age of each copy in seconds; infinite for an item that is never polled."""
        polled = frequency > 0
        ages = age(self.rates[polled], frequency[polled][:, None])
        found = np.full(frequency.size, np.inf)
        found[polled] = np.sum(self.mass[polled] * ages, axis=1)
        return found

    def likelihoods(self) -> Float64s:
        """Return the likelihood of the polls at each rate, scaled so that the largest of an item is 1."""
        found = self.mass / self.prior
        return np.asarray(found / np.maximum(found.max(axis=1, keepdims=True), 1e-300))


@dataclass(frozen=True, slots=True)
class Stakes:
    """Money of each item: what a fresh copy earns per second (``benefit``), what a stale copy loses per
    second (``stale_cost``), and what one poll costs."""

    benefit: Float64s
    stale_cost: Float64s
    poll_cost: Float64s

    def cost_per_s(self, frequency: Float64s) -> float:
        return float(frequency @ self.poll_cost)

    def income_per_s(self, fresh: Float64s, frequency: Float64s) -> float:
        """Return the net income per second, Σ B·F − O·(1−F) − cost of the polls, where B is the benefit, O
        the stale cost and F the freshness (Razniewski 2016, section 5).

        >>> stakes = Stakes(np.array([2.0]), np.array([0.0]), np.array([0.5]))
        >>> round(stakes.income_per_s(np.array([0.632]), np.array([1.0])), 3)
        0.764
        """
        earned = float(self.benefit @ fresh - self.stale_cost @ (1.0 - fresh))
        return earned - self.cost_per_s(frequency)


@dataclass(frozen=True, slots=True)
class PlanSample:
    """Active items with a weight above 0, each of which represents ``scale`` items of the store. ``weight``
    is as set, ``value_per_cost`` the weight (or money at stake) per cost by which items are ranked, and
    ``cost`` what a poll uses of the budget. ``interval_s`` is the current polling interval, within
    ``min_interval_s`` and ``max_interval_s``. ``active`` is the number of active items in the store.
    ``stakes`` is None unless the settings of a source state what fresh copies earn."""

    ids: Ints
    posteriors: RatePosteriors
    weight: Float64s
    value_per_cost: Float64s
    cost: Float64s
    interval_s: Float64s
    min_interval_s: Float64s
    max_interval_s: Float64s
    active: int = 0
    scale: float = 1.0
    stakes: Stakes | None = None

    @property
    def weight_share(self) -> Float64s:
        """The share of each item in the weight of the sample."""
        relative = self.weight / self.weight.max(initial=0.0)  # the sum of huge weights would overflow
        return np.asarray(relative / relative.sum())

    def mean_age_s(self, frequency: Float64s) -> float:
        """Return the weighted mean of the expected ages in seconds, at ``frequency`` polls per second."""
        share = self.weight_share
        # A share may be rounded to 0, and the age of a dropped item is infinite: their product is undefined.
        return float(share[share > 0] @ self.posteriors.mean_age_s(frequency)[share > 0])

    def freshness_with_known_rates(self, objective: str, budget: float) -> float:
        """Return the freshness that the best plan would reach if the rate of each item were known exactly."""
        # Items are regrouped by their possible rates: one class of known rate for each column of the grid.
        mass, share = self.posteriors.mass, self.weight_share
        items = mass.sum(axis=0)
        used = items > 1e-9 * len(mass)
        rates = (mass * self.posteriors.rates).sum(axis=0)[used] / items[used]
        weights, costs = (share @ mass)[used], (self.cost @ mass)[used]
        return allocate(rates, budget, weights=weights, costs=costs, objective=objective).freshness


def take_plan_sample(
    store: Store, settings: Settings, now_s: float, most: int, rng: np.random.Generator
) -> PlanSample:
    """Draw at most ``most`` of the active items with a weight above 0, all with the same probability."""
    total = sum(count.items for count in store.items.counts())
    # The beliefs must not depend on a budget that was set meanwhile, because a plan compares budgets.
    settings = replace(settings, budget=settings.budget.of_items(total))
    scheduler = restore_scheduler(store, settings, read_sample(store, total), now_s)
    item_rows, forecast = scheduler.item_rows, scheduler.forecast
    rows = np.flatnonzero(item_rows.ranked_weight(slice(None)) > 0)
    active = round(rows.size * total / max(item_rows.size, 1))
    if rows.size > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    return PlanSample(
        ids=item_rows.ids[rows],
        posteriors=RatePosteriors(*forecast.rate_distribution(rows)),
        weight=item_rows.weight[rows],
        value_per_cost=item_rows.ranked_weight(rows) / item_rows.ranked_cost(rows),
        cost=item_rows.cost[rows],
        interval_s=scheduler.policy.next_polls_s(rows, now_s) - now_s,
        min_interval_s=item_rows.min_interval_s[rows],
        max_interval_s=item_rows.max_interval_s[rows],
        active=active,
        scale=active / max(rows.size, 1),
        stakes=_stakes(store, settings, scheduler, rows) if has_income(settings) else None,
    )


def _stakes(store: Store, settings: Settings, scheduler: Scheduler, rows: Ints) -> Stakes:
    """Return the money at stake for ``rows``, from the settings and the measured costs of polls."""
    given = MoneyInput(settings, scheduler.names, read_poll_costs(store))
    terms = money_terms(scheduler.item_rows, scheduler.policy.staleness, given)
    weight = scheduler.item_rows.weight[rows]
    return Stakes(
        weight * terms.benefit[rows], weight * terms.stale_cost[rows], terms.money(settings.budget)[rows]
    )
