"""The PostgreSQL store with 1e6 items and four workers, each a process: leasing, committing, what is due.

Polls come in groups of 1000 items at random, every tenth with a new copy of 2 kB. The yardstick is four
workers that upsert groups as large into a plain table of ids, due times and rate states, on the same server
in the same run. The server is that of the tests, with a disk that is synced at every commit.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from tests.servers.postgres import PostgresServer

from afresh.stores.postgres.store import PostgresStore
from afresh.values.lease import Lease
from afresh.values.outcome import Outcome
from bench.rows import Row
from bench.store import numbered_items, outcome_of
from bench.timing import seconds

_WORKERS = 4
_GROUP = 1000
_DAY = 86400.0
_SETTINGS = "shared_buffers = 512MB\nmax_wal_size = 4GB\nlog_min_messages = fatal\n"
_UPSERT = b"""
    INSERT INTO plain (id, due_s, belief)
    SELECT * FROM unnest(%(ids)s::bigint[], %(due)s::double precision[], %(beliefs)s::bytea[])
    ON CONFLICT (id) DO UPDATE SET due_s = excluded.due_s, belief = excluded.belief"""


def rows(*, quick: bool) -> list[Row]:
    """Measure one server."""
    size, groups, turns = (20_000, 2, 1) if quick else (1_000_000, 10, 3)
    server = PostgresServer(_SETTINGS)
    try:
        start = time.perf_counter()
        with PostgresStore(server.url(), timeout_s=60.0) as store:
            store.items.add(numbered_items(size), 0.0)
            registered = time.perf_counter() - start
            _prepare(store, server.url(), size)
            due, counts, stats, columns = seconds(
                lambda: store.items.due(15 * _DAY, 1000),
                store.items.counts,
                store.upkeep.stats,
                lambda: sum(batch.id.size for batch in store.plan.columns()),
                repeats=2 if quick else 4,
            )
            per_item = store.upkeep.stats().file_bytes / size
        leased, committed, upserted, memory = _fleet(server.url(), size, groups, turns)
    finally:
        server.close()
    outcomes = _WORKERS * groups * _GROUP
    return [
        Row(f"register {size:.0e} items", registered, "s"),
        Row("database per item, without copies", per_item, "B"),
        Row("next 1000 due", due * 1e3, "ms"),
        Row("counts by source, group, status", counts * 1e3, "ms"),
        Row("sizes", stats * 1e3, "ms"),
        Row(f"columns of {size:.0e} items", columns, "s"),
        Row("leases by four workers", outcomes / leased, "/s"),
        Row("plain upserts by four workers", outcomes / upserted, "/s"),
        Row(
            "outcomes by four workers, against upserts",
            outcomes / committed,
            "/s",
            ratio=upserted / committed,
            at_least=None if quick else 1 / 3,
        ),
        Row("memory of a worker, at most", memory / 2**20, "MiB"),
    ]


def _prepare(store: PostgresStore, url: str, size: int) -> None:
    """Set due times over a month, make a plain table of the same size, and update the statistics."""
    chance = np.random.default_rng(0)
    store.plan.save(np.arange(1, size + 1), chance.uniform(0.0, 30 * _DAY, size), [bytes(16)] * size)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE plain (id bigint PRIMARY KEY, due_s double precision, belief bytea)")
        connection.execute("CREATE INDEX plain_due ON plain (due_s)")
        connection.execute(
            "INSERT INTO plain SELECT id, random() * 2592000, '\\x00000000000000000000000000000000'"
            " FROM generate_series(1, %s) AS id",
            (size,),
        )
    store.upkeep.vacuum()


def _fleet(url: str, size: int, groups: int, turns: int) -> tuple[float, float, float, int]:
    """Return the least time of each phase over all turns, from first start to last end, and the memory."""
    context = multiprocessing.get_context("spawn")
    barrier, told = context.Barrier(_WORKERS), context.Queue()
    workers = [
        context.Process(target=_work, args=(url, size, number, groups, turns, barrier, told))
        for number in range(_WORKERS)
    ]
    for worker in workers:
        worker.start()
    found: list[Any] = [told.get() for _ in workers]
    for worker in workers:
        worker.join()
    spans = np.array([spans for spans, _ in found])  # worker, turn, phase, start or end
    times = spans[..., 1].max(axis=0) - spans[..., 0].min(axis=0)
    leased, committed, upserted = times.min(axis=0).tolist()
    return leased, committed, upserted, max(memory for _, memory in found)


def _work(url: str, size: int, number: int, groups: int, turns: int, barrier: Barrier, told: Any) -> None:
    """Run one worker, which polls every fourth item in random order."""
    chance = np.random.default_rng(number)
    order = chance.permutation(np.arange(number + 1, size + 1, _WORKERS))
    with PostgresStore(url, timeout_s=60.0) as store, psycopg.connect(url, autocommit=True) as plain:
        spans = [
            _turn(store, plain, _groups(order, turn * groups, groups), 1.0 + turn, chance, barrier)
            for turn in range(turns)
        ]
    told.put((spans, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def _groups(order: npt.NDArray[np.int64], first: int, groups: int) -> list[list[int]]:
    """Yield groups of items, and start again when all had their turn."""
    places = [np.arange(number * _GROUP, (number + 1) * _GROUP) for number in range(first, first + groups)]
    return [order[place % order.size].tolist() for place in places]


def _turn(
    store: PostgresStore,
    plain: psycopg.Connection[Any],
    wanted: list[list[int]],
    now_s: float,
    chance: np.random.Generator,
    barrier: Barrier,
) -> list[tuple[float, float]]:
    """Return when each phase began and ended: leasing, committing, upserting."""
    leases: list[list[Lease]] = []
    lent = _timed(barrier, lambda: leases.extend(store.leases.take(ids, now_s, 60.0) for ids in wanted))
    polls = [[outcome_of(lease, now_s, chance) for lease in group] for group in leases]
    done = _timed(barrier, lambda: _commit(store, polls))
    tables = [
        {
            "ids": sorted(ids),
            "due": chance.uniform(0.0, 30 * _DAY, _GROUP).tolist(),
            "beliefs": [chance.bytes(16) for _ in range(_GROUP)],
        }
        for ids in wanted
    ]
    return [lent, done, _timed(barrier, lambda: [plain.execute(_UPSERT, table) for table in tables])]


def _commit(store: PostgresStore, polls: list[list[Outcome]]) -> None:
    for group in polls:
        assert store.commit(group) == []


def _timed(barrier: Barrier, job: Callable[[], object]) -> tuple[float, float]:
    """Return start and end by the clock that all processes share; all workers start together."""
    barrier.wait()
    start = time.monotonic()
    job()
    return start, time.monotonic()
