"""What every page and every answer of the API is made from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from afresh.engine.asked import in_force
from afresh.engine.engine import Engine
from afresh.engine.pulse import as_run
from afresh.engine.settings import BudgetTable
from afresh.values.clock import Clock
from afresh.values.items import ItemPage, ItemQuery
from afresh.web.believed import Belief, believed
from afresh.web.item_view import ItemView, item_view
from afresh.web.kept import Kept
from afresh.web.plan_view import Now, OtherBudget, PlanItems, PlanView, other_budget, plan_items, plan_view
from afresh.web.problems import ProblemError
from afresh.web.watching import Watcher

_PLAN_KEPT_S = 60.0


@dataclass(slots=True)
class Context:
    """One engine seen from outside; ``token`` is None where nothing may be changed."""

    engine: Engine
    clock: Clock
    token: str | None = field(repr=False)
    watcher: Watcher = field(init=False)
    _items: Kept[PlanItems] = field(init=False)
    _plans: Kept[PlanView] = field(init=False)

    def __post_init__(self) -> None:
        """One watcher for all who look."""
        self.watcher = Watcher(self.engine, self.clock)
        self._items, self._plans = Kept(self.clock, _PLAN_KEPT_S), Kept(self.clock, _PLAN_KEPT_S)

    def page(self, query: ItemQuery, limit: int, cursor: str | None) -> tuple[ItemPage, list[Belief]]:
        """A page of items and what is believed of them."""
        page = self.engine.store.items.page(query, limit, cursor)
        return page, believed(self.engine.store, self.engine.current(), page.items, self.clock.now_s())

    def item(self, key: str) -> ItemView:
        """One item; 404 where there is none."""
        self.known(key)
        return item_view(self.engine, key, self.clock.now_s())

    def known(self, key: str) -> None:
        """Refuse a key that names no item."""
        if self.engine.store.items.get(key) is None:
            raise ProblemError(404, f"there is no item {key[:200]!r}", "add it first")

    def plan(self, objective: str) -> PlanView:
        """The plan for an objective, at most a minute old; how things are now is of now."""
        status, budget = self.watcher.look(patient=True).status, self._budget()
        found = self._plans.get(
            (objective, budget.requests),
            lambda: plan_view(self.engine, self._sample(), objective, status, budget),
        )
        return replace(found, now=Now(status.freshness.value, status.age_s, status.dropped))

    def other(self, objective: str, requests: float) -> OtherBudget:
        """What another budget would give."""
        spent = self.watcher.look().status.spent_last_hour
        return other_budget(self.engine, self._sample(), objective, requests, spent, self._budget())

    def _budget(self) -> BudgetTable:
        """Today's: that was asked for, or else of the engine that runs, or else of the settings."""
        engine = self.engine
        current = engine.current()
        if in_force(engine.store, engine.settings) is None:
            current = as_run(engine.store, current, self.clock.now_s())
        return current.budget

    def changed(self) -> None:
        """Something was changed from here: what was kept is forgotten."""
        self.watcher.forget()
        self._items.forget()
        self._plans.forget()

    def _sample(self) -> PlanItems:
        return self._items.get("items", lambda: plan_items(self.engine, self.clock.now_s()))
