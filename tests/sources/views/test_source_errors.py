"""What goes wrong with views: readers, altered and failing views, full disks, servers and settings."""

from __future__ import annotations

import asyncio
import json

import psycopg
import pytest
from tests.servers.postgres import PostgresServer
from tests.sources.polling import lease_of, make_source
from tests.sources.viewing import OF_A, OF_B, OF_BOTH, Warehouse

from afresh.sources.context import SourceContext
from afresh.values.errors import UsageError

DISK_SPACE = """
    CREATE FUNCTION disk_space() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT is_full FROM public.disk) THEN
            RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
        END IF;
        RETURN 1;
    END $$
"""


def test_readers_are_not_blocked_where_there_is_a_unique_index(warehouse: Warehouse) -> None:
    """A reader in an open transaction would block a plain refresh, and does not block a concurrent one."""

    async def work() -> None:
        warehouse.source = warehouse.make(lock_timeout="0.2s")
        await warehouse.begin()
        warehouse.run("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 1)")
        with psycopg.connect(warehouse.server.url(warehouse.database)) as reader:
            reader.execute("SELECT * FROM of_a, of_b")
            assert (await warehouse.poll(OF_A)).kind == "content"
            blocked = await warehouse.poll(OF_B)
        assert blocked.kind == "failed"
        assert blocked.problem.startswith("waited for a lock longer than its time-out allows")
        assert (await warehouse.poll(OF_B)).kind == "content"

    warehouse.use(work)


def test_a_view_made_without_data_is_filled(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run(
            "CREATE MATERIALIZED VIEW later AS SELECT * FROM a WITH NO DATA",
            "CREATE UNIQUE INDEX ON later (id)",
        )
        assert (await warehouse.poll("public.later")).kind == "content"
        assert warehouse.rows("SELECT count(*) FROM later") == [(0,)]

    warehouse.use(work)


def test_a_view_dropped_or_altered_while_running(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("DROP MATERIALIZED VIEW of_both")
        found = await warehouse.poll(OF_BOTH)
        assert (found.kind, "no such materialised view" in found.problem) == ("gone", True)
        assert OF_BOTH not in [entry.key for entry in (await warehouse.look()).entries]
        warehouse.run(
            "DROP MATERIALIZED VIEW of_b", "CREATE MATERIALIZED VIEW of_b AS SELECT max(x) AS n FROM a"
        )
        await warehouse.look()
        assert OF_B not in warehouse.stale()  # made just now
        warehouse.run("INSERT INTO a VALUES (1, 1)")
        await warehouse.look()
        assert OF_B in warehouse.stale()
        found = await warehouse.poll(OF_B)
        assert json.loads(found.content or b"")["bases"] == ["public.a"]

    warehouse.use(work)


def test_a_refresh_that_fails_is_reported_and_harms_no_other(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run("CREATE MATERIALIZED VIEW broken AS SELECT 1 / x AS y FROM a")
        await warehouse.begin()
        warehouse.run("INSERT INTO a VALUES (1, 0)")
        found = await warehouse.poll("public.broken")
        assert (found.kind, found.problem) == ("failed", "division by zero")
        assert warehouse.source.ready_s("g", warehouse.clock.now_s()) == warehouse.clock.now_s()
        assert (await warehouse.poll(OF_A)).kind == "content"

    warehouse.use(work)


def test_a_full_disk_is_reported_and_waited_for(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run(
            "CREATE TABLE disk AS SELECT false AS is_full", DISK_SPACE, "INSERT INTO b VALUES (1, 1)"
        )
        warehouse.run("CREATE MATERIALIZED VIEW large AS SELECT id, disk_space() FROM b")
        await warehouse.begin()
        assert (await warehouse.poll("public.large")).kind == "content"
        warehouse.run("UPDATE disk SET is_full = true", "INSERT INTO b VALUES (2, 2)")
        found = await warehouse.poll("public.large")
        assert found.kind == "failed"
        assert found.problem == "the server's disk is full: could not extend file"
        now_s = warehouse.clock.now_s()
        assert warehouse.source.ready_s("g", now_s) > now_s  # other views would fare no better
        await warehouse.look()
        assert "public.large" in warehouse.stale()
        warehouse.run("UPDATE disk SET is_full = false")
        assert (await warehouse.poll("public.large")).kind == "content"
        assert warehouse.rows("SELECT count(*) FROM large") == [(2,)]

    warehouse.use(work)


def test_a_refresh_that_takes_too_long_is_ended(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.source = warehouse.make(timeout="0.3s")
        warehouse.run("CREATE MATERIALIZED VIEW slow AS SELECT pg_sleep(20)::text FROM b")
        warehouse.run("INSERT INTO b VALUES (1, 1)")
        found = await warehouse.poll("public.slow")
        assert found.problem.startswith("took longer than its time-out allows")
        assert 0.3 <= found.seconds < 5

    warehouse.use(work)


def test_names_that_no_view_has_are_reported(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.source = warehouse.make(views=["nosuch.*", "public.off_a"])
        listing = await warehouse.look()
        assert (listing.entries, listing.complete) == ((), False)
        words = "there is no materialised view like nosuch.*, public.off_a: names are schema.view"
        assert listing.problem == words
        assert (await warehouse.look()).problem == words

    warehouse.use(work)


def test_a_role_without_rights_is_refused(warehouse: Warehouse) -> None:
    async def work() -> None:
        url = warehouse.server.url(warehouse.database, user="locked", password="right")
        warehouse.source = warehouse.make(url=url)
        found = await warehouse.poll(OF_B)
        assert found.kind == "failed"  # rights are granted while it runs
        assert found.problem.startswith("the role has no rights to it: ")
        await warehouse.source.close()
        warehouse.source = warehouse.make(url=url.replace("right", "wrong-word"))
        found = await warehouse.poll(OF_B)
        assert (found.kind, found.problem[:21]) == ("failed", "the password is wrong")
        assert "wrong-word" not in found.problem
        listing = await warehouse.look()
        assert (listing.complete, listing.problem[:21]) == (False, "the password is wrong")
        assert warehouse.source.staleness_reports() == {}

    warehouse.use(work)


def test_a_lost_connection_is_opened_again(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("INSERT INTO b VALUES (1, 1)")
        warehouse.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'afresh' AND datname = current_database()"
        )
        await warehouse.look()
        assert warehouse.stale() == {OF_B, OF_BOTH}
        assert (await warehouse.poll(OF_B)).kind == "content"

    warehouse.use(work)


def test_a_server_that_counts_nothing_is_refused(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run(f"ALTER DATABASE {warehouse.database} SET track_counts = off")
        try:
            listing = await warehouse.look()
            assert (listing.complete, listing.problem.split(",")[0]) == (
                False,
                "the server does not count rows",
            )
            resting = [one async for one in warehouse.source.listings()]
            assert resting == []
            warehouse.clock.time_s += 2
            assert (await warehouse.look()).problem == listing.problem
        finally:
            warehouse.run(f"ALTER DATABASE {warehouse.database} RESET track_counts")
        warehouse.clock.time_s += 10
        await warehouse.look()  # by the connection as it was made
        await warehouse.source.close()
        warehouse.source = warehouse.make()
        assert (await warehouse.look()).complete

    warehouse.use(work)


def test_a_standby_is_refused(own_postgres: PostgresServer) -> None:
    own_postgres.stop()
    (own_postgres.folder / "data" / "standby.signal").touch()
    own_postgres.start()

    async def work() -> None:
        source = make_source({"name": "v", "kind": "view", "url": own_postgres.url()}, SourceContext())
        found = await source.poll(lease_of("public.v"))
        await source.close()
        assert (found.kind, found.problem.split(":")[0]) == (
            "failed",
            "the server is a standby, which cannot refresh views",
        )
        assert (found.retry_after_s or 0) > 0

    asyncio.run(work())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "sqlite:x.db"}, "refresh: needed: only PostgreSQL has views"),
        ({"url": "http://x"}, "url: no database"),
        ({"look_evry": "1s"}, "did you mean 'look_every'?"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_source({"name": "v", "kind": "view", "url": "postgresql:///x"} | changes, SourceContext())
    assert words in str(caught.value)


def test_an_address_of_the_wrong_kind_in_the_environment_is_refused() -> None:
    context = SourceContext(resolver={"HOUSE": "sqlite:x.db"}.get)
    with pytest.raises(UsageError, match="only PostgreSQL refreshes views itself: set refresh"):
        make_source({"name": "v", "kind": "view", "url": "env:HOUSE"}, context)


def test_without_the_client_library_a_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.sql.database_url.find_spec", lambda _name: None)
    table = {"name": "v", "kind": "view", "url": "postgresql:///x"}
    with pytest.raises(
        UsageError, match=r"source 'v': PostgreSQL needs more: pip install 'afresh\[postgres\]'"
    ):
        make_source(table, SourceContext())
