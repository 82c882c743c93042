"""What workers on many machines share; the database's clock is the time of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.lines import Connection, rows
from afresh.stores.postgres.queries import load_blocks
from afresh.stores.reservations import ReservationState
from afresh.stores.texts import check_storable, is_storable
from afresh.values.clock import Clock
from afresh.values.stored import Claim, RequestWindow, Worker

_SQL = load_blocks("fleet.sql")
_LOOKS = 5
_GRAIN_S = 2e-6  # the database tells microseconds, and near now doubles are 2⁻²² s apart


class PostgresFleet:
    """``Fleet`` in PostgreSQL."""

    def __init__(self, database: PostgresDatabase) -> None:
        """On one database."""
        self._database = database

    def beat(self, worker: Worker) -> None:
        """Alive."""
        check_storable("a worker's name", [worker.name, worker.host])
        given = asdict(worker)
        self._database.write(lambda connection: rows(connection, _SQL["beat"], given), durable=False)

    def leave(self, worker: str) -> None:
        """Gone."""

        def work(connection: Connection) -> None:
            rows(connection, _SQL["leave"], {"worker": worker})
            rows(connection, _SQL["drop_claims"], {"worker": worker})
            rows(connection, _SQL["drop_leases"], {"worker": worker})

        self._database.write(work)

    def workers(self, since_s: float) -> list[Worker]:
        """Those alive."""
        found = self._database.read(lambda connection: rows(connection, _SQL["workers"], {"since": since_s}))
        return [Worker(*row) for row in found]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim the free ones."""
        check_storable("a claim's name", [*names, worker])
        wanted = list(dict.fromkeys(names))
        given = {"names": wanted, "worker": worker, "until_s": now_s + duration_s, "now_s": now_s}
        taken = self._database.write(lambda connection: rows(connection, _SQL["take"], given))
        held = {name for (name,) in taken}
        return tuple(name for name in wanted if name in held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Hold on."""
        given = {"worker": worker, "until_s": now_s + duration_s}
        held = self._database.write(lambda connection: rows(connection, _SQL["renew"], given))
        return tuple(sorted(name for (name,) in held))

    def release(self, names: Sequence[str], worker: str) -> None:
        """Give up."""
        given = {"worker": worker, "names": [name for name in names if is_storable(name)]}
        self._database.write(lambda connection: rows(connection, _SQL["release"], given), durable=False)

    def claims(self, now_s: float) -> list[Claim]:
        """Not run out."""
        found = self._database.read(lambda connection: rows(connection, _SQL["claims"], {"now_s": now_s}))
        return [Claim(*row) for row in found]

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        """The next window."""

        def work(connection: Connection) -> RequestWindow:
            window, pace = _pace(connection).reserve(count, spacing_s, slack_s, now_s)
            rows(connection, _SQL["keep_pace"], asdict(pace))
            return window

        return self._database.write(work)

    def owe(self, owed_s: float, now_s: float) -> float:
        """A debt more."""

        def work(connection: Connection) -> float:
            pace = _pace(connection).owe(owed_s, now_s)
            rows(connection, _SQL["keep_pace"], asdict(pace))
            return pace.debt_s

        return self._database.write(work)

    def ahead_s(self, clock: Clock) -> float:
        """By the quickest of several looks: the server told its time between asking and hearing."""
        looks = [self._look(clock) for _ in range(_LOOKS)]
        passed_s, ahead_s = min(looks)
        # On one machine the server's time always lies between ours: a difference that small is none.
        return ahead_s if abs(ahead_s) > passed_s / 2 + _GRAIN_S else 0.0

    def _look(self, clock: Clock) -> tuple[float, float]:
        asked_s, before_s = clock.now_s(), clock.elapsed_s()
        ((told_s,),) = self._database.read(lambda connection: rows(connection, _SQL["clock"]))
        passed_s = clock.elapsed_s() - before_s
        return passed_s, told_s - asked_s - passed_s / 2


def _pace(connection: Connection) -> ReservationState:
    return ReservationState(*rows(connection, _SQL["pace"])[0])
