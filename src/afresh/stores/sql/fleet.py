"""What the workers on one store share, in a SQL database: names, claims and request windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from afresh.stores.reservations import ReservationState
from afresh.stores.sql.database import ConnectionT, SqlGroup, T
from afresh.stores.store import Fleet
from afresh.values.clock import Clock
from afresh.values.storable_text import check_storable, is_storable
from afresh.values.stored import Claim, RequestWindow, Worker


class SqlFleet(SqlGroup[ConnectionT], Fleet):
    """Implements ``Fleet`` for a database on the workers' own machine, whose clock is theirs."""

    file = "fleet"

    def beat(self, worker: Worker) -> None:
        check_storable("a worker's name", [worker.name, worker.host])
        self._database.execute(self._sql["beat"], asdict(worker), durable=False)

    def leave(self, worker: str) -> None:
        def work(connection: ConnectionT) -> None:
            for name in ("leave", "drop_claims", "drop_leases"):
                self._database.rows(connection, self._sql[name], {"worker": worker})

        self._database.write(work)

    def workers(self, since_s: float) -> list[Worker]:
        return [Worker(*row) for row in self._database.fetch(self._sql["workers"], {"since": since_s})]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        check_storable("a claim's name", [*names, worker])
        wanted = list(dict.fromkeys(names))
        given = {"names": self._database.as_list(wanted), "worker": worker}
        given |= {"until_s": now_s + duration_s, "now_s": now_s}
        held = {name for (name,) in self._write_claims("take", given)}
        return tuple(name for name in wanted if name in held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        held = self._write_claims("renew", {"worker": worker, "until_s": now_s + duration_s})
        return tuple(sorted(name for (name,) in held))

    def release(self, names: Sequence[str], worker: str) -> None:
        wanted = self._database.as_list([name for name in names if is_storable(name)])
        self._database.execute(self._sql["release"], {"worker": worker, "names": wanted}, durable=False)

    def claims(self, now_s: float) -> list[Claim]:
        return [Claim(*row) for row in self._database.fetch(self._sql["claims"], {"now_s": now_s})]

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        return self._update(lambda state: state.reserve(count, spacing_s, slack_s, now_s))

    def owe(self, owed_s: float, now_s: float) -> float:
        def owe(state: ReservationState) -> tuple[float, ReservationState]:
            after = state.owe(owed_s, now_s)
            return after.debt_s, after

        return self._update(owe)

    def ahead_s(self, clock: Clock) -> float:
        del clock
        return 0.0

    def _write_claims(self, name: str, given: dict[str, object]) -> list[tuple[str]]:
        durable = self._database.survives_alone
        return self._database.execute(self._sql[name], given, durable=durable)

    def _update(self, change: Callable[[ReservationState], tuple[T, ReservationState]]) -> T:
        """Read the reservations, change them and keep them, in one transaction."""

        def work(connection: ConnectionT) -> T:
            (row,) = self._database.rows(connection, self._sql["pace"], {})
            result, after = change(ReservationState(*row))
            self._database.rows(connection, self._sql["keep_pace"], asdict(after))
            return result

        return self._database.write(work)
