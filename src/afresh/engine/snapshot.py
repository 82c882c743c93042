"""The engine's mind as the store remembers it, for whoever asks from outside while another process runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from afresh.allocation.allocate import allocate
from afresh.engine.beliefs import Prior, first_prior
from afresh.engine.memory import Memory
from afresh.engine.policy import Policy
from afresh.engine.settings import Settings
from afresh.engine.state_names import PRIOR, THRESHOLD
from afresh.stores.store import Store
from afresh.values.items import ItemQuery
from afresh.values.stored import PolicyColumns

SAMPLE, BLOCKS = 200_000, 50
NAMES_LOOKED_AT = 50_000
_PAGE = 1000


def loaded(columns: Iterable[PolicyColumns]) -> Memory:
    """These items as a memory."""
    memory = Memory()
    memory.load(columns)
    return memory


def recalled(store: Store, settings: Settings, memory: Memory) -> Policy:
    """The policy over these items, with the prior and the threshold that were last kept, or first ones."""
    prior = store.state.get(PRIOR)
    items = sum(count.items for count in store.items.counts() if count.status == "active")
    start = Prior.unpack(prior) if prior else first_prior(items, settings.budget.requests)
    policy = Policy(memory, start, settings.plan.policy, settings.plan.objective)
    kept = store.state.get(THRESHOLD)
    if kept is not None and float(kept) > 0:
        policy.picked(float(kept))
    elif memory.size >= items:
        policy.picked(planned_threshold(policy, settings.budget.requests))
    return policy


def names_of(store: Store) -> list[str]:
    """The keys of all items in order of id, without their scheme: their paths tell who belongs together."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = store.items.page(ItemQuery(), _PAGE, cursor)
        names += [item.key.partition("://")[2] or item.key for item in page.items]
        cursor = page.cursor
        if cursor is None:
            return names


def sampled(store: Store, items: int) -> list[PolicyColumns]:
    """All items, or of very many some blocks that are spread evenly over the order of their registration."""
    if items <= SAMPLE:
        return list(store.plan.columns())
    newest = store.items.page(ItemQuery(sort="id", descending=True), 1).items
    step = (newest[0].id if newest else 0) / BLOCKS
    found: list[PolicyColumns] = []
    for block in range(BLOCKS):
        after = max(int(block * step), int(found[-1].id[-1]) if found else 0)
        found += islice(store.plan.columns(after_id=after, batch=SAMPLE // BLOCKS), 1)
    return found


def planned_threshold(policy: Policy, budget_per_s: float) -> float:
    """The worth at which items are polled when the budget is spent by plan; 0 where nothing is worth a poll.

    It is the multiplier of the best plan for the rates believed: an item's worth at its planned interval.
    """
    memory = policy.memory
    active = memory.active & (memory.weight > 0)
    if not active.any():
        return 0.0
    if policy.name == "uniform":
        return float(memory.cost[active].sum()) / budget_per_s
    shape, rate = policy.posterior()
    plan = allocate(
        (shape / rate)[active],
        budget_per_s,
        weights=memory.weight[active],
        costs=memory.cost[active],
        objective=policy.objective,
    )
    return float(plan.multiplier)


def replan(store: Store, settings: Settings) -> None:
    """Keep the planned threshold: where no engine runs, none finds it by polling."""
    policy = recalled(store, settings, loaded(store.plan.columns()))
    threshold = planned_threshold(policy, settings.budget.requests)
    store.state.set({THRESHOLD: repr(threshold).encode()})
