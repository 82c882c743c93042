"""Rows of a table looked at in bulk against one by one: what it costs, and what the money keeps fresh.

The cost of a statement for n rows is fitted as a + b·n; ``money`` plans with it the interval that earns
the most for bulks of each size, and predicts freshness and net income. Then the plan is carried out on
the real table: rows change at random times of a clock that the benchmark turns, whole rounds are polled
through the source, and freshness is worked out from when each row changed and was polled. At last the engine
carries out the plan for what its own ledger says that statements take. Costs are processor time where SQLite
works in this process, and seconds where PostgreSQL or the engine's ledger is asked.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.money.best_interval import Incomes, best_intervals
from afresh.sources.context import SourceContext
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.sql.source import SqlSource
from afresh.values.clock import SystemClock
from afresh.values.fetched import Fetched
from afresh.values.items import ItemChange
from afresh.values.lease import Lease
from bench.rows import Row
from bench.sql_rows import Rows, SqliteRows, databases

Array = npt.NDArray[np.float64]

_RATE = 1.0  # changes of a row a day
_BENEFIT = 1.0  # of a right row, a day
_PRICE = 2000.0  # of a second of the database's time
_QUICK_PRICE = 20.0  # the same for few rows on a busy machine: at 2000 no poll might pay
_ROUNDS = 3
_DAY_S = 86400.0


def rows(*, quick: bool) -> list[Row]:
    """Measure the cost of bulks by size, plan for it, and measure the plan with the source and the engine."""
    count, bulk, singles = (2_000, 200, 100) if quick else (100_000, 1000, 2000)
    found: list[Row] = []
    with databases() as both:
        for name, table in both.items():
            table.make(count)
            found += asyncio.run(_measured(name, table, count, bulk, singles, quick=quick))
            found += _by_engine(name, table, count, bulk, quick=quick)
    return found


async def _measured(name: str, table: Rows, count: int, bulk: int, singles: int, *, quick: bool) -> list[Row]:
    settings = SqlSettings(name="rows", url=table.url, query="SELECT * FROM record", key="id", bulk=bulk)
    source = SqlSource(settings, SourceContext())
    clock = time.process_time if isinstance(table, SqliteRows) else time.perf_counter
    await source.poll(_lease(0))
    one_s = await _seconds(source, range(singles), 1, clock) / singles
    many_s = await _seconds(source, range(count), bulk, clock) / count
    fixed_s, each_s = _line(one_s, many_s * bulk, bulk)
    price = _QUICK_PRICE if quick else _PRICE
    alone, planned = _plan(1, fixed_s, each_s, price), _plan(bulk, fixed_s, each_s, price)
    freshness, found, spent_s = await _carried_out(source, table, count, bulk, float(planned.interval), clock)
    await source.close()
    changed = count * -np.expm1(-_RATE * float(planned.interval))
    return [
        Row(f"{name}: one by one", 1e6 * one_s, "µs/row"),
        # A few hundred rows on a busy machine can only show that bulks are not slower.
        Row(
            f"in bulks of {bulk}",
            1e6 * many_s,
            "µs/row",
            ratio=one_s / many_s,
            at_least=1.0 if quick else 2.0,
        ),
        Row("freshness planned, one by one", float(alone.freshness), ""),
        *_against(planned, bulk, count, freshness, spent_s, quick=quick),
        Row("changes found of those expected", found / changed, ""),
        Row("net income planned, one by one", float(alone.net_income) * count, "a day"),
    ]


def _against(
    planned: Incomes, bulk: int, count: int, freshness: float, spent_s: float, *, quick: bool
) -> list[Row]:
    """The result of a plan, in freshness and in money, over all rounds."""
    price = _QUICK_PRICE if quick else _PRICE
    earned = freshness * _BENEFIT * count - spent_s / (_ROUNDS * float(planned.interval)) * price
    predicted = float(planned.net_income) / bulk * count
    off, income = (None, None) if quick else (0.05, 0.8)
    return [
        Row("freshness planned, in bulk", float(planned.freshness), ""),
        Row("freshness measured, in bulk", freshness, ""),
        Row("off the plan", abs(freshness - float(planned.freshness)), "", at_most=off),
        Row("net income measured", earned, "a day", ratio=earned / predicted, at_least=income),
    ]


class _TurnedClock(SystemClock):
    """A clock that can be set forward."""

    ahead_s = 0.0

    def now_s(self) -> float:
        """Unix seconds."""
        return super().now_s() + self.ahead_s


def _by_engine(name: str, table: Rows, count: int, bulk: int, *, quick: bool) -> list[Row]:
    """Run rounds of ``afresh run --once``; the plan uses the time of statements in the first round."""
    text = f"""
        [budget]
        requests = "1e6/s"
        [plan]
        audit_share = 0
        [[source]]
        name = "rows"
        kind = "sql"
        url = "{table.url}"
        query = "SELECT * FROM record"
        key = "id"
        bulk = {bulk}
    """
    clock, keys = _TurnedClock(), [str(key) for key in range(count)]
    with (
        tempfile.TemporaryDirectory() as folder,
        make_engine(parse_settings(text), Path(folder), clock=clock) as engine,
    ):
        engine.add(keys, source="rows")
        first_s, requests = _round_of(engine)
        planned = _plan(bulk, bulk * first_s / count, 0.0, _QUICK_PRICE if quick else _PRICE)
        interval_s = float(planned.interval) * _DAY_S
        engine.set(
            keys, ItemChange(min_interval_s=interval_s, max_interval_s=interval_s, due_s=clock.now_s())
        )
        _round_of(engine)
        right, spent_s, start_s = 0.0, 0.0, time.process_time()
        for number, first in enumerate(_changes(count), 10):
            right += _right(first, float(planned.interval))
            table.change(np.flatnonzero(first < float(planned.interval)).tolist(), number)
            clock.ahead_s += interval_s
            spent_s += _round_of(engine)[0]
        cpu_s = (time.process_time() - start_s) / (_ROUNDS * count)
    return [
        Row(f"{name}, by the engine: statements for all", requests, ""),
        Row("its processor time, commits included", 1e6 * cpu_s, "µs/row"),
        *_against(planned, bulk, count, right / _ROUNDS, spent_s, quick=quick),
    ]


def _round_of(engine: Engine) -> tuple[float, int]:
    """Poll everything due once; return the seconds that statements took, and their number."""
    before = engine.store.ledger.total(0.0, np.inf)
    engine.run(once=True)
    after = engine.store.ledger.total(0.0, np.inf)
    return after.seconds - before.seconds, after.requests - before.requests


def _changes(count: int) -> list[Array]:
    """Return when each row first changes after its last poll, in days, for every round."""
    rng = np.random.default_rng(5)
    return [rng.exponential(1 / _RATE, count) for _ in range(_ROUNDS)]


def _right(first: Array, interval: float) -> float:
    """Return the share of an interval for which copies are right."""
    return float(np.minimum(first, interval).mean()) / interval


def _plan(size: int, fixed_s: float, each_s: float, price: float) -> Incomes:
    """Return the best interval for bulks of ``size`` rows, in days, at a price of a second."""
    cost = price * (fixed_s + each_s)
    return best_intervals(
        _RATE,
        _BENEFIT,
        cost,
        size=size,
        cost_of_size=lambda n: (fixed_s + each_s * n) / (fixed_s + each_s),
    )


def _line(one_s: float, bulk_s: float, bulk: int) -> tuple[float, float]:
    """Return a and b of the line a + b·n through the two sizes measured."""
    each_s = max((bulk_s - one_s) / (bulk - 1), 0.0)
    return max(one_s - each_s, 0.0), each_s


async def _carried_out(
    source: SqlSource, table: Rows, count: int, bulk: int, interval: float, clock: Callable[[], float]
) -> tuple[float, int, float]:
    """Return the freshness over some rounds, the changes found in a round, and the seconds of polling."""
    held = await _round(source, [_lease(key) for key in range(count)], bulk)
    right, found, spent_s = 0.0, 0, 0.0
    for number, first in enumerate(_changes(count), 1):
        right += _right(first, interval)
        table.change(np.flatnonzero(first < interval).tolist(), number)
        start_s, before = clock(), held
        held = await _round(source, before, bulk)
        spent_s += clock() - start_s
        found += sum(old.content_hash != new.content_hash for old, new in zip(before, held, strict=True))
    return right / _ROUNDS, found // _ROUNDS, spent_s


async def _round(source: SqlSource, leases: Sequence[Lease], bulk: int) -> list[Lease]:
    """Poll all rows, bulk by bulk, and return the next leases."""
    fetched: list[Fetched] = []
    for at in range(0, len(leases), bulk):
        fetched += await source.poll_many(leases[at : at + bulk])
    return [_held(lease, one) for lease, one in zip(leases, fetched, strict=True)]


async def _seconds(source: SqlSource, keys: Sequence[int], bulk: int, clock: Callable[[], float]) -> float:
    leases = [_lease(key) for key in keys]
    start_s = clock()
    await _round(source, leases, bulk)
    return clock() - start_s


def _lease(key: int) -> Lease:
    return Lease(key, str(key), "rows", "rows", 1, 1e12)


def _held(lease: Lease, fetched: Fetched) -> Lease:
    found = fetched.normal_hash if fetched.kind == "content" else lease.content_hash
    return replace(lease, validators=fetched.validators, content_hash=found)
