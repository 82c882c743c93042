"""Five tables, written to at random, and eight views: two over others, one with an expensive join.

What is true of the views is worked out afterwards from when transactions committed and when refreshes
began, not from anything that the policies see.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import psycopg

Array = npt.NDArray[np.float64]

TABLES = ("calm", "slow", "usual", "quick", "hectic")
VIEWS: Mapping[str, tuple[str, ...]] = {
    "public.one": ("calm",),
    "public.over": ("calm", "slow"),
    "public.busy": ("hectic",),
    "public.dear": ("usual", "quick"),
    "public.light": ("slow",),
    "public.pair": ("quick",),
    "public.wide": ("slow", "usual", "hectic"),
    "public.top": ("calm", "slow", "usual"),
}
UPSTREAM = {"public.over": ("public.one",), "public.top": ("public.over",)}
COSTS_S = {
    "one": 0.08,
    "over": 0.03,
    "busy": 0.03,
    "dear": 0.5,
    "light": 0.02,
    "pair": 0.05,
    "wide": 0.05,
    "top": 0.04,
}
"""How many seconds the query of each view waits: a refresh takes as long on a busy machine as on a quiet one.
"""

_MAKE = """
    CREATE MATERIALIZED VIEW one AS {one} SELECT bucket, count(*) AS n FROM calm, wait GROUP BY bucket;
    CREATE UNIQUE INDEX ON one (bucket);
    CREATE MATERIALIZED VIEW over AS {over}
        SELECT one.bucket, one.n, count(*) AS m FROM wait, one JOIN slow USING (bucket) GROUP BY 1, 2;
    CREATE MATERIALIZED VIEW busy AS {busy} SELECT bucket, count(*) AS n FROM hectic, wait GROUP BY bucket;
    CREATE MATERIALIZED VIEW dear AS {dear}
        SELECT bucket, count(*) AS n FROM wait, usual JOIN quick USING (bucket) GROUP BY bucket;
    CREATE MATERIALIZED VIEW light AS {light} SELECT max(id) AS last FROM slow, wait;
    CREATE MATERIALIZED VIEW pair AS {pair} SELECT bucket, min(id) AS first FROM quick, wait GROUP BY bucket;
    CREATE UNIQUE INDEX ON pair (bucket);
    CREATE MATERIALIZED VIEW wide AS {wide}
        SELECT bucket, count(*) AS n FROM
            wait, (TABLE slow UNION ALL TABLE usual UNION ALL TABLE hectic) AS x GROUP BY bucket;
    CREATE MATERIALIZED VIEW top AS {top}
        SELECT over.bucket, over.m, count(*) AS n FROM wait, over JOIN usual USING (bucket) GROUP BY 1, 2;
"""


def make(connection: psycopg.Connection[tuple[object, ...]], rows: int) -> None:
    """Empty the database and make the tables, with so many rows each, and the views."""
    connection.execute("SET client_min_messages = warning")
    connection.execute("DROP SCHEMA public CASCADE")
    connection.execute("CREATE SCHEMA public")
    for table in TABLES:
        connection.execute(f"CREATE TABLE {table} (id bigserial PRIMARY KEY, bucket int)".encode())
        text = f"INSERT INTO {table} (bucket) SELECT n % 20 FROM generate_series(1, {rows}) AS n"
        connection.execute(text.encode())
    waits = {
        view: f"WITH wait AS MATERIALIZED (SELECT pg_sleep({cost_s}))" for view, cost_s in COSTS_S.items()
    }
    connection.execute(_MAKE.format(**waits).encode())
    connection.execute("ANALYZE")


@dataclass(frozen=True, slots=True)
class Write:
    """One transaction of the load: when, into which table, how many rows."""

    time_s: float
    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Load:
    """A load; ``rates`` are the transactions per second of each table."""

    rates: tuple[float, ...]
    seed: int
    seconds: float = 60.0

    def writes(self) -> list[Write]:
        """Return the writes, the same for every policy: Poisson times, batches of geometric size."""
        rng = np.random.default_rng(self.seed)
        found: list[Write] = []
        for table, rate in zip(TABLES, self.rates, strict=True):
            times = rng.uniform(0.0, self.seconds, rng.poisson(rate * self.seconds))
            found += [Write(float(at), table, int(rng.geometric(0.1))) for at in times]
        return sorted(found, key=lambda write: write.time_s)

    def rate_of(self, view: str) -> float:
        """Return the rate of all tables below a view together."""
        return sum(self.rates[TABLES.index(table)] for table in VIEWS[view])


LOADS: Mapping[str, Load] = {
    "as named": Load((0.03, 0.08, 0.2, 0.5, 2.0), seed=1),  # the expensive view changes often
    "other": Load((0.4, 1.0, 0.05, 0.1, 0.3), seed=2),  # the expensive view changes least, all others often
    "busy": Load((1.0, 0.5, 1.0, 2.0, 4.0), seed=3),  # far more changes than the budget can follow
}


@dataclass
class Writer:
    """Writes the load from a thread of its own, and records when each transaction was committed."""

    url: str
    writes: Sequence[Write]
    prompt: bool  # report counters at once, rather than when PostgreSQL would
    committed: dict[str, list[float]] = field(default_factory=lambda: {table: [] for table in TABLES})
    start_s: float = 0.0

    def begin(self) -> threading.Thread:
        """Start; times count from now on."""
        self.start_s = time.perf_counter()
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def now_s(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.start_s

    def _run(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for write in self.writes:
                time.sleep(max(0.0, write.time_s - self.now_s()))
                text = (
                    f"INSERT INTO {write.table} (bucket) SELECT n FROM generate_series(1, {write.rows}) AS n"
                )
                connection.execute(text.encode())
                self.committed[write.table].append(self.now_s())
                if self.prompt:
                    connection.execute("SELECT pg_stat_force_next_flush()")


@dataclass(frozen=True, slots=True)
class Refresh:
    """A view was refreshed from ``start_s`` to ``end_s``."""

    view: str
    start_s: float
    end_s: float


SAMPLED_S = 0.02


def lags(
    refreshes: Sequence[Refresh], committed: Mapping[str, Sequence[float]], seconds: float
) -> dict[str, Array]:
    """Return the lag of each view at moments ``SAMPLED_S`` apart: the time since the oldest committed
    transaction that it lacks, 0 while it lacks none. All views start fresh.

    What a view shows is as old as the beginning of its last refresh or, of tables that it reads through
    another view, of that one's last refresh before.
    """
    moments = np.arange(0.0, seconds, SAMPLED_S)
    found: dict[str, Array] = {}
    for view, tables in VIEWS.items():
        lag = np.zeros(moments.size)
        for table in tables:
            times = np.append(np.asarray(committed[table], dtype=np.float64), np.inf)
            # the first commit after what the view shows; it is missing if it came before the moment
            missing = times[np.searchsorted(times, _shown(view, table, refreshes, moments), "right")]
            lag = np.maximum(lag, np.where(missing <= moments, moments - missing, 0.0))
        found[view] = lag
    return found


def _shown(view: str, table: str, refreshes: Sequence[Refresh], moments: Array) -> Array:
    """Return, at each time, up to when the view's content holds a table's transactions."""
    own = [one for one in refreshes if one.view == view]
    begun = np.array([one.start_s for one in own])
    for below in UPSTREAM.get(view, ()):
        if table in VIEWS[below]:
            begun = _shown(below, table, refreshes, begun) if begun.size else begun
    ended = np.array([one.end_s for one in own])
    last = np.searchsorted(ended, moments, "right") - 1
    return np.where(last >= 0, np.append(begun, 0.0)[last], 0.0)
