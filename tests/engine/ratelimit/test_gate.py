"""Several workers on one line of request starts: together they spend about what one alone would."""

from __future__ import annotations

import asyncio
from functools import cache

import numpy as np
import pytest
from tests.virtual_time import VirtualTime, pass_time

from afresh.engine.ratelimit.gate import Gate
from afresh.engine.ratelimit.request_slots import Limits
from afresh.stores.shared_time import ReservationState
from afresh.values.stored import RequestWindow

SECONDS, ANSWER_S, STORE_S = 10.0, 0.003, 0.002


class World:
    """A clock, a line that takes its time, and claims that nobody disputes: for each worker the same."""

    def __init__(self, workers: int) -> None:
        self.is_alone, self.time, self._pace = workers == 1, VirtualTime(round_s=5e-5), ReservationState()
        self._rng, self.starts = np.random.default_rng(1), list[float]()
        self.given_back = list[tuple[RequestWindow, float]]()

    async def reserve(
        self, count: int, spacing_s: float, slack_s: float, late_s: float
    ) -> tuple[RequestWindow, float]:
        await pass_time(self._rng.exponential(STORE_S))
        window, self._pace = self._pace.reserve(count, spacing_s, slack_s, self.time.now_s(), late_s)
        return window, self.time.elapsed_s() - self.time.now_s()

    async def owe(self, owed_s: float) -> None: ...

    async def give_back(self, window: RequestWindow, last_s: float) -> None:
        self.given_back.append((window, last_s))

    async def last_start_s(self, group: str) -> float:
        del group
        return -np.inf

    async def save_start(self, group: str, began_s: float) -> None: ...

    def is_open(self, group: str) -> bool:
        del group
        return True

    async def wait_until_open(self, group: str) -> None: ...

    async def host(self, gate: Gate, delay_s: float) -> None:
        """Asked one at a time, for ever."""
        while True:
            await gate.admit("")
            self.starts.append(self.time.elapsed_s())
            await pass_time(max(delay_s, self._rng.exponential(ANSWER_S)))


@cache
def per_second(workers: int, hosts: int, budget: float, delay_s: float) -> float:
    """The requests that workers start together, each with its part of the hosts; the budget is kept."""
    world = World(workers)

    async def work() -> None:
        gates = [Gate(world.time, Limits(requests=budget), world, world) for _ in range(workers)]
        polling = [asyncio.create_task(world.host(gates[host % workers], delay_s)) for host in range(hosts)]
        await pass_time(SECONDS)
        for each in polling:
            each.cancel()
        for gate in gates:
            await gate.close()

    world.time.run(work())
    level = np.arange(len(world.starts)) - budget * np.sort(world.starts)
    assert np.max(level - np.minimum.accumulate(level)) <= 1e-6
    return len(world.starts) / SECONDS


@pytest.mark.parametrize(
    ("hosts", "budget", "delay_s"),
    [
        (4, 1000.0, 0.05),  # few hosts, a budget that they cannot absorb
        (4, 100.0, 1.0),
        (100, 50.0, 1.0),  # more than the budget lets through
        (400, 200.0, 1.0),
        (4, 10.0, 0.05),
    ],
)
@pytest.mark.parametrize("workers", [2, 4])
def test_workers_spend_together_what_one_would(
    workers: int, hosts: int, budget: float, delay_s: float
) -> None:
    assert per_second(workers, hosts, budget, delay_s) >= 0.93 * per_second(1, hosts, budget, delay_s)
