"""What workers share, in memory: threads of one process are the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from afresh.stores.memory.world import World
from afresh.stores.texts import check_storable
from afresh.values.clock import Clock
from afresh.values.stored import Claim, RequestWindow, Worker


class MemoryFleet:
    """``Fleet`` in memory."""

    def __init__(self, world: World) -> None:
        """In one world."""
        self._world = world

    def beat(self, worker: Worker) -> None:
        """Alive."""
        check_storable("a worker's name", [worker.name, worker.host])
        with self._world:
            known = self._world.workers.get(worker.name, worker)
            self._world.workers[worker.name] = replace(known, seen_s=worker.seen_s)

    def leave(self, worker: str) -> None:
        """Gone."""
        with self._world:
            self._world.workers.pop(worker, None)
            mine = [name for name, claim in self._world.claims.items() if claim.worker == worker]
            for name in mine:
                del self._world.claims[name]
            for record in self._world.records.values():
                if record.lease is not None and record.lease.worker == worker:
                    record.lease = None

    def workers(self, since_s: float) -> list[Worker]:
        """Those alive."""
        with self._world:
            workers = sorted(self._world.workers.items())
        return [worker for _, worker in workers if worker.seen_s >= since_s]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim the free ones."""
        check_storable("a claim's name", [*names, worker])
        held = []
        with self._world:
            for name in dict.fromkeys(names):
                claim = self._world.claims.get(name)
                if claim is None or claim.worker == worker or claim.until_s <= now_s:
                    self._world.claims[name] = Claim(name, worker, now_s + duration_s)
                    held.append(name)
        return tuple(held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Hold on."""
        with self._world:
            mine = sorted(name for name, claim in self._world.claims.items() if claim.worker == worker)
            return self.take(mine, worker, now_s, duration_s)

    def release(self, names: Sequence[str], worker: str) -> None:
        """Give up."""
        with self._world:
            for name in names:
                claim = self._world.claims.get(name)
                if claim is not None and claim.worker == worker:
                    del self._world.claims[name]

    def claims(self, now_s: float) -> list[Claim]:
        """Not run out."""
        with self._world:
            claims = sorted(self._world.claims.items())
        return [claim for _, claim in claims if claim.until_s > now_s]

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        """The next window."""
        with self._world:
            window, self._world.pace = self._world.pace.reserve(count, spacing_s, slack_s, now_s)
        return window

    def owe(self, owed_s: float, now_s: float) -> float:
        """A debt more."""
        with self._world:
            self._world.pace = self._world.pace.owe(owed_s, now_s)
            return self._world.pace.debt_s

    def ahead_s(self, clock: Clock) -> float:
        """One process, one clock."""
        del clock
        return 0.0
