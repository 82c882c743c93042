"""Rows of a table looked at in bulk against one by one: what it costs, and what the money keeps fresh.

The cost of a statement for n rows is fitted as a + b·n; ``money`` plans with it the interval that earns
the most for bulks of each size, and predicts freshness and net income. Then the plan is carried out on
the real table: rows change at random times of a clock that the benchmark turns, whole rounds are polled
through the source, and freshness is worked out from when each row changed and was polled. Costs are
processor time, of which SQLite needs all in this process.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from afresh.money.many import Incomes, best_intervals
from afresh.sources.sql_settings import SqlSettings
from afresh.sources.sql_source import SqlSource
from afresh.sources.surroundings import Surroundings
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from bench.rows import Row

Array = npt.NDArray[np.float64]

_RATE = 1.0  # changes of a row a day
_BENEFIT = 1.0  # of a right row, a day
_PRICE = 2000.0  # of a second of the database's time
_ROUNDS = 3


def rows(*, quick: bool) -> list[Row]:
    """Cost by size of bulk, the plan for it, and what came of the plan."""
    count, bulk, singles = (2_000, 200, 100) if quick else (100_000, 1000, 2000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.db"
        _make(path, count)
        return asyncio.run(_measured(path, count, bulk, singles, quick=quick))


async def _measured(path: Path, count: int, bulk: int, singles: int, *, quick: bool) -> list[Row]:
    settings = SqlSettings(
        name="rows", url=f"sqlite:{path}", query="SELECT * FROM record", key="id", bulk=bulk
    )
    source = SqlSource(settings, Surroundings())
    await source.poll(_lease(0))
    one_s = await _seconds(source, range(singles), 1) / singles
    many_s = await _seconds(source, range(count), bulk) / count
    fixed_s, each_s = _line(one_s, many_s * bulk, bulk)
    alone = _plan(1, fixed_s, each_s)
    planned = _plan(bulk, fixed_s, each_s)
    interval = float(planned.interval)
    freshness, found, spent_s = await _carried_out(source, path, count, bulk, interval)
    await source.close()
    earned = freshness * _BENEFIT * count - spent_s / (_ROUNDS * interval) * _PRICE
    predicted = float(planned.net_income) / bulk * count
    limit = None if quick else 0.05
    return [
        Row("one by one", 1e6 * one_s, "µs/row"),
        Row(f"in bulks of {bulk}", 1e6 * many_s, "µs/row", ratio=one_s / many_s, at_least=2.0),
        Row("freshness planned, one by one", float(alone.freshness), ""),
        Row("freshness planned, in bulk", float(planned.freshness), ""),
        Row("freshness measured, in bulk", freshness, ""),
        Row("off the plan", abs(freshness - float(planned.freshness)), "", at_most=limit),
        Row("changes found of those expected", found / (count * -np.expm1(-_RATE * interval)), ""),
        Row(
            "net income measured", earned, "a day", ratio=earned / predicted, at_least=None if quick else 0.8
        ),
        Row("net income planned, one by one", float(alone.net_income) * count, "a day"),
    ]


def _plan(size: int, fixed_s: float, each_s: float) -> Incomes:
    """The best interval for bulks of ``size`` rows, in days."""
    cost = _PRICE * (fixed_s + each_s)
    return best_intervals(
        _RATE,
        _BENEFIT,
        cost,
        size=size,
        cost_of_size=lambda n: (fixed_s + each_s * n) / (fixed_s + each_s),
    )


def _line(one_s: float, bulk_s: float, bulk: int) -> tuple[float, float]:
    """a and b of a + b·n through the two sizes measured."""
    each_s = max((bulk_s - one_s) / (bulk - 1), 0.0)
    return max(one_s - each_s, 0.0), each_s


async def _carried_out(
    source: SqlSource, path: Path, count: int, bulk: int, interval: float
) -> tuple[float, int, float]:
    """Freshness over some rounds, changes found a round, and the seconds that polling took."""
    rng = np.random.default_rng(5)
    leases = [_lease(key) for key in range(count)]
    held = await _round(source, leases, bulk)
    right, found, spent_s = 0.0, 0, 0.0
    for number in range(1, _ROUNDS + 1):
        first = rng.exponential(1 / _RATE, count)  # of each row, since its last poll
        right += float(np.minimum(first, interval).sum()) / interval / count
        _change(path, np.flatnonzero(first < interval), number)
        start_s = time.process_time()
        before = held
        held = await _round(source, before, bulk)
        spent_s += time.process_time() - start_s
        found += sum(old.content_hash != new.content_hash for old, new in zip(before, held, strict=True))
    return right / _ROUNDS, found // _ROUNDS, spent_s


async def _round(source: SqlSource, leases: Sequence[Lease], bulk: int) -> list[Lease]:
    """Poll all, bulk by bulk; the leases that follow."""
    fetched: list[Fetched] = []
    for at in range(0, len(leases), bulk):
        fetched += await source.poll_many(leases[at : at + bulk])
    return [_held(lease, one) for lease, one in zip(leases, fetched, strict=True)]


async def _seconds(source: SqlSource, keys: Sequence[int], bulk: int) -> float:
    leases = [_lease(key) for key in keys]
    start_s = time.process_time()
    await _round(source, leases, bulk)
    return time.process_time() - start_s


def _lease(key: int) -> Lease:
    return Lease(key, str(key), "rows", "rows", 1, 1e12)


def _held(lease: Lease, fetched: Fetched) -> Lease:
    found = fetched.normal_hash if fetched.kind == "content" else lease.content_hash
    return replace(lease, validators=fetched.validators, content_hash=found)


def _make(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE record (id INTEGER PRIMARY KEY, name TEXT, price REAL, version INTEGER)"
        )
        rows = ((at, f"record number {at}", at / 7, 0) for at in range(count))
        connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", rows)
        connection.commit()


def _change(path: Path, keys: npt.NDArray[np.intp], version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        changed = ((version, int(key)) for key in keys)
        connection.executemany("UPDATE record SET version = ? WHERE id = ?", changed)
        connection.commit()
