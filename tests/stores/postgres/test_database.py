"""What may happen to a server: stopped, full, closed, gone in the middle of a commit. Nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_proxy import Cut, PostgresProxy
from tests.stores.backends import copy_of, ids_of, new_items, poll, schema_url, seen

from afresh.stores.postgres.connection import parse_address
from afresh.stores.postgres.errors import translate_error
from afresh.stores.postgres.store import PostgresStore
from afresh.stores.shared_time import SharedClock
from afresh.values.clock import SystemClock
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreMissingError,
    StoreReadOnlyError,
)
from afresh.values.items import ItemChange
from afresh.values.outcome import Refusal, Spent


@pytest.fixture
def server(own_postgres: PostgresServer) -> PostgresServer:
    """A server of our own, to be stopped and spoilt."""
    return own_postgres


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[PostgresProxy]:
    """A way to the server that can be cut."""
    made = PostgresProxy(server.folder)
    yield made
    made.close()


def run(server: PostgresServer, statement: str) -> None:
    """As the administrator."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_was_stopped_is_found_again(server: PostgresServer, tmp_path: Path, mode: str) -> None:
    with PostgresStore(schema_url(server.url(), tmp_path)) as store:
        store.items.add(new_items(2), 0.0)
        (lease,) = store.leases.take([1], 1.0, 60.0)
        server.stop("fast" if mode == "fast" else "immediate")
        try:
            for use in (lambda: store.commit([seen(lease, 2.0)]), lambda: store.items.get("k0")):
                with pytest.raises(StoreLockedError, match="does not answer"):
                    use()
            with pytest.raises(StoreLockedError, match="does not answer"):
                PostgresStore(schema_url(server.url(), tmp_path))
        finally:
            server.start()
        assert store.items.ids(["k1"]) == {"k1": 2}
        assert store.commit([seen(lease, 2.0)]) == []
        assert store.items.by_id([1])[0].polls == 1
        assert store.upkeep.check() == []


def test_a_connection_lost_between_calls_is_made_again_unnoticed(
    server: PostgresServer, proxy: PostgresProxy, tmp_path: Path
) -> None:
    with PostgresStore(schema_url(proxy.url, tmp_path)) as store:
        store.items.add(new_items(1), 0.0)
        proxy.hang_up()
        poll(store, "k0", 1.0, new_copy=copy_of(b"a"))
        run(
            server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'afresh'"
        )
        assert store.items.by_id([1])[0].polls == 1
        assert store.upkeep.check() == []


@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.parametrize("away", [False, True], ids=["back at once", "away for a while"])
def test_a_connection_lost_while_committing_neither_loses_nor_doubles(
    proxy: PostgresProxy, tmp_path: Path, cut: Cut, away: bool
) -> None:
    with PostgresStore(schema_url(proxy.url, tmp_path)) as store:
        store.items.add(new_items(3), 0.0)
        leases = store.leases.take([1, 2, 3], 1.0, 60.0)
        store.items.remove(ids_of(store, ["k2"]), 1.0)
        outcomes = [seen(lease, 2.0, changed=True, spent=Spent(1), event="changed") for lease in leases]
        proxy.cut, proxy.away_after_cut = cut, away
        if away:
            for _ in range(2):
                with pytest.raises(StoreLockedError, match="does not answer"):
                    store.commit(outcomes, {"engine": b"1"})
            proxy.away = False
            # The engine may come back with other groups.
            refused = store.commit(outcomes[1:], {"engine": b"1"}) + store.commit(outcomes[:1])
        else:
            refused = store.commit(outcomes, {"engine": b"1"})
        assert refused == [Refusal(3, "removed")]
        assert [(item.polls, item.changes) for item in store.items.by_id([1, 2])] == [(1, 1)] * 2
        assert store.ledger.total(0.0, 60.0).requests == 3
        assert store.events.waiting() == 2
        assert store.state.get("engine") == b"1"
        assert store.commit(outcomes[:1]) == [Refusal(1, "lost")]
        assert store.upkeep.check() == []


def test_other_writes_cut_off_while_committing_happen_once(proxy: PostgresProxy, tmp_path: Path) -> None:
    with PostgresStore(schema_url(proxy.url, tmp_path)) as store:
        cuts: tuple[Cut, ...] = ("before", "after")
        for number, cut in enumerate(cuts, 1):
            proxy.cut = cut
            store.ledger.add("web", 0.0, Spent(requests=1))
            assert store.ledger.total(0.0, 60.0).requests == number


def test_a_full_disk_stops_one_commit_and_no_more(server: PostgresServer, tmp_path: Path) -> None:
    url = schema_url(server.url(), tmp_path)
    schema = parse_address(url).schema
    with PostgresStore(url) as store:
        store.items.add(new_items(2), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(b"before"))
        (lease,) = store.leases.take([2], 2.0, 60.0)
        outcome = seen(lease, 3.0, new_copy=copy_of(b"after"), spent=Spent(1))
        run(
            server,
            f"""SET search_path TO {schema};
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE INSERT ON payload EXECUTE FUNCTION full_disk()""",
        )
        for _ in range(3):
            with pytest.raises(StoreFullError, match="no space left: free some on the server's disk"):
                store.commit([outcome])
        copy = store.copies.get(1)
        assert copy is not None
        assert copy.content == b"before"
        assert store.copies.get(2) is None
        assert store.ledger.total(0.0, 60.0).requests == 0
        run(server, f"DROP TRIGGER full_disk ON {schema}.payload")
        assert store.commit([outcome]) == []
        assert store.copies.get(2) is not None
        assert store.upkeep.check() == []


def test_who_may_not_enter_is_told_why(server: PostgresServer, tmp_path: Path) -> None:
    for url, words in (
        (server.url(user="locked", password="wrong-one"), "refused the user or the password"),
        (server.url(user="locked"), "refused the user or the password"),
        (server.url(user="nobody"), "refused the user or the password"),
        (server.url("nowhere"), "no such database"),
        (f"postgresql://postgres@/postgres?host={tmp_path}", "does not answer"),
    ):
        with pytest.raises(StoreError, match=words) as caught:
            PostgresStore(schema_url(url, tmp_path))
        assert isinstance(caught.value, StoreMissingError | StoreLockedError)
        assert "wrong-one" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_misspelt_option_of_the_address_is_named(server: PostgresServer) -> None:
    with pytest.raises(StoreError, match=r"an option in \[store\] url is misspelt \(.*shcema") as caught:
        PostgresStore(server.url() + "&shcema=a")
    assert "\n" not in str(caught.value)


def test_a_role_without_rights_is_told_so(server: PostgresServer, tmp_path: Path) -> None:
    mine, theirs = (
        schema_url(server.url(user=user, password="right"), tmp_path) for user in ("postgres", "locked")
    )
    with pytest.raises(StoreMissingError, match="lacks a right"):
        PostgresStore(theirs)
    schema = parse_address(mine).schema
    with PostgresStore(mine) as store:
        store.items.add(new_items(1), 0.0)
        run(
            server,
            f"GRANT USAGE ON SCHEMA {schema} TO locked;"
            f" GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO locked",
        )
        with PostgresStore(theirs) as reader:
            assert reader.items.ids(["k0"]) == {"k0": 1}
            with pytest.raises(StoreReadOnlyError, match=r"lacks a right \(permission denied for"):
                reader.items.add(new_items(2), 0.0)
        assert store.items.add(new_items(2), 0.0) == 1
    run(server, f"DROP SCHEMA {schema} CASCADE")


def test_another_writer_is_waited_for_and_then_named(server: PostgresServer, tmp_path: Path) -> None:
    url = schema_url(server.url(), tmp_path)
    with PostgresStore(url, timeout_s=0.05) as store, psycopg.connect(server.url()) as other:
        store.items.add(new_items(2), 0.0)
        leases = store.leases.take([1, 2], 0.0, 9.0)
        other.execute(
            f"SELECT * FROM {parse_address(url).schema}.state WHERE item_id = 1 FOR UPDATE".encode()
        )
        with pytest.raises(StoreLockedError, match="held by another process"):
            store.commit([seen(lease, 1.0) for lease in leases])
        assert store.items.by_id([1])[0].polls == 0  # reading goes on
        # What another holds is not lent, and nobody waits for it.
        assert [lease.item_id for lease in store.leases.take([1, 2], 20.0, 9.0)] == [2]
        other.rollback()
        assert store.commit([seen(lease, 1.0) for lease in leases]) == [Refusal(2, "lost")]


def test_who_is_stopped_for_a_circle_of_waiting_tries_again(server: PostgresServer, tmp_path: Path) -> None:
    url = schema_url(server.url(), tmp_path)
    schema = parse_address(url).schema
    lock = f"SELECT item_id FROM {schema}.state WHERE item_id = %s FOR UPDATE".encode()
    with PostgresStore(url, timeout_s=60.0) as store, psycopg.connect(server.url()) as other:
        store.items.add(new_items(2), 0.0)
        other.execute("SET deadlock_timeout = '1h'")
        other.execute("SET lock_timeout = '5s'")
        other.commit()
        with ThreadPoolExecutor(1) as pool:
            # PostgreSQL looks for a circle only once, a second after the store began to wait. If the machine
            # is so slow that the circle is not closed by then, nobody gives way: then try again.
            while not wait_in_a_circle(server, store, other, lock, pool):
                pass
        assert [item.weight for item in store.items.by_id([1, 2])] == [2.0, 2.0]


def wait_in_a_circle(
    server: PostgresServer,
    store: PostgresStore,
    other: psycopg.Connection[Any],
    lock: bytes,
    pool: ThreadPoolExecutor,
) -> bool:
    """Whether the store gave way when it held item 1 and waited for 2, which ``other`` held."""
    other.execute(lock, (2,))
    changed = pool.submit(store.items.change, [1, 2], ItemChange(weight=2.0))
    while not is_waiting(server):
        assert not changed.done()
    try:
        other.execute(lock, (1,))
    except psycopg.errors.LockNotAvailable:
        gave_way = False
    else:
        gave_way = True
    other.rollback()
    changed.result(60)  # raises if it failed
    return gave_way


def is_waiting(server: PostgresServer) -> bool:
    """Whether one of our connections waits for a lock."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'afresh' AND wait_event_type = 'Lock'"
        )
        return found.fetchone() is not None


def test_a_content_changed_behind_our_back_is_not_handed_out(server: PostgresServer, tmp_path: Path) -> None:
    url = schema_url(server.url(), tmp_path)
    schema = parse_address(url).schema
    with PostgresStore(url) as store:
        store.items.add(new_items(3), 0.0)
        for number in range(3):
            poll(store, f"k{number}", 1.0, new_copy=copy_of(bytes([number]) * 100))
        other = f"(SELECT data FROM {schema}.payload WHERE content_id = 2)"
        run(server, f"UPDATE {schema}.payload SET data = {other} WHERE content_id = 1")
        run(server, f"UPDATE {schema}.payload SET data = '\\x00' WHERE content_id = 3")
        with pytest.raises(StoreCorruptError, match="is not what was stored"):
            store.copies.get(1)
        with pytest.raises(StoreCorruptError, match="cannot be unpacked"):
            store.copies.get(3)
        assert sum("content" in problem for problem in store.upkeep.check()) == 2
        assert sum("content" in problem for problem in store.upkeep.check(sample=2)) <= 2


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE tally SET items = items + 1", "items counted"),
        ("UPDATE content SET refs = 7 WHERE id = 1", "content 1 is counted as used 7 times, it is 1"),
        ("UPDATE state SET version = 9 WHERE item_id = 1", "the newest copy of item 1 is not there"),
        ("DELETE FROM payload WHERE content_id = 1", "content 1 has no bytes"),
        ("DELETE FROM state WHERE item_id = 2", "item 2 has no state"),
        ("DELETE FROM item WHERE id = 2", "a state of item 2, which is not there"),
        ("UPDATE size SET versions = versions + 1", "sizes kept are"),
    ],
)
def test_contradictions_are_found(postgres_url: str, tmp_path: Path, damage: str, words: str) -> None:
    url = schema_url(postgres_url, tmp_path)
    with PostgresStore(url) as store:
        store.items.add(new_items(2), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(b"a"))
        assert store.upkeep.check() == []
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"SET search_path TO {parse_address(url).schema}; {damage}".encode())
        assert any(words in problem for problem in store.upkeep.check())


def test_tables_dropped_behind_our_back_are_named(server: PostgresServer, tmp_path: Path) -> None:
    url = schema_url(server.url(), tmp_path)
    with PostgresStore(url) as store:
        store.items.add(new_items(1), 0.0)
        run(server, f"DROP SCHEMA {parse_address(url).schema} CASCADE")
        with pytest.raises(StoreCorruptError, match="somebody altered its schema"):
            store.items.get("k0")


def test_every_error_of_postgresql_becomes_one_of_ours() -> None:
    for kind, expected in {
        errors.DiskFull: StoreFullError,
        errors.TooManyConnections: StoreLockedError,
        errors.DeadlockDetected: StoreLockedError,
        errors.LockNotAvailable: StoreLockedError,
        errors.CannotConnectNow: StoreLockedError,
        errors.AdminShutdown: StoreLockedError,
        errors.ConnectionFailure: StoreLockedError,
        errors.InsufficientPrivilege: StoreReadOnlyError,
        errors.ReadOnlySqlTransaction: StoreReadOnlyError,
        errors.InvalidPassword: StoreMissingError,
        errors.DataCorrupted: StoreCorruptError,
        errors.UndefinedTable: StoreCorruptError,
        errors.DivisionByZero: StoreError,
        psycopg.OperationalError: StoreLockedError,
        psycopg.ProgrammingError: StoreError,
    }.items():
        told = translate_error(kind("what PostgreSQL says"), "the store")
        assert type(told) is expected
        assert str(told).startswith("the store ")
        assert "what PostgreSQL says" in str(told)


def test_leases_and_claims_follow_the_databases_clock(postgres_url: str, tmp_path: Path) -> None:
    class WrongClock(SystemClock):
        """A machine whose clock is an hour slow."""

        def now_s(self) -> float:
            return super().now_s() - 3600.0

    with PostgresStore(schema_url(postgres_url, tmp_path)) as store:
        slow, right = SharedClock(WrongClock(), store.fleet), SharedClock(SystemClock(), store.fleet)
        assert right.ahead_s == 0.0
        assert slow.ahead_s == pytest.approx(3600.0, abs=5.0)
        assert store.fleet.take(["group:a"], "right", right.now_s(), 600.0) == ("group:a",)
        # By its own clock the slow machine would wait an hour longer; by the shared one it agrees.
        assert store.fleet.take(["group:a"], "slow", slow.now_s(), 600.0) == ()
        (claim,) = store.fleet.claims(slow.now_s())
        assert claim.until_s - slow.now_s() == pytest.approx(600.0, abs=60.0)
