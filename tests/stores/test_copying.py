"""A store copied to another, between databases, killed on the way and finished."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stores.backends import copy_of, ids_of, new_items, poll, schema_url, seen

from afresh.stores.copying import PROGRESS, copy_store
from afresh.stores.opening import open_for_copying, open_store
from afresh.stores.postgres.store import PostgresStore
from afresh.stores.sql import transfer
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention, Store
from afresh.values.errors import InputError, UsageError
from afresh.values.items import SORTS, ItemChange, ItemQuery, NewItem
from afresh.values.outcome import Observation, Spent

Copyable = SqliteStore | PostgresStore
RETENTION = Retention(versions=2, observations=40, audits=30)
LATER = 1e6


def fill(store: Store) -> None:
    """Everything that a store can hold."""
    store.items.add(new_items(12, labels={"a": "ß"}, selector="main"), 1.0)
    store.items.add(
        [NewItem("x" * 3000, "feed", "g", 2.0, 3.0, 4.0, 5.0, 0.5), NewItem("é", "feed", "g", listed=True)],
        2.0,
    )
    for time in range(45):
        poll(store, "k0", 10.0 + time, changed=time % 3 == 0, audit=time % 4 == 0, belief=bytes([time]))
    for number, content in enumerate((b"", b"two" * 500, bytes(range(256)), b"")):
        poll(store, f"k{number}", 70.0, new_copy=copy_of(content), validators={"etag": "é"}, event="new")
    poll(store, "k1", 80.0, new_copy=copy_of(b"newer"), spent=Spent(1, 20, 0.5, 0.25), event="changed")
    poll(store, "k2", 81.0, observation=None, failures=2, problem="timed out", due_s=float("inf"))
    observation = Observation(4, 90.0, 20.0, changed=True, modified_s=85.5, count=3, audit=True)
    poll(store, "k3", 90.0, observation=observation, spent=Spent(2))
    store.items.change(ids_of(store, ["k4", "k5"]), ItemChange(status="paused", weight=7.0))
    store.items.remove(ids_of(store, ["k6"]), 95.0, announce=True)
    store.events.defer([event.id for event in store.events.take(96.0, 2, 5.0)], 200.0)
    store.feed.move("index", store.feed.read(limit=2).cursor, 96.5, "web")
    poll(store, "k7", 96.6, new_copy=copy_of(b"untold"), event="new")
    store.leases.take([8, 9], 97.0, 50.0)
    store.notices.add([8, 9, 8], 98.0)
    store.state.set({"engine": b"\0\xff", "prior": b""})
    store.plan.save(np.array([10]), np.array([123.5]), [b"belief"])
    store.fleet.reserve(3, 2.0, 0.5, 100.0)
    store.fleet.owe(7.0, 100.0)


def everything(store: Store) -> dict[str, Any]:
    """All that the contract tells, without changing anything."""
    ids = range(1, 40)
    names = store.plan.names()
    (plan,) = store.plan.columns()
    audits = store.observations.audits(0.0)
    return {
        "items": store.items.by_id(ids),
        "pages": [store.items.page(ItemQuery(sort=sort), 99).items for sort in SORTS],
        "due": store.items.due(LATER, 99),
        "counts": store.items.counts(),
        "edits": store.items.edits(0),
        "leases": store.leases.open(100.0),
        "copies": [
            store.copies.get(item, version.number) for item in ids for version in store.copies.versions(item)
        ],
        "plan": [getattr(plan, name).tolist() for name in ("id", "status", "due_s", "belief_size")],
        "codes": [names[code] for code in (*plan.source.tolist(), *plan.group.tolist())],
        "beliefs": plan.beliefs,
        "observations": [
            [str(getattr(batch, name).tolist()) for name in batch.__slots__]
            for batch in store.observations.read()
        ],
        "audits": [str(getattr(audits, name).tolist()) for name in audits.__slots__],
        "feed": store.feed.read(),
        "end of feed": store.feed.cursor(),
        "consumers": store.feed.consumers(),
        "events": store.events.waiting(),
        "notices": store.notices.open(),
        "ledger": store.ledger.rows(0.0, LATER),
        "state": {name: store.state.get(name) for name in store.state.names()},
        "sizes": [
            getattr(store.upkeep.stats(), name)
            for name in ("versions", "contents", "content_bytes", "stored_bytes")
        ],
        "check": store.upkeep.check(),
    }


def next_numbers(store: Store) -> list[Any]:
    """What comes next of everything that is numbered; the store is changed by asking."""
    store.items.add([NewItem("new", "web", "new host")], 500.0)
    (lease,) = store.leases.take(list(store.items.ids(["new"]).values()), 500.0, 5.0)
    (listed,) = store.leases.take(list(store.items.ids(["é"]).values()), 500.0, 5.0)
    assert listed.listed
    store.commit([seen(lease, 501.0, new_copy=copy_of(b"fresh"), event="new", audit=True)])
    store.items.change(ids_of(store, ["new"]), ItemChange(weight=2.0))
    store.notices.add([lease.item_id], 502.0)
    return [
        lease,
        store.items.edits(0).number,
        store.notices.open()[-1],
        store.events.take(600.0, 99, 5.0),
        store.feed.cursor(),
        store.fleet.reserve(1, 2.0, 0.0, 101.0),
        store.items.get("new"),
    ]


@pytest.fixture
def source(tmp_path: Path) -> SqliteStore:
    """A filled file."""
    store = SqliteStore(tmp_path / "source.db", retention=RETENTION)
    fill(store)
    return store


@pytest.fixture
def database(postgres_url: str, tmp_path: Path) -> Callable[[str], PostgresStore]:
    """Makes empty stores in PostgreSQL."""
    return lambda name: PostgresStore(schema_url(postgres_url, tmp_path / name), retention=RETENTION)


def test_a_copy_to_postgresql_and_back_is_the_same_store(
    source: SqliteStore, database: Callable[[str], PostgresStore], tmp_path: Path
) -> None:
    with source, database("there") as there, SqliteStore(tmp_path / "back.db", retention=RETENTION) as back:
        told: list[tuple[int, int]] = []
        rows = copy_store(source.tables, there.tables, lambda done, total: told.append((done, total)))
        assert told[-1] == (rows, rows)
        assert everything(there) == everything(source)
        copy_store(there.tables, back.tables)
        assert everything(back) == everything(source)
        expected = next_numbers(source)
        assert next_numbers(there) == expected
        assert next_numbers(back) == expected
        assert everything(there) == everything(source)


def test_both_databases_have_the_same_columns_of_every_table(
    source: SqliteStore, database: Callable[[str], PostgresStore]
) -> None:
    with (
        source,
        database("there") as there,
        there.tables.snapshot() as theirs,
        source.tables.snapshot() as ours,
    ):
        for table, keys in transfer.TABLES.items():
            columns = source.tables.columns(ours, table)
            assert sorted(there.tables.columns(theirs, table)) == sorted(columns)
            assert tuple(columns[: len(keys)]) == keys
        assert "worker" not in source.tables.columns(ours, "lease")


class KilledError(Exception):
    """The copier is gone."""


@pytest.mark.parametrize("direction", ["to postgresql", "from postgresql"])
def test_a_copy_killed_after_any_batch_is_finished_by_the_next(
    source: SqliteStore,
    database: Callable[[str], PostgresStore],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    direction: str,
) -> None:
    monkeypatch.setattr(transfer, "ROWS_AT_ONCE", dict.fromkeys(transfer.TABLES, 3))
    there = database("there")
    begin: Copyable = source
    end: Copyable = there
    if direction == "from postgresql":
        copy_store(source.tables, there.tables)
        begin, end = there, SqliteStore(tmp_path / "end.db", retention=RETENTION)
    runs = 0

    def die(done: int, total: int) -> None:
        if done < total:
            raise KilledError

    with source, begin, end:
        while True:
            runs += 1
            try:
                copy_store(begin.tables, end.tables, die)
                break
            except KilledError:
                assert end.state.get(PROGRESS) is not None
        assert runs > 20
        assert everything(end) == everything(begin)


def test_a_source_that_was_used_meanwhile_is_copied_anew(
    source: SqliteStore, database: Callable[[str], PostgresStore]
) -> None:
    def die(done: int, total: int) -> None:
        del done, total
        raise KilledError

    with source, database("there") as there:
        uses: tuple[Callable[[], None], ...] = (
            partial(poll, source, "k9", 300.0, new_copy=copy_of(b"other")),
            partial(source.state.set, {"engine": b"new"}),
        )
        for use in uses:
            with pytest.raises(KilledError):
                copy_store(source.tables, there.tables, die)
            use()
        copy_store(source.tables, there.tables)
        assert everything(there) == everything(source)


def test_only_an_empty_store_is_filled(
    source: SqliteStore, database: Callable[[str], PostgresStore], tmp_path: Path, postgres_url: str
) -> None:
    def die(done: int, total: int) -> None:
        del done, total
        raise KilledError

    with source, database("full") as full, database("there") as there:
        full.state.set({"a": b"b"})
        with pytest.raises(InputError, match="is not empty: a store can only be copied to a new one"):
            copy_store(source.tables, full.tables)
        assert full.state.names() == ["a"]
        with pytest.raises(UsageError, match="to itself"):
            copy_store(source.tables, source.tables)
        with pytest.raises(KilledError):
            copy_store(source.tables, there.tables, die)
        url = schema_url(postgres_url, tmp_path / "there")
        with pytest.raises(InputError, match=r"is the unfinished copy of .*source\.db: run the same"):
            open_store(url)
        with pytest.raises(InputError, match=r"is the unfinished copy of .*source\.db: finish that"):
            copy_store(full.tables, there.tables)
        with pytest.raises(InputError, match="is the unfinished copy"):
            copy_store(there.tables, full.tables)
        copy_store(source.tables, there.tables)
        open_store(url).close()
    with pytest.raises(UsageError, match="in memory cannot be copied"):
        open_for_copying("memory:")


# Copies one batch of three rows after the other and says how far it came.
COPIER = """
import sys
from afresh.stores import copying
from afresh.stores.opening import open_for_copying
from afresh.stores.sql import transfer

transfer.ROWS_AT_ONCE = dict.fromkeys(transfer.TABLES, 3)
with open_for_copying(sys.argv[1]) as source, open_for_copying(sys.argv[2]) as target:
    copying.copy_store(source.tables, target.tables, lambda done, total: print(done, flush=True))
"""


def test_a_process_killed_while_it_copies_leaves_what_can_be_finished(
    source: SqliteStore, database: Callable[[str], PostgresStore], tmp_path: Path, postgres_url: str
) -> None:
    url = schema_url(postgres_url, tmp_path / "there")
    command = [sys.executable, "-c", COPIER, str(tmp_path / "source.db"), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as copier:
        assert copier.stdout is not None
        for _ in range(7):
            copier.stdout.readline()
        copier.kill()
    with source, database("there") as there:
        copy_store(source.tables, there.tables)
        assert everything(there) == everything(source)
