"""The SQLite store with 1e6 items: registering, finding what is due, listing, leasing, committing, starting.

Polls come in groups of 1000 items at random, every tenth with a new copy of 2 kB.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from afresh.stores.sqlite.store import SqliteStore
from afresh.values.items import SORTS, ItemQuery, NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import NewCopy, Observation, Outcome, Spent
from bench.rows import Row
from bench.timing import seconds

_GROUP = 1000
_GROUPS = 5
_CHANGED = 10
_DAY = 86400.0
_BELIEF = 118  # bytes, on a ladder of 23 rates


def rows(*, quick: bool) -> list[Row]:
    """Measure one store; the yardstick is an equally durable plain table of ids, due times and beliefs."""
    size, repeats = (20_000, 2) if quick else (1_000_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = SqliteStore(Path(folder) / "store.db")
        store.items.add(numbered_items(size), 0.0)
        registered = time.perf_counter() - start
        polls, table = _Polls(store, size), _PlainTable(Path(folder) / "plain.db", size)
        per_item = store.upkeep.stats().file_bytes / size
        due, counts, columns, *pages, leased, _, committed, upserted = seconds(
            lambda: store.items.due(15 * _DAY, 1000),
            store.items.counts,
            lambda: sum(batch.id.size for batch in store.plan.columns()),
            *(partial(store.items.page, ItemQuery(sort=sort, descending=True), 50) for sort in SORTS),
            *(partial(store.items.page, ItemQuery("nowhere", sort=sort), 50) for sort in SORTS),
            polls.lease,
            polls.decide,
            polls.commit,
            table.upsert,
            repeats=repeats,
        )
        store.close()
        table.close()
        once = bytes_per_polled_item(Path(folder) / "once.db", size // 10)
    wanted = (
        {} if quick else {"registered": 120.0, "due": 5.0, "columns": 3.0, "committed": 10e3, "page": 200.0}
    )
    first, searched = max(pages[: len(SORTS)]), max(pages[len(SORTS) :])
    number = _GROUP * _GROUPS
    return [
        Row(f"register {size:.0e} items", registered, "s", at_most=wanted.get("registered")),
        Row("file per item, registered", per_item, "B"),
        Row("file per item, polled once, its copy aside", once, "B"),
        Row("next 1000 due", due * 1e3, "ms", at_most=wanted.get("due")),
        Row("counts by source, group, status", counts * 1e3, "ms"),
        Row(f"columns of {size:.0e} items", columns, "s", at_most=wanted.get("columns")),
        Row("page of 50, the slowest order", first * 1e3, "ms", at_most=wanted.get("page")),
        Row("page of a search in vain", searched * 1e3, "ms", at_most=wanted.get("page")),
        Row("leases", number / leased, "/s"),
        Row("outcomes", number / committed, "/s", at_least=wanted.get("committed")),
        Row("outcomes against plain upserts", number / upserted, "/s", ratio=upserted / committed),
    ]


def bytes_per_polled_item(path: Path, size: int) -> float:
    """Return the bytes of the file for each item that was polled once, without the compressed copies."""
    chance = np.random.default_rng(2)
    with SqliteStore(path) as store:
        store.items.add(numbered_items(size), 0.0)
        for first in range(1, size + 1, _GROUP):
            leases = store.leases.take(range(first, min(first + _GROUP, size + 1)), 1.0, 60.0)
            assert store.commit([_first_outcome(lease, chance) for lease in leases]) == []
    with closing(sqlite3.connect(path)) as connection:
        (copies,) = connection.execute("SELECT sum(length(data)) FROM payload").fetchone()
    return float(path.stat().st_size - copies) / size


def _first_outcome(lease: Lease, chance: np.random.Generator) -> Outcome:
    outcome = outcome_of(lease, 1.0, chance)
    content = chance.bytes(32)
    copy = NewCopy(content, "text/html", content)
    return replace(outcome, new_copy=copy, belief=chance.bytes(_BELIEF))


class _Polls:
    """Polls random items: leases, decides and commits a few groups at a time."""

    def __init__(self, store: SqliteStore, size: int) -> None:
        self._store, self._chance = store, np.random.default_rng(0)
        self._groups = _groups(self._chance, size)
        self._leases: list[list[Lease]] = []
        self._outcomes: list[list[Outcome]] = []
        self._now_s = 0.0
        due_s = self._chance.uniform(0.0, 30 * _DAY, size)
        store.plan.save(np.arange(1, size + 1), due_s, [bytes(16)] * size)

    def lease(self) -> None:
        """Lease the next groups."""
        self._now_s += 1.0
        self._leases = [
            self._store.leases.take(next(self._groups), self._now_s, 60.0) for _ in range(_GROUPS)
        ]

    def decide(self) -> None:
        """Make outcomes for them, which is not measured."""
        self._outcomes = [
            [outcome_of(lease, self._now_s, self._chance) for lease in group] for group in self._leases
        ]

    def commit(self) -> None:
        """Commit group by group."""
        for group in self._outcomes:
            assert self._store.commit(group) == []


def outcome_of(lease: Lease, now_s: float, chance: np.random.Generator) -> Outcome:
    """Return the outcome of a poll; every tenth brings a new copy."""
    changed = lease.item_id % _CHANGED == 0
    content = chance.bytes(500) + b"the rest of a page " * 80
    return Outcome(
        lease,
        now_s,
        now_s + float(chance.uniform(0.0, 30 * _DAY)),
        Observation(lease.item_id, now_s, 1.0, changed),
        NewCopy(content, "text/html", content[:32]) if changed else None,
        validators={"etag": '"33a64df551425fcc55e4d42a148795d9f25f89d4"'},
        belief=chance.bytes(16),
        spent=Spent(1, len(content), 0.1),
    )


class _PlainTable:
    """The yardstick: a table that keeps only due times and beliefs."""

    def __init__(self, path: Path, size: int) -> None:
        self._chance = np.random.default_rng(1)
        self._groups = _groups(self._chance, size)
        self._connection = sqlite3.connect(path)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -65536"):
            self._connection.execute(f"PRAGMA {setting}")
        self._connection.execute("PRAGMA wal_autocheckpoint = 16384")
        self._connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, due_s REAL, belief BLOB)")
        self._connection.execute("CREATE INDEX due ON item (due_s)")
        self._write(list(range(1, size + 1)))

    def upsert(self) -> None:
        """Write the next groups, each in one transaction."""
        for _ in range(_GROUPS):
            self._write(next(self._groups))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _write(self, ids: list[int]) -> None:
        due_s = self._chance.uniform(0.0, 30 * _DAY, len(ids)).tolist()
        with self._connection:
            self._connection.executemany(
                "INSERT INTO item VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE"
                " SET due_s = excluded.due_s, belief = excluded.belief",
                [(item_id, due, self._chance.bytes(16)) for item_id, due in zip(ids, due_s, strict=True)],
            )


def numbered_items(size: int) -> Iterator[NewItem]:
    for number in range(size):
        host = f"host{number % 5000}.example.org"
        yield NewItem(f"https://{host}/path/to/page-{number}.html", "web", host)


def _groups(chance: np.random.Generator, size: int) -> Iterator[list[int]]:
    """Yield groups of different items without end."""
    while True:
        order = chance.permutation(size) + 1
        for start in range(0, size - _GROUP + 1, _GROUP):
            yield order[start : start + _GROUP].tolist()
