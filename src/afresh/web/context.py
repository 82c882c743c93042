"""What every page and every answer of the API is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from afresh.engine.engine import Engine
from afresh.engine.ratelimit.budget_override import current_override
from afresh.engine.reporting.item_snapshot import ItemSnapshot, take_snapshot
from afresh.engine.reporting.pulse import as_running
from afresh.engine.settings.tables import BudgetTable, Settings
from afresh.values.clock import Clock
from afresh.values.errors import UsageError
from afresh.values.items import Item, ItemPage, ItemQuery
from afresh.web.believed import Belief, believed
from afresh.web.item_view import ItemView, item_view
from afresh.web.kept import Kept
from afresh.web.plan_view import Now, OtherBudget, PlanItems, PlanView, other_budget, plan_items, plan_view
from afresh.web.problems import ProblemError
from afresh.web.watching import Look, Watcher

_PLAN_KEPT_S = 60.0


@dataclass(slots=True)
class Context:
    """One engine seen from outside; ``token`` is None where nothing may be changed."""

    engine: Engine
    token: str | None = field(repr=False)
    watcher: Watcher = field(init=False)
    _items: Kept[PlanItems] = field(init=False)
    _plans: Kept[PlanView] = field(init=False)

    def __post_init__(self) -> None:
        """One watcher for all who look."""
        self.watcher = Watcher(self.engine)
        self._items, self._plans = Kept(self.clock, _PLAN_KEPT_S), Kept(self.clock, _PLAN_KEPT_S)

    @property
    def clock(self) -> Clock:
        """The engine's own, so that no page goes by another time than what it shows."""
        return self.engine.clock

    def page(self, query: ItemQuery, limit: int, cursor: str | None) -> tuple[ItemPage, list[Belief], float]:
        """A page of items, what is believed of them, and when; a cursor leads on in its own query alone."""
        mark = blake2b(repr(query).encode(), digest_size=6).hexdigest()
        if cursor is not None and not cursor.startswith(mark):
            raise UsageError("that cursor is of another query: start again without one")
        self._known_source(query.source)
        page = self.engine.store.items.page(query, limit, cursor and cursor.removeprefix(mark))
        page = replace(page, cursor=page.cursor and mark + page.cursor)
        if not page.items:
            return page, [], self.clock.now_s()
        snapshot = self._snapshot(page.items)
        return page, believed(snapshot), snapshot.time_s

    def item(self, key: str) -> ItemView:
        """One item; 404 where there is none."""
        item = self.known(key)
        return item_view(self.engine.store, self._snapshot([item]), item)

    def known(self, key: str) -> Item:
        """The item of a key; 404 where it names none."""
        found = self.engine.store.items.get(key)
        if found is None:
            raise ProblemError(404, f"there is no item {key[:200]!r}", "add it first")
        return found

    def _known_source(self, name: str | None) -> None:
        """Refuse a source that neither the settings nor the items know."""
        if name is None or self.engine.settings.source(name) is not None:
            return
        if name not in {count.source for count in self.engine.store.items.counts()}:
            raise ProblemError(404, f"there is no source {name[:200]!r}", "/api/v1/sources lists them")

    def look(self) -> Look:
        """How things are now; 503 while the store is out of reach, for programs take old numbers for new."""
        self.engine.store.state.names()  # raises where the store is lost since the last look
        found = self.watcher.look(patient=True)
        if found.problem:
            raise ProblemError(503, f"store lost: {found.problem}", "it is looked for again by itself")
        return found

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
        if current_override(engine.store, engine.settings) is None:
            return self._settings(self.clock.now_s()).budget
        return engine.current().budget

    def _settings(self, now_s: float) -> Settings:
        """The settings, with the budget and the delays of the engine that runs, where one does."""
        return as_running(self.engine.store, self.engine.current(), now_s)

    def _snapshot(self, items: Sequence[Item]) -> ItemSnapshot:
        """What is known of these items now, read once, so that everything said of them agrees."""
        now_s = self.clock.now_s()
        return take_snapshot(self.engine.store, self._settings(now_s), items, now_s)

    def changed(self) -> None:
        """Something was changed from here: what was kept is forgotten."""
        self.watcher.forget()
        self._items.forget()
        self._plans.forget()

    def _sample(self) -> PlanItems:
        return self._items.get("items", lambda: plan_items(self.engine, self.clock.now_s()))
