"""Rows behind a query in the loop: listed by the query itself, read many at once, within the money."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.virtual_time import VirtualTime

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import LISTED_AT
from afresh.money.best_interval import best_intervals

ROWS = 600


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "stock.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE stock (sku INTEGER PRIMARY KEY, amount INTEGER)")
        connection.execute("BEGIN")  # or each row waits for the disk
        connection.executemany("INSERT INTO stock VALUES (?, 0)", ((sku,) for sku in range(ROWS)))
        connection.execute("COMMIT")
        yield connection


def engine_of(
    folder: Path,
    time: VirtualTime | None = None,
    *,
    bulk: int,
    more: str = "",
    source: str = "",
    query: str = "SELECT * FROM stock",
) -> Engine:
    text = f"""
        [budget]
        requests = "500/s"
        {more}
        [plan]
        audit_share = 0
        [[source]]
        name = "stock"
        kind = "sql"
        url = "sqlite:{folder}/stock.db"
        query = "{query}"
        key = "sku"
        bulk = {bulk}
        {source}
    """
    time = time or VirtualTime()
    return make_engine(parse_settings(text), folder, seed=1, clock=time, new_loop=time.new_loop)


def spent_requests(engine: Engine) -> int:
    return engine.store.ledger.total(0.0, 1e12).requests


def test_rows_are_listed_and_read_many_at_once(tmp_path: Path, table: sqlite3.Connection) -> None:
    with engine_of(tmp_path, bulk=100) as engine:
        assert engine.run(once=True).polls == ROWS
        few = spent_requests(engine)
        table.execute("UPDATE stock SET amount = 1 WHERE sku = 7")
        engine.poll_now(["7"])
        assert engine.run(once=True).changes == 1
    assert few <= ROWS / 100 + 4


def test_one_by_one_costs_a_request_each(tmp_path: Path, table: sqlite3.Connection) -> None:
    del table
    with engine_of(tmp_path, bulk=1) as engine:
        assert engine.run(once=True).polls == ROWS
        assert spent_requests(engine) >= ROWS


def test_a_bulk_is_planned_by_money_at_its_shared_cost(tmp_path: Path, table: sqlite3.Connection) -> None:
    del table
    prices: dict[str, Any] = {"more": "price_per_request = 1", "source": 'benefit = "1/s"'}
    found = {}
    for bulk in (1, 100):
        folder = tmp_path / str(bulk)
        folder.mkdir()
        (folder / "stock.db").write_bytes((tmp_path / "stock.db").read_bytes())
        with engine_of(folder, bulk=bulk, **prices) as engine:
            engine.run(for_s=2)
            found[bulk] = engine.status().money
    alone, together = found[1], found[100]
    assert alone is not None
    assert together is not None
    # The same rows at a hundredth of the price: the theory polls them ten times as often where λ is small.
    rate = 0.05
    theory = [float(best_intervals(rate, 1.0, cost).net_income) for cost in (1.0, 0.01)]
    assert theory[1] > theory[0]
    assert together.income_per_s > alone.income_per_s
    assert together.futile <= alone.futile
    assert np.isfinite(together.money_per_s)


def test_a_listing_that_failed_is_tried_again_soon_and_then_more_rarely(
    tmp_path: Path, table: sqlite3.Connection
) -> None:
    del table
    time = VirtualTime()
    with engine_of(tmp_path, time, bulk=100, query="SELECT * FROM nowhere") as engine:
        engine.run(for_s=4)
        assert spent_requests(engine) == 3  # at 0, 1 and 3 s
        again_s = float((engine.store.state.get(LISTED_AT + "stock") or b"").split()[0])
        assert 0 < again_s - time.now_s() < 5


def test_a_listing_is_read_at_once_by_the_next_process_or_with_other_settings(
    tmp_path: Path, table: sqlite3.Connection
) -> None:
    time = VirtualTime()
    with engine_of(tmp_path, time, bulk=100, query="SELECT * FROM nowhere") as engine:
        engine.run(once=True)
        (trouble,) = engine.status().troubles
        assert "nowhere" in trouble.problem
        assert engine.store.items.counts() == []
    with engine_of(tmp_path, time, bulk=100) as engine:
        engine.run(once=True)
        assert engine.status().troubles == ()
        assert sum(count.items for count in engine.store.items.counts()) == ROWS
    # What worked is not read again before its time, but with another query it is.
    table.execute("INSERT INTO stock VALUES (-1, 0)")
    with engine_of(tmp_path, time, bulk=100) as engine:
        engine.run(once=True)
        assert engine.store.items.get("-1") is None
    with engine_of(tmp_path, time, bulk=100, query="SELECT * FROM stock WHERE sku < 10") as engine:
        engine.run(once=True)
        assert engine.store.items.get("-1") is not None
