"""A cursor proves right by moving with every change; then rows that it does not announce are left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.engine.scheduler.test_picker import NOW, policy

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.scheduler.row_policy import CURSOR, Tier
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.state_names import SOURCE_STATE
from afresh.sources.sql.cursor_trust import FIRST_PROOF, CursorTrust

ROWS, BUDGET = 25, 200
SETTINGS = f"""
[budget]
requests = "{BUDGET}/s"
[[source]]
name = "shop"
kind = "sql"
url = "sqlite:{{path}}"
query = "SELECT * FROM stock"
key = "id"
cursor = "at"
overlap = "0s"
listings_every = "0.05s"
min_interval = 0
bulk = 1
"""


def test_trust_is_saved_and_other_bytes_are_ignored() -> None:
    trust = CursorTrust(7, 40)
    assert CursorTrust.unpack(trust.pack()) == trust
    assert [CursorTrust.unpack(each) for each in (b"", b"{}", b"[1]", b"\xff")] == [None] * 4


def test_rows_of_a_settled_source_wait_for_a_notice() -> None:
    chosen = policy(4, polled_s=np.array([NOW - 1e6, NOW - 1e6, NOW - 1e6, np.nan]))
    chosen.settled_sources = frozenset(np.unique(chosen.item_rows.source).tolist())
    chosen.item_rows.is_requested[1] = True
    chosen.ranking.notice(np.array([2]), NOW - 5.0, CURSOR)
    assert chosen.priorities(NOW).tier.tolist() == [Tier.BARRED, Tier.REQUESTED, Tier.RANKED, Tier.NEW]
    assert chosen.held_back == "unchanged"


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    path = tmp_path / "stock.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY, count INTEGER, at INTEGER)")
        database.executemany("INSERT INTO stock VALUES (?, 0, 0)", [(row,) for row in range(ROWS)])
    return path


def write(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def make(path: Path) -> Engine:
    return make_engine(parse_settings(SETTINGS.format(path=path)), path.parent, seed=1)


def trust_of(engine: Engine) -> CursorTrust:
    found = CursorTrust.unpack(engine.store.state.get(SOURCE_STATE + "shop") or b"")
    assert found is not None
    return found


def test_rows_that_the_cursor_does_not_announce_are_polled_at_random_only(stock: Path) -> None:
    with make(stock) as engine:
        engine.run(once=True)
        write(stock, "UPDATE stock SET count = count + 1, at = 1")
        while not trust_of(engine).is_proven or engine.run(for_s=0.5).changes:
            engine.run(for_s=0.5)
        quiet = engine.run(for_s=1.0)
        assert quiet.polls - quiet.audits < 0.2 * BUDGET  # a few before the first listing
        run = engine.status().run
        assert run is not None
        assert run.unspent["unchanged"] > 0.3 * BUDGET
        write(stock, "UPDATE stock SET count = count + 1, at = 2 WHERE id < 5")
        assert engine.run(for_s=1.0).changes >= 5  # what the cursor announces is polled
        write(stock, "UPDATE stock SET count = count + 1")  # somebody forgets the cursor
        while trust_of(engine).needed == FIRST_PROOF:  # until an audit finds it
            engine.run(for_s=0.5)
        assert not trust_of(engine).is_proven


def test_a_single_round_of_a_new_process_polls_what_the_cursor_announces(stock: Path) -> None:
    """It knows from the store that the cursor proved right, and waits for the listing."""
    with make(stock) as engine:
        engine.run(once=True)
        write(stock, "UPDATE stock SET count = count + 1, at = 1")
        while not trust_of(engine).is_proven or engine.run(for_s=0.5).changes:
            engine.run(for_s=0.5)  # until every change is found
    write(stock, "UPDATE stock SET count = count + 1, at = 2 WHERE id < 5")
    with make(stock) as engine:
        done = engine.run(once=True)
        assert done.changes == 5
        assert done.polls < ROWS
