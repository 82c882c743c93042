"""What a budget is worth in money, where sources say what a right copy earns.

Income is Σ B·F − O·(1−F) − what the polls cost, with B and O the benefit of a right copy and the loss by a
wrong one (Razniewski 2016, §5). Like the engine, a plan spends no more than pays: polls whose next unit of
money earns less than itself are not made, whatever the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afresh.engine.scheduler.earnings import MoneyInput, money_terms
from afresh.engine.scheduler.restore import read_poll_costs
from afresh.engine.scheduler.scheduler import Scheduler
from afresh.engine.settings.tables import BudgetTable, Settings
from afresh.stores.store import Store
from afresh.values.arrays import Float64s
from afresh.values.outcome import Spent

PAYS = 1.0  # a multiplier in money per money below which a poll loses


@dataclass(frozen=True, slots=True)
class Stakes:
    """Per item and second: what a right copy earns and a wrong one loses; ``poll``: what a poll costs."""

    benefit: Float64s
    stale_cost: Float64s
    poll: Float64s

    def cost_per_s(self, frequency: Float64s) -> float:
        """What polling so often costs."""
        return float(frequency @ self.poll)

    def income_per_s(self, fresh: Float64s, frequency: Float64s) -> float:
        """What is earned by copies right for these shares of time, less what the polls cost.

        >>> stakes = Stakes(np.array([2.0]), np.array([0.0]), np.array([0.5]))
        >>> round(stakes.income_per_s(np.array([0.632]), np.array([1.0])), 3)
        0.764
        """
        earned = float(self.benefit @ fresh - self.stale_cost @ (1.0 - fresh))
        return earned - self.cost_per_s(frequency)


def stakes_of(store: Store, settings: Settings, scheduler: Scheduler, rows: npt.NDArray[np.intp]) -> Stakes:
    """What is at stake at these rows, by the settings and what polls were measured to take."""
    given = MoneyInput(settings, scheduler.names, read_poll_costs(store))
    terms = money_terms(scheduler.item_rows, scheduler.policy.staleness, given)
    weight = scheduler.item_rows.weight[rows]
    return Stakes(
        weight * terms.benefit[rows], weight * terms.stale_cost[rows], terms.money(settings.budget)[rows]
    )


def price_per_request(settings: BudgetTable, spent: Spent) -> float:
    """What a request costs, with the bytes and seconds that one took on average in the last hour."""
    each = max(spent.requests, 1)
    carried = spent.bytes * settings.price_per_gb / 1e9 + spent.seconds * settings.price_per_second
    return settings.price_per_request + carried / each
