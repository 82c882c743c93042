"""What workers on many machines share, in PostgreSQL; the database's clock is the time of all of them."""

from __future__ import annotations

from afresh.stores.postgres.reconnection import Connection
from afresh.stores.sql.fleet import SqlFleet
from afresh.values.clock import Clock

_MEASUREMENTS = 5
_RESOLUTION_S = 2e-6  # the database tells microseconds, and near now doubles are 2⁻²² s apart


class PostgresFleet(SqlFleet[Connection]):
    """Implements ``Fleet``."""

    def ahead_s(self, clock: Clock) -> float:
        # The fastest of several answers is the most exact: the server read its clock between our two
        # readings.
        passed_s, ahead_s = min(self._measure(clock) for _ in range(_MEASUREMENTS))
        # On one machine the server's time always lies between ours: a difference that small is none.
        return ahead_s if abs(ahead_s) > passed_s / 2 + _RESOLUTION_S else 0.0

    def _measure(self, clock: Clock) -> tuple[float, float]:
        """Return how long the answer took, and how far the server's clock is ahead if it was read
        half-way."""
        asked_s, before_s = clock.now_s(), clock.elapsed_s()
        ((server_s,),) = self._database.fetch(self._sql["clock"])
        passed_s = clock.elapsed_s() - before_s
        return passed_s, server_s - asked_s - passed_s / 2
