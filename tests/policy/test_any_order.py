"""Anything in any order: whatever is done to a policy, it polls who is there, when and as much as it may."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import OpenTime, PolicyInput
from afresh.policy.registry import POLICIES, make_policy
from afresh.values.arrays import Float64s

ITEMS, STEPS, BATCH = 24, 60, 5
CAPS = np.array([0.6, 2.0])
ACTS = ("poll", "poll", "poll", "skip", "hint")
LIVE_ACTS = (*ACTS, "add", "remove", "reweigh", "budget", "refit")  # only the engine's policy offers these


class Walk:
    """One policy, driven by chance, with a record of what it may and does."""

    def __init__(self, name: str, seed: int, objective: str = "freshness") -> None:
        self.rng = np.random.default_rng(seed)
        self.now, self.asked = 0.0, (0.0, 0.0)  # the last two moments at which it was asked
        self.polled = [np.zeros((0, 4))]  # moment, that before it, group, cost
        self.cost: Float64s = self.rng.choice([0.5, 1.0, 2.0], ITEMS)
        self.group = self.rng.integers(0, 3, ITEMS)
        opens = np.arange(0.0, 1e4, 10.0)
        start = replace(
            PolicyInput.of(ITEMS, 3.0, weights=self.rng.choice([0.0, 1.0, 1.0, 5.0], ITEMS), costs=self.cost),
            objective=objective,
            rates=self.rng.gamma(0.5, 0.2, ITEMS),
            families=np.stack([np.arange(ITEMS) // 4, np.full(ITEMS, -1)], axis=1),
            open_time=OpenTime.of(opens, opens + 6.0),
            cap_group=self.group,
            caps=CAPS,
        )
        self.policy = make_policy(name, start)
        self.acts = LIVE_ACTS if name == "adaptive" else ACTS
        self.alive = np.ones(ITEMS, dtype=bool)

    def step(self) -> None:
        self.now += float(self.rng.choice([0.0, 0.3, 1.0, 9.0]))
        getattr(self, str(self.rng.choice(self.acts)))()

    def poll(self) -> None:
        items = self.policy.next(self.now, BATCH)
        assert np.unique(items).size == items.size <= BATCH
        assert self.alive[items].all()
        assert items.size == 0 or self.now % 10.0 < 6.0
        if self.now > self.asked[1] and self.now % 10.0 < 6.0:
            self.asked = self.asked[1], self.now
        moments = np.broadcast_to([self.now, self.asked[0]], (items.size, 2))
        self.polled.append(np.column_stack([moments, self.group[items], self.cost[items]]))
        if "remove" in self.acts and self.rng.random() < 0.2:  # removed while their polls are under way
            self.remove()
        self.policy.observe(items, self.now, self.rng.random(items.size) < 0.4)

    def skip(self) -> None:
        self.now += 100.0

    def hint(self) -> None:
        self.policy.notice(self.some(), self.now, str(self.rng.choice(["feed", "map"])))

    def add(self) -> None:
        more = int(self.rng.integers(1, 4))
        costs = self.rng.choice([0.5, 1.0, 2.0], more)
        self.live.add(np.ones(more), costs, self.now)
        self.alive = np.append(self.alive, np.ones(more, dtype=bool))
        self.cost = np.append(self.cost, costs)
        self.group = np.append(self.group, np.full(more, 2))

    def remove(self) -> None:
        gone = self.some()
        self.live.remove(gone)
        self.alive[gone] = False

    def reweigh(self) -> None:
        which = self.some()
        self.cost[which] = 1.0
        self.live.reweigh(which, self.rng.choice([0.0, 0.1, 10.0], which.size), 1.0)

    def budget(self) -> None:
        self.live.set_budget(float(self.rng.choice([0.01, 1.0, 3.0, 300.0])), self.now)

    def refit(self) -> None:
        self.live.refit(self.now)

    @property
    def live(self) -> Adaptive:
        assert isinstance(self.policy, Adaptive)
        return self.policy

    def some(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Of all items ever, removed ones too."""
        return np.unique(self.rng.integers(0, self.alive.size, 2))


@pytest.mark.parametrize("name", POLICIES)
@given(seed=st.integers(0, 10**9))
@settings(max_examples=6, deadline=None)
def test_who_is_there_when_it_may_within_the_caps(name: str, seed: int) -> None:
    walk = Walk(name, seed)
    for _ in range(STEPS):
        walk.step()
    moment, before, group, cost = np.concatenate(walk.polled).T
    for number, cap in enumerate(CAPS):
        its = group == number
        spent = np.cumsum(cost[its])
        within = spent[None, :] - (spent - cost[its])[:, None]
        # From one poll to another: what the cap earns since it was asked before, and one poll of at most 2.
        earned = cap * (moment[its][None, :] - before[its][:, None]) + 2.0
        assert np.all(np.triu(within) <= np.triu(earned) + 1e-9)


@given(
    seed=st.integers(0, 10**9),
    objective=st.sampled_from(["freshness", "age", "lag", "missed", "harmonic"]),
    change=st.floats(0.0, 1.0),
)
@settings(max_examples=5, deadline=None)
def test_what_is_unknown_is_never_starved(seed: int, objective: str, change: float) -> None:
    """Whatever the others do, and however much is known of them, an item nobody has polled gets its poll."""
    rng = np.random.default_rng(seed)
    families = (np.arange(ITEMS) // 4)[:, None]
    policy = Adaptive(replace(PolicyInput.of(ITEMS, 2.0), objective=objective, families=families))
    rate = rng.random(ITEMS + 1) * change
    now, last = 0.0, np.zeros(ITEMS)
    for step in range(280):
        now += 0.5
        chosen = policy.next(now, 1)
        last = np.append(last, now) if step == 140 else last
        if step == 140:
            policy.add([1.0], 1.0, now, np.array([[int(rng.integers(0, 9))]]))
        if chosen.size and chosen[0] == ITEMS:
            assert now - last[ITEMS] < 5 * ITEMS / 2.0  # rounds of all items
            return
        policy.observe(chosen, now, rng.random(chosen.size) < rate[chosen])
    pytest.fail("the new item was never polled")
