"""What workers share, in memory: threads of one process are the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from afresh.stores.memory.data import MemoryGroup
from afresh.stores.store import Fleet
from afresh.values.clock import Clock
from afresh.values.storable_text import check_storable
from afresh.values.stored import Claim, RequestWindow, Worker


class MemoryFleet(MemoryGroup, Fleet):
    """Implements ``Fleet``."""

    def beat(self, worker: Worker) -> None:
        check_storable("a worker's name", [worker.name, worker.host])
        with self._data:
            known = self._data.workers.get(worker.name, worker)
            self._data.workers[worker.name] = replace(known, seen_s=worker.seen_s)

    def leave(self, worker: str) -> None:
        with self._data:
            self._data.workers.pop(worker, None)
            mine = [name for name, claim in self._data.claims.items() if claim.worker == worker]
            for name in mine:
                del self._data.claims[name]
            for record in self._data.records.values():
                if record.lease is not None and record.lease.worker == worker:
                    record.lease = None

    def workers(self, since_s: float) -> list[Worker]:
        with self._data:
            workers = sorted(self._data.workers.items())
        return [worker for _, worker in workers if worker.seen_s >= since_s]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        check_storable("a claim's name", [*names, worker])
        held = []
        with self._data:
            for name in dict.fromkeys(names):
                claim = self._data.claims.get(name)
                if claim is None or claim.worker == worker or claim.until_s <= now_s:
                    self._data.claims[name] = Claim(name, worker, now_s + duration_s)
                    held.append(name)
        return tuple(held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        with self._data:
            mine = sorted(name for name, claim in self._data.claims.items() if claim.worker == worker)
            return self.take(mine, worker, now_s, duration_s)

    def release(self, names: Sequence[str], worker: str) -> None:
        with self._data:
            for name in names:
                claim = self._data.claims.get(name)
                if claim is not None and claim.worker == worker:
                    del self._data.claims[name]

    def claims(self, now_s: float) -> list[Claim]:
        with self._data:
            claims = sorted(self._data.claims.items())
        return [claim for _, claim in claims if claim.until_s > now_s]

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        with self._data:
            window, self._data.reservations = self._data.reservations.reserve(
                count, spacing_s, slack_s, now_s
            )
        return window

    def owe(self, owed_s: float, now_s: float) -> float:
        with self._data:
            self._data.reservations = self._data.reservations.owe(owed_s, now_s)
            return self._data.reservations.debt_s

    def ahead_s(self, clock: Clock) -> float:
        del clock
        return 0.0
