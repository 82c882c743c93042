"""The view source over a real PostgreSQL: what is stale, what is refreshed when, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import psycopg
import pytest
from tests.servers.postgres import PostgresServer, running_postgres
from tests.sources.polling import SetClock, held, lease_of, make_source

from afresh.sources.evidence import WitnessSource
from afresh.sources.surroundings import Surroundings
from afresh.sources.view_source import ViewSource
from afresh.values.clock import SystemClock
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing

Found = TypeVar("Found")
REAL = SystemClock()

TABLES = """
    CREATE TABLE a (id int PRIMARY KEY, x int);
    CREATE TABLE b (id int PRIMARY KEY, x int);
    CREATE VIEW plain AS SELECT * FROM a WHERE x > 0;
    CREATE MATERIALIZED VIEW of_a AS SELECT * FROM plain;
    CREATE UNIQUE INDEX ON of_a (id);
    CREATE MATERIALIZED VIEW of_b AS SELECT count(*) AS n FROM b;
    CREATE MATERIALIZED VIEW of_both AS SELECT of_a.id FROM of_a JOIN b USING (id);
"""
OF_A, OF_B, OF_BOTH = "public.of_a", "public.of_b", "public.of_both"


DISK_SPACE = """
    CREATE FUNCTION disk_space() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT is_full FROM public.disk) THEN
            RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100';
        END IF;
        RETURN 1;
    END $$
"""


class DayClock(SetClock):
    """The time of day goes when told to, durations are real."""

    def elapsed_s(self) -> float:
        return REAL.elapsed_s()


class Warehouse:
    """A database whose writer reports its counters at once, a source over it, and a clock for both."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        self.server, self.database, self.clock = server, database, DayClock()
        self._writer = psycopg.connect(server.url(database), autocommit=True)
        self.run(TABLES)
        self.source = self.make()
        self.leases: dict[str, Lease] = {}

    def make(self, **changes: Any) -> ViewSource:
        table = {"name": "house", "kind": "view", "url": self.server.url(self.database)} | changes
        source = make_source(table, Surroundings(clock=self.clock))
        assert isinstance(source, ViewSource)
        assert isinstance(source, WitnessSource)
        return source

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._writer.execute(statement.encode())
            self._writer.execute("SELECT pg_stat_force_next_flush()")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._writer.execute(statement.encode()).fetchall()

    async def look(self, seconds: float = 5.0) -> Listing:
        self.clock.time_s += seconds
        (listing,) = [listing async for listing in self.source.listings()]
        return listing

    async def poll(self, view: str, **options: Any) -> Fetched:
        lease = self.leases.get(view, lease_of(view))
        found = await self.source.poll(lease, **options)
        self.leases[view] = held(lease, found)
        return found

    async def begin(self) -> None:
        """Every view refreshed once, and looked at."""
        for view in (OF_A, OF_B, OF_BOTH):
            assert (await self.poll(view)).kind == "content"
        await self.look()

    def stale(self) -> set[str]:
        return {view for view, told in self.source.evidence().items() if not told.fresh}

    def use(self, work: Callable[[], Awaitable[Found]]) -> Found:
        async def run() -> Found:
            try:
                return await work()
            finally:
                await self.source.close()

        return asyncio.run(run())

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
def house(postgres: PostgresServer, database: str) -> Iterator[Warehouse]:
    """Three views over two tables, one of them over another."""
    found = Warehouse(postgres, database)
    yield found
    found.close()


def test_views_are_listed_parts_first_with_one_warning(house: Warehouse) -> None:
    async def work() -> None:
        listing = await house.look()
        assert [entry.key for entry in listing.entries] == [OF_A, OF_B, OF_BOTH]
        assert listing.complete
        assert listing.problem.startswith(
            f"no unique index on {OF_B}, {OF_BOTH}: a refresh locks out readers"
        )
        assert (await house.look()).problem == ""

    house.use(work)


def test_a_view_is_stale_when_anything_below_it_moved(house: Warehouse) -> None:
    async def work() -> None:
        await house.look()
        assert {view: told.known for view, told in house.source.evidence().items()} == dict.fromkeys(
            (OF_A, OF_B, OF_BOTH), False
        )
        await house.begin()
        assert house.stale() == set()
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.look()
        assert house.stale() == {OF_A, OF_BOTH}
        since = house.source.evidence()[OF_A].stale_since_s
        await house.look()
        assert house.source.evidence()[OF_A].stale_since_s == since == house.clock.time_s - 5
        assert (await house.poll(OF_A)).kind == "content"
        assert house.stale() == {OF_BOTH}
        assert (await house.poll(OF_BOTH)).kind == "content"
        await house.look()
        assert house.stale() == set()

    house.use(work)


def test_a_poll_of_what_has_not_moved_refreshes_nothing(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("REVOKE ALL ON of_b FROM PUBLIC")
        before = house.rows("SELECT relfilenode FROM pg_class WHERE relname = 'of_b'")
        assert (await house.poll(OF_B)).kind == "unchanged"
        assert house.rows("SELECT relfilenode FROM pg_class WHERE relname = 'of_b'") == before
        assert (await house.poll(OF_B, conditional=False)).kind == "unchanged"
        assert house.rows("SELECT relfilenode FROM pg_class WHERE relname = 'of_b'") != before

    house.use(work)


def test_a_view_over_a_stale_one_is_refreshed_after_it(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 1)")
        found = await house.poll(OF_BOTH)
        assert house.rows("SELECT id FROM of_both") == [(1,)]
        assert house.rows("SELECT id FROM of_a") == [(1,)]
        await house.look()
        assert house.stale() == {OF_B}
        assert found.content is not None
        note = json.loads(found.content)
        assert (note["view"], note["bases"]) == (OF_BOTH, ["public.a", "public.b"])
        # what changed in the meantime is a change, though another poll refreshed it
        assert (await house.poll(OF_A)).kind == "content"

    house.use(work)


def test_a_view_that_somebody_refreshed_before_the_one_below_it_stays_stale(house: Warehouse) -> None:
    """Its content is a copy of what was stale already."""

    async def work() -> None:
        await house.begin()
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.look()
        house.run("REFRESH MATERIALIZED VIEW of_both")
        await house.look()
        assert house.stale() == {OF_A, OF_BOTH}
        assert (await house.poll(OF_BOTH)).kind == "content"
        await house.look()
        assert house.stale() == set()

    house.use(work)


def test_a_look_that_began_before_a_refresh_tells_nothing_about_it(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("INSERT INTO b VALUES (1, 1)")
        before = await house.source._catalogue(house.source._looks)
        house.clock.time_s += 1
        assert (await house.poll(OF_B)).kind == "content"
        house.source._memory.looked(before)
        assert OF_B not in house.stale()
        await house.look()
        assert house.stale() == {OF_BOTH}

    house.use(work)


def test_truncation_and_another_definition_are_changes(house: Warehouse) -> None:
    async def work() -> None:
        house.run("INSERT INTO b VALUES (1, 1)")
        await house.begin()
        house.run("TRUNCATE b")
        await house.look()
        assert house.stale() == {OF_B, OF_BOTH}
        await house.poll(OF_BOTH)
        await house.poll(OF_B)
        house.run("CREATE OR REPLACE VIEW plain AS SELECT * FROM a WHERE x > 1")
        await house.look()
        assert house.stale() == {OF_A, OF_BOTH}

    house.use(work)


def test_partitions_count_for_their_table(house: Warehouse) -> None:
    async def work() -> None:
        house.run(
            "CREATE TABLE big (id int, day date) PARTITION BY RANGE (day)",
            "CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
            "CREATE MATERIALIZED VIEW of_big AS SELECT count(*) FROM big",
        )
        assert (await house.poll("public.of_big")).kind == "content"
        await house.look()
        assert house.source.evidence()["public.of_big"].fresh
        house.run("INSERT INTO big VALUES (1, '2024-01-05')")
        await house.look()
        assert not house.source.evidence()["public.of_big"].fresh
        await house.poll("public.of_big")
        house.run("CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')")
        await house.look()
        assert not house.source.evidence()["public.of_big"].fresh

    house.use(work)


def test_counters_set_back_are_no_evidence_but_may_hide_a_change(house: Warehouse) -> None:
    async def work() -> None:
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.begin()
        await house.look()
        looks = house.source._memory.tallies["public.a"].looks
        house.run("SELECT pg_stat_reset()", "INSERT INTO a VALUES (2, 2), (3, 3)")
        await house.look()
        assert house.source._memory.tallies["public.a"].looks == looks
        assert house.source.evidence()[OF_A].elapsed_s == 0
        assert {OF_A, OF_BOTH} <= house.stale()
        again = await house.poll(OF_A)
        assert (again.kind, again.comparable) == ("content", False)
        await house.look()
        assert OF_A not in house.stale()

    house.use(work)


def test_the_dispersion_of_what_was_written_is_told(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        await house.look()
        assert house.source.evidence()[OF_B].dispersion is None
        for turn in range(6):
            if turn % 2:
                house.run(
                    f"INSERT INTO b SELECT g, 0 FROM generate_series({100 * turn}, {100 * turn + 99}) g"
                )
            await house.look()
        dispersion = house.source.evidence()[OF_B].dispersion
        assert dispersion is not None
        assert 30 < dispersion < 100  # rows come by hundreds, every other time

    house.use(work)


def test_a_crash_of_the_server_is_not_taken_for_a_change() -> None:
    async def work() -> None:
        house.run("INSERT INTO a VALUES (1, 1), (2, 2)")
        await house.begin()
        await house.look()
        looks = house.source._memory.tallies["public.a"].looks
        server.stop("immediate")
        server.start()
        await house.look()
        assert house.source._memory.tallies["public.a"].looks == looks
        assert not any(told.changed for told in house.source.evidence().values())
        again = await house.poll(OF_A)
        assert (again.kind, again.comparable) == ("content", False)

    with running_postgres() as server:
        house = Warehouse(server, "postgres")
        house.use(work)
        house.close()


def test_a_view_refreshed_by_somebody_else_is_fresh(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("INSERT INTO b VALUES (1, 1)")
        await house.look()
        assert OF_B in house.stale()
        house.run("REFRESH MATERIALIZED VIEW of_b")
        await house.look()
        assert OF_B not in house.stale()

    house.use(work)


def test_somebody_elses_view_counts_like_a_table(house: Warehouse) -> None:
    async def work() -> None:
        house.source = house.make(views="public.of_b*")
        listing = await house.look()
        assert [entry.key for entry in listing.entries] == [OF_B, OF_BOTH]
        await house.poll(OF_BOTH)
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.look()
        assert house.source.evidence()[OF_BOTH].fresh  # its source has not moved
        house.run("REFRESH MATERIALIZED VIEW of_a")
        await house.look()
        assert not house.source.evidence()[OF_BOTH].fresh

    house.use(work)


def test_each_look_is_one_observation_and_marks_give_notices(house: Warehouse) -> None:
    async def work() -> None:
        first = await house.look()
        house.run("INSERT INTO b SELECT n, 0 FROM generate_series(1, 500) AS n")
        second = await house.look()
        moved = {
            one.key
            for one, other in zip(first.entries, second.entries, strict=True)
            if one.mark != other.mark
        }
        assert moved == {OF_B, OF_BOTH}
        told = house.source.evidence()
        assert {view: (one.elapsed_s, one.changed) for view, one in told.items()} == {
            OF_A: (5, False),
            OF_B: (5, True),
            OF_BOTH: (5, True),
        }
        tally = house.source._memory.tallies["public.b"]
        assert (tally.looks, tally.changed, tally.rows) == (1, 1, 500)

    house.use(work)


def test_looks_close_to_each_other_make_one_observation(house: Warehouse) -> None:
    async def work() -> None:
        await house.look()
        for turn in range(20):
            house.run(f"INSERT INTO a VALUES ({turn}, 1)")
            await house.look(1.0)
            assert house.source.evidence()[OF_A].changed
        tally = house.source._memory.tallies["public.a"]
        assert (tally.looks, tally.changed, tally.rows) == pytest.approx((4, 4, 20), rel=1e-3)
        assert tally.seconds == pytest.approx(20, rel=1e-3)

    house.use(work)


def test_rates_and_costs_are_told(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        for turn in range(40):
            if turn % 2:
                house.run(f"INSERT INTO a SELECT {turn}, {turn}")
            if turn % 8 == 0:
                house.run(f"INSERT INTO b SELECT {turn * 100} + n, 0 FROM generate_series(1, 50) AS n")
            await house.look(5.0)
        told = house.source.evidence()
        # half of the looks, five seconds apart, saw a change of a: a rate of ln 2 / 5 s
        assert told[OF_A].rate_per_s == pytest.approx(0.139, rel=0.05)
        assert told[OF_B].rate_per_s == pytest.approx(-1 / 5 * math.log(35.5 / 40.5), rel=0.05)
        both = told[OF_BOTH]
        assert both.rate_per_s == pytest.approx((told[OF_A].rate_per_s or 0) + (told[OF_B].rate_per_s or 0))
        assert both.low_per_s is not None
        assert both.high_per_s is not None
        assert both.low_per_s < (both.rate_per_s or 0) < both.high_per_s
        assert house.source._memory.tallies["public.b"].dispersion == pytest.approx(50 * 35 / 40, rel=0.05)
        assert 0 < (both.cost_s or 0) < 10

    house.use(work)


def test_memory_outlives_the_process(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("INSERT INTO b VALUES (7, 7)")
        await house.look()
        kept, told = house.source.memory(), house.source.evidence()
        await house.source.close()
        house.source = house.make()
        house.source.recall(kept)
        house.run("INSERT INTO a VALUES (7, 7)")
        await house.look()
        again = house.source.evidence()
        assert house.stale() == {OF_A, OF_B, OF_BOTH}
        assert again[OF_B].stale_since_s == told[OF_B].stale_since_s
        assert again[OF_A].stale_since_s == house.clock.time_s
        assert again[OF_A].cost_s == told[OF_A].cost_s
        assert (again[OF_A].elapsed_s, again[OF_A].changed) == (5, True)

    house.use(work)


@pytest.mark.parametrize("rubbish", [b"", b"{}", b"[1]", b'{"format": 1, "time_s": 5}', b"\xff"])
def test_memory_that_cannot_be_read_is_none(house: Warehouse, rubbish: bytes) -> None:
    async def work() -> None:
        house.source.recall(rubbish)
        await house.begin()
        assert house.stale() == set()

    house.use(work)


def test_readers_read_on_where_a_unique_index_allows_it(house: Warehouse) -> None:
    """A reader in an open transaction would block a plain refresh, and does not block a concurrent one."""

    async def work() -> None:
        house.source = house.make(lock_timeout="0.2s")
        await house.begin()
        house.run("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 1)")
        with psycopg.connect(house.server.url(house.database)) as reader:
            reader.execute("SELECT * FROM of_a, of_b")
            assert (await house.poll(OF_A)).kind == "content"
            blocked = await house.poll(OF_B)
        assert blocked.kind == "failed"
        assert blocked.problem.startswith("waited for a lock longer than its time-out allows")
        assert (await house.poll(OF_B)).kind == "content"

    house.use(work)


def test_a_view_made_without_data_is_filled(house: Warehouse) -> None:
    async def work() -> None:
        house.run(
            "CREATE MATERIALIZED VIEW later AS SELECT * FROM a WITH NO DATA",
            "CREATE UNIQUE INDEX ON later (id)",
        )
        assert (await house.poll("public.later")).kind == "content"
        assert house.rows("SELECT count(*) FROM later") == [(0,)]

    house.use(work)


def test_a_view_dropped_or_altered_while_running(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("DROP MATERIALIZED VIEW of_both")
        found = await house.poll(OF_BOTH)
        assert (found.kind, "no such materialised view" in found.problem) == ("gone", True)
        assert OF_BOTH not in [entry.key for entry in (await house.look()).entries]
        house.run("DROP MATERIALIZED VIEW of_b", "CREATE MATERIALIZED VIEW of_b AS SELECT max(x) AS n FROM a")
        await house.look()
        assert OF_B not in house.stale()  # made just now
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.look()
        assert OF_B in house.stale()
        found = await house.poll(OF_B)
        assert json.loads(found.content or b"")["bases"] == ["public.a"]

    house.use(work)


def test_a_refresh_that_fails_says_why_and_harms_no_other(house: Warehouse) -> None:
    async def work() -> None:
        house.run("CREATE MATERIALIZED VIEW broken AS SELECT 1 / x AS y FROM a")
        await house.begin()
        house.run("INSERT INTO a VALUES (1, 0)")
        found = await house.poll("public.broken")
        assert (found.kind, found.problem) == ("failed", "division by zero")
        assert house.source.ready_s("g", house.clock.now_s()) == house.clock.now_s()
        assert (await house.poll(OF_A)).kind == "content"

    house.use(work)


def test_a_full_disk_is_said_and_waited_for(house: Warehouse) -> None:
    async def work() -> None:
        house.run("CREATE TABLE disk AS SELECT false AS is_full", DISK_SPACE, "INSERT INTO b VALUES (1, 1)")
        house.run("CREATE MATERIALIZED VIEW large AS SELECT id, disk_space() FROM b")
        await house.begin()
        assert (await house.poll("public.large")).kind == "content"
        house.run("UPDATE disk SET is_full = true", "INSERT INTO b VALUES (2, 2)")
        found = await house.poll("public.large")
        assert found.kind == "failed"
        assert found.problem == "the server's disk is full: could not extend file"
        now_s = house.clock.now_s()
        assert house.source.ready_s("g", now_s) > now_s  # other views would fare no better
        await house.look()
        assert "public.large" in house.stale()
        house.run("UPDATE disk SET is_full = false")
        assert (await house.poll("public.large")).kind == "content"
        assert house.rows("SELECT count(*) FROM large") == [(2,)]

    house.use(work)


def test_a_refresh_that_takes_too_long_is_ended(house: Warehouse) -> None:
    async def work() -> None:
        house.source = house.make(timeout="0.3s")
        house.run("CREATE MATERIALIZED VIEW slow AS SELECT pg_sleep(20)::text FROM b")
        house.run("INSERT INTO b VALUES (1, 1)")
        found = await house.poll("public.slow")
        assert found.problem.startswith("took longer than its time-out allows")
        assert 0.3 <= found.seconds < 5

    house.use(work)


def test_names_that_no_view_has_are_said(house: Warehouse) -> None:
    async def work() -> None:
        house.source = house.make(views=["nosuch.*", "public.off_a"])
        listing = await house.look()
        assert (listing.entries, listing.complete) == ((), False)
        words = "there is no materialised view like nosuch.*, public.off_a: names are schema.view"
        assert listing.problem == words
        assert (await house.look()).problem == words

    house.use(work)


def test_a_role_without_rights_is_refused(house: Warehouse) -> None:
    async def work() -> None:
        url = house.server.url(house.database, user="locked", password="right")
        house.source = house.make(url=url)
        found = await house.poll(OF_B)
        assert found.kind == "failed"  # rights are granted while it runs
        assert found.problem.startswith("the role has no rights to it: ")
        await house.source.close()
        house.source = house.make(url=url.replace("right", "wrong-word"))
        found = await house.poll(OF_B)
        assert (found.kind, found.problem[:21]) == ("failed", "the password is wrong")
        assert "wrong-word" not in found.problem
        listing = await house.look()
        assert (listing.complete, listing.problem[:21]) == (False, "the password is wrong")
        assert house.source.evidence() == {}

    house.use(work)


def test_a_lost_connection_is_made_anew(house: Warehouse) -> None:
    async def work() -> None:
        await house.begin()
        house.run("INSERT INTO b VALUES (1, 1)")
        house.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'afresh' AND datname = current_database()"
        )
        await house.look()
        assert house.stale() == {OF_B, OF_BOTH}
        assert (await house.poll(OF_B)).kind == "content"

    house.use(work)


def test_a_server_that_counts_nothing_is_refused(house: Warehouse) -> None:
    async def work() -> None:
        house.run(f"ALTER DATABASE {house.database} SET track_counts = off")
        try:
            listing = await house.look()
            assert (listing.complete, listing.problem.split(",")[0]) == (False, "the server counts no rows")
            resting = [one async for one in house.source.listings()]
            assert resting == []
            house.clock.time_s += 2
            assert (await house.look()).problem == listing.problem
        finally:
            house.run(f"ALTER DATABASE {house.database} RESET track_counts")
        house.clock.time_s += 10
        await house.look()  # by the connection as it was made
        await house.source.close()
        house.source = house.make()
        assert (await house.look()).complete

    house.use(work)


def test_a_standby_is_refused() -> None:
    with running_postgres() as server:
        server.stop()
        signal = server.folder / "data" / "standby.signal"
        signal.touch()
        server.start()

        async def work() -> None:
            source = make_source({"name": "v", "kind": "view", "url": server.url()}, Surroundings())
            found = await source.poll(lease_of("public.v"))
            await source.close()
            assert (found.kind, found.problem.split(":")[0]) == (
                "failed",
                "the server is a standby, which lags behind and refreshes nothing",
            )
            assert (found.retry_after_s or 0) > 0

        asyncio.run(work())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "sqlite:x.db"}, "SQLite has no materialised views"),
        ({"url": "http://x"}, "url: no database"),
        ({"look_evry": "1s"}, "did you mean 'look_every'?"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_source({"name": "v", "kind": "view", "url": "postgresql:///x"} | changes, Surroundings())
    assert words in str(caught.value)


def test_an_address_of_the_wrong_kind_in_the_environment_is_refused() -> None:
    around = Surroundings(resolver={"HOUSE": "sqlite:x.db"}.get)
    with pytest.raises(UsageError, match="url: SQLite has no materialised views"):
        make_source({"name": "v", "kind": "view", "url": "env:HOUSE"}, around)


def test_without_the_client_library_a_source_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.sql_addresses.find_spec", lambda _name: None)
    table = {"name": "v", "kind": "view", "url": "postgresql:///x"}
    with pytest.raises(
        UsageError, match=r"source 'v': PostgreSQL needs more: pip install 'afresh\[postgres\]'"
    ):
        make_source(table, Surroundings())
