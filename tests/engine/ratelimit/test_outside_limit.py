"""A gate keeps a limit from outside besides its own budget."""

from __future__ import annotations

import asyncio
import math

import numpy as np
from tests.engine.ratelimit.test_gate import World
from tests.virtual_time import pass_time

from afresh.engine.ratelimit.gate import Gate
from afresh.engine.ratelimit.request_slots import Limits


class FewRequests:
    """At most ``rate`` requests per second, apart from each other, from ``begins_s`` to ``ends_s``."""

    def __init__(self, rate: float, begins_s: float, ends_s: float) -> None:
        self.rate, self.begins_s, self.ends_s, self.starts = rate, begins_s, ends_s, list[float]()

    def ready_s(self, now_s: float) -> float:
        if not self.begins_s <= now_s < self.ends_s:
            return math.inf
        return max(now_s, self.starts[-1] + 1.0 / self.rate) if self.starts else now_s

    def record_start(self, now_s: float) -> None:
        self.starts.append(now_s)


def test_requests_start_only_when_the_limit_from_outside_allows_them() -> None:
    world = World(1)
    began_s = world.time.elapsed_s()
    limit = FewRequests(5.0, began_s + 2.0, began_s + 6.0)

    async def work() -> None:
        gate = Gate(world.time, Limits(requests=50.0), world, world)
        gate.outside = limit
        assert gate.wait_s() > 0
        polling = [asyncio.create_task(world.host(gate, 0.0)) for _ in range(4)]
        await pass_time(10.0)
        for each in polling:
            each.cancel()
        await gate.close()

    world.time.run(work())
    starts = np.array(world.starts) - began_s
    assert len(starts) == len(limit.starts)
    assert starts.min() >= 2.0
    assert starts.max() < 6.0
    assert 17 <= starts.size <= 20
    assert np.diff(starts).min() >= 0.2 - 1e-6
