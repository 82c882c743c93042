"""Whether a transaction was committed is known for certain, also when the server has crashed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Cut, PostgresProxy
from tests.stores.backends import copy_of, new_items, schema_url, seen

from afresh.stores.postgres.connection import parse_address
from afresh.stores.postgres.last_commits import LastCommits, TransactionName
from afresh.stores.postgres.store import PostgresStore
from afresh.values.errors import StoreFullError, StoreLockedError
from afresh.values.outcome import Spent


@pytest.fixture
def crashing() -> Iterator[PostgresServer]:
    """A server that writes to its disk only what a commit waits for, so that a crash loses all else."""
    server = PostgresServer("fsync = off\nwal_writer_delay = 10s\nshared_buffers = 32MB\n")
    yield server
    server.close()


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_crash_during_a_commit_loses_and_doubles_nothing(
    crashing: PostgresServer, tmp_path: Path, cut: Cut
) -> None:
    proxy = PostgresProxy(crashing.folder)
    try:
        with (
            PostgresStore(schema_url(proxy.url, tmp_path)) as store,
            PostgresStore(schema_url(crashing.url(), tmp_path)) as other,
        ):
            store.items.add(new_items(1), 0.0)
            (lease,) = store.leases.take([1], 1.0, 60.0)
            outcome = seen(lease, 2.0, changed=True, new_copy=copy_of(b"a"), event="changed")
            proxy.cut, proxy.away_after_cut = cut, True
            with pytest.raises(StoreLockedError, match="not known yet whether the last commit was done"):
                store.commit([outcome])
            crashing.stop("immediate")
            crashing.start()
            # These transactions get the ids of those that the crash has lost.
            for _ in range(5):
                other.ledger.add("web", 0.0, Spent(requests=1))
            proxy.away = False
            assert store.commit([outcome]) == []
            (item,) = store.items.by_id([1])
            assert (item.polls, item.changes, item.version) == (1, 1, 1)
            assert store.events.waiting() == 1
            assert store.upkeep.check() == []
    finally:
        proxy.close()


Place = tuple[str, "psycopg.Connection[Any]", "psycopg.Connection[Any]"]


@pytest.fixture
def place(postgres_url: str, tmp_path: Path) -> Iterator[Place]:
    """The schema of a store, and two connections to it."""
    address = parse_address(schema_url(postgres_url, tmp_path))
    PostgresStore(schema_url(postgres_url, tmp_path)).close()
    with (
        psycopg.connect(address.url, autocommit=True) as one,
        psycopg.connect(address.url, autocommit=True) as two,
    ):
        for connection in (one, two):
            connection.execute(f"SET search_path TO {address.schema}".encode())
        yield address.schema, one, two


def test_a_transaction_that_cannot_begin_hinders_no_later_one(postgres_url: str, tmp_path: Path) -> None:
    url = schema_url(postgres_url, tmp_path)
    schema = parse_address(url).schema
    with PostgresStore(url) as store, psycopg.connect(postgres_url, autocommit=True) as admin:
        store.ledger.add("web", 0.0, Spent(requests=1))
        admin.execute(
            f"""SET search_path TO {schema};
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE UPDATE ON last_commit EXECUTE FUNCTION full_disk()""".encode()
        )
        for _ in range(2):
            with pytest.raises(StoreFullError):
                store.ledger.add("web", 0.0, Spent(requests=1))
        admin.execute(b"DROP TRIGGER full_disk ON last_commit")
        store.ledger.add("web", 0.0, Spent(requests=1))
        assert store.ledger.total(0.0, 60.0).requests == 2


@pytest.mark.parametrize("earlier", [0, 3], ids=["the first of its client", "a later one"])
def test_a_transaction_that_the_server_is_still_in_is_ended(place: Place, earlier: int) -> None:
    _, lost, new = place
    commits = LastCommits()
    for _ in range(earlier):
        commits.begin(lost, durable=True)
        lost.execute("COMMIT")
    transaction = commits.begin(lost, durable=True)
    assert transaction.number == earlier + 1
    assert commits.is_committed(new, transaction) is False
    with pytest.raises(psycopg.OperationalError):
        lost.execute("COMMIT")


def test_each_transaction_is_told_from_the_others(place: Place) -> None:
    _, first, second = place
    commits = LastCommits()
    done = commits.begin(first, durable=False)
    first.execute("COMMIT")
    undone = commits.begin(first, durable=True)
    first.execute("ROLLBACK")
    commits.begin(second, durable=True)
    second.execute("COMMIT")
    assert commits.is_committed(second, done)
    assert not commits.is_committed(second, undone)
    assert not commits.is_committed(second, TransactionName(done.client, 9, done.process))


def test_clients_of_long_ago_are_forgotten(place: Place) -> None:
    schema, one, two = place
    old = LastCommits()
    old.begin(one, durable=True)
    one.execute("COMMIT")
    two.execute(f"UPDATE {schema}.last_commit SET committed = now() - interval '8 days'".encode())
    new = LastCommits().begin(two, durable=True)
    two.execute("COMMIT")
    assert two.execute("SELECT client FROM last_commit").fetchall() == [(new.client,)]
    # One that comes back after so long goes on as before.
    again = old.begin(one, durable=True)
    one.execute("COMMIT")
    assert again.number == 2
    assert old.is_committed(two, again)
