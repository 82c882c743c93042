"""What workers share: processes on one machine are the fleet of a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple

from afresh.stores.reservations import ReservationState
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.queries import load_blocks
from afresh.stores.sqlite.rows import json_list
from afresh.stores.texts import check_storable, is_storable
from afresh.values.clock import Clock
from afresh.values.stored import Claim, RequestWindow, Worker

_SQL = load_blocks("fleet.sql")


class SqliteFleet:
    """``Fleet`` in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        """On one database."""
        self._database = database

    def beat(self, worker: Worker) -> None:
        """Alive."""
        check_storable("a worker's name", [worker.name, worker.host])
        row = (worker.name, worker.host, worker.started_s, worker.seen_s)
        with self._database.write(durable=False) as connection:
            connection.execute(_SQL["beat"], row)

    def leave(self, worker: str) -> None:
        """Gone."""
        with self._database.write() as connection:
            connection.execute(_SQL["leave"], (worker,))
            connection.execute(_SQL["drop_claims"], (worker,))
            connection.execute(_SQL["drop_leases"], (worker,))

    def workers(self, since_s: float) -> list[Worker]:
        """Those alive."""
        with self._database.read() as connection:
            return [Worker(*row) for row in connection.execute(_SQL["workers"], (since_s,))]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Claim the free ones."""
        check_storable("a claim's name", [*names, worker])
        wanted = list(dict.fromkeys(names))
        given = {"names": json_list(wanted), "worker": worker, "until_s": now_s + duration_s, "now_s": now_s}
        with self._database.write(durable=False) as connection:
            held = {name for (name,) in connection.execute(_SQL["take"], given)}
        return tuple(name for name in wanted if name in held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        """Hold on."""
        with self._database.write(durable=False) as connection:
            held = connection.execute(_SQL["renew"], (now_s + duration_s, worker)).fetchall()
        return tuple(sorted(name for (name,) in held))

    def release(self, names: Sequence[str], worker: str) -> None:
        """Give up."""
        given = {"worker": worker, "names": json_list(name for name in names if is_storable(name))}
        with self._database.write(durable=False) as connection:
            connection.execute(_SQL["release"], given)

    def claims(self, now_s: float) -> list[Claim]:
        """Not run out."""
        with self._database.read() as connection:
            return [Claim(*row) for row in connection.execute(_SQL["claims"], (now_s,))]

    def reserve(self, count: int, spacing_s: float, slack_s: float, now_s: float) -> RequestWindow:
        """The next window."""
        with self._database.write() as connection:
            window, pace = _pace(connection).reserve(count, spacing_s, slack_s, now_s)
            connection.execute(_SQL["keep_pace"], astuple(pace))
        return window

    def owe(self, owed_s: float, now_s: float) -> float:
        """A debt more."""
        with self._database.write() as connection:
            pace = _pace(connection).owe(owed_s, now_s)
            connection.execute(_SQL["keep_pace"], astuple(pace))
        return pace.debt_s

    def ahead_s(self, clock: Clock) -> float:
        """One machine, one clock."""
        del clock
        return 0.0


def _pace(connection: sqlite3.Connection) -> ReservationState:
    return ReservationState(*connection.execute(_SQL["pace"]).fetchone())
