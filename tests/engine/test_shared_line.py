"""Several workers on one line of request starts: together they spend about what one alone would."""

from __future__ import annotations

import asyncio
import selectors

import numpy as np
import pytest

from afresh.engine.pace.budget import Limits
from afresh.engine.pace.gate import Gate
from afresh.stores.reservations import ReservationState
from afresh.values.stored import RequestWindow

SECONDS, ANSWER_S, STORE_S = 10.0, 0.003, 0.002


class Still(selectors.DefaultSelector):
    """Nothing ever comes: whoever would wait lets time pass instead."""

    passed_s = 100.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.passed_s += timeout or 0.0
        return []


class QuickLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes as fast as it can be worked through."""

    def __init__(self) -> None:
        self.still = Still()
        super().__init__(self.still)

    def time(self) -> float:
        return self.still.passed_s


class World:
    """A clock, a line that takes its time, and claims that nobody disputes: for each worker the same."""

    def __init__(self, loop: QuickLoop, workers: int) -> None:
        self.alone, self._loop, self._pace = workers == 1, loop, ReservationState()
        self._rng, self.starts = np.random.default_rng(1), list[float]()

    def elapsed_s(self) -> float:
        self._loop.still.passed_s += 5e-5
        return self._loop.time()

    def now_s(self) -> float:
        return self.elapsed_s() + 1e9

    async def reserve(self, count: int, spacing_s: float, slack_s: float) -> tuple[RequestWindow, float]:
        await asyncio.sleep(self._rng.exponential(STORE_S))
        window, self._pace = self._pace.reserve(count, spacing_s, slack_s, self.now_s())
        return window, -1e9

    async def owe(self, owed_s: float) -> None: ...

    async def capped_s(self, group: str) -> float:
        del group
        return -np.inf

    async def keep_capped(self, group: str, began_s: float) -> None: ...

    def holds(self, group: str) -> bool:
        del group
        return True

    async def hold(self, group: str) -> None: ...

    async def host(self, gate: Gate, delay_s: float) -> None:
        """Asked one at a time, for ever."""
        while True:
            await gate.admit("")
            self.starts.append(self._loop.time())
            await asyncio.sleep(max(delay_s, self._rng.exponential(ANSWER_S)))


def per_second(workers: int, hosts: int, budget: float, delay_s: float) -> float:
    """The requests that workers start together, each with its part of the hosts; the budget is kept."""
    with asyncio.Runner(loop_factory=QuickLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, QuickLoop)
        world = World(loop, workers)

        async def work() -> None:
            gates = [Gate(world, Limits(requests=budget), world, world) for _ in range(workers)]
            polling = [
                asyncio.create_task(world.host(gates[host % workers], delay_s)) for host in range(hosts)
            ]
            await asyncio.sleep(SECONDS)
            for each in polling:
                each.cancel()
            for gate in gates:
                await gate.close()

        runner.run(work())
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
