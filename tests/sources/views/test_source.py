"""The view source over a real PostgreSQL: which views are stale, and which are refreshed when."""

from __future__ import annotations

import json

from tests.servers.postgres import PostgresServer
from tests.sources.viewing import OF_A, OF_B, OF_BOTH, Warehouse


def test_views_are_listed_parts_first_with_one_warning(warehouse: Warehouse) -> None:
    async def work() -> None:
        listing = await warehouse.look()
        assert [entry.key for entry in listing.entries] == [OF_A, OF_B, OF_BOTH]
        assert listing.complete
        assert listing.problem.startswith(
            f"no unique index on {OF_B}, {OF_BOTH}: a refresh locks out readers"
        )
        assert (await warehouse.look()).problem == ""

    warehouse.use(work)


def test_a_view_is_stale_when_anything_below_it_changed(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.look()
        assert {
            view: told.known for view, told in warehouse.source.staleness_reports().items()
        } == dict.fromkeys((OF_A, OF_B, OF_BOTH), False)
        await warehouse.begin()
        assert warehouse.stale() == set()
        warehouse.run("INSERT INTO a VALUES (1, 1)")
        await warehouse.look()
        assert warehouse.stale() == {OF_A, OF_BOTH}
        since = warehouse.source.staleness_reports()[OF_A].stale_since_s
        await warehouse.look()
        assert warehouse.source.staleness_reports()[OF_A].stale_since_s == since == warehouse.clock.time_s - 5
        assert (await warehouse.poll(OF_A)).kind == "content"
        assert warehouse.stale() == {OF_BOTH}
        assert (await warehouse.poll(OF_BOTH)).kind == "content"
        await warehouse.look()
        assert warehouse.stale() == set()

    warehouse.use(work)


def test_a_poll_of_a_view_without_changes_refreshes_nothing(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("REVOKE ALL ON of_b FROM PUBLIC")
        before = warehouse.rows("SELECT relfilenode FROM pg_class WHERE relname = 'of_b'")
        assert (await warehouse.poll(OF_B)).kind == "unchanged"
        assert warehouse.rows("SELECT relfilenode FROM pg_class WHERE relname = 'of_b'") == before
        assert (await warehouse.poll(OF_B, conditional=False)).kind == "unchanged"
        assert warehouse.rows("SELECT relfilenode FROM pg_class WHERE relname = 'of_b'") != before

    warehouse.use(work)


def test_a_view_over_a_stale_one_is_refreshed_after_it(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("INSERT INTO a VALUES (1, 1)", "INSERT INTO b VALUES (1, 1)")
        found = await warehouse.poll(OF_BOTH)
        assert warehouse.rows("SELECT id FROM of_both") == [(1,)]
        assert warehouse.rows("SELECT id FROM of_a") == [(1,)]
        await warehouse.look()
        assert warehouse.stale() == {OF_B}
        assert found.content is not None
        note = json.loads(found.content)
        assert (note["view"], note["bases"]) == (OF_BOTH, ["public.a", "public.b"])
        # what changed in the meantime is a change, though another poll refreshed it
        assert (await warehouse.poll(OF_A)).kind == "content"

    warehouse.use(work)


def test_a_view_that_somebody_refreshed_before_the_one_below_it_stays_stale(warehouse: Warehouse) -> None:
    """Its content is a copy of what was stale already."""

    async def work() -> None:
        await warehouse.begin()
        warehouse.run("INSERT INTO a VALUES (1, 1)")
        await warehouse.look()
        warehouse.run("REFRESH MATERIALIZED VIEW of_both")
        await warehouse.look()
        assert warehouse.stale() == {OF_A, OF_BOTH}
        assert (await warehouse.poll(OF_BOTH)).kind == "content"
        await warehouse.look()
        assert warehouse.stale() == set()

    warehouse.use(work)


def test_a_reading_that_began_before_a_refresh_says_nothing_about_it(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("INSERT INTO b VALUES (1, 1)")
        before = await warehouse.source.read_catalogue()
        warehouse.clock.time_s += 1
        assert (await warehouse.poll(OF_B)).kind == "content"
        warehouse.source.tracker.record_reading(before)
        assert OF_B not in warehouse.stale()
        await warehouse.look()
        assert warehouse.stale() == {OF_BOTH}

    warehouse.use(work)


def test_truncation_and_another_definition_are_changes(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run("INSERT INTO b VALUES (1, 1)")
        await warehouse.begin()
        warehouse.run("TRUNCATE b")
        await warehouse.look()
        assert warehouse.stale() == {OF_B, OF_BOTH}
        await warehouse.poll(OF_BOTH)
        await warehouse.poll(OF_B)
        warehouse.run("CREATE OR REPLACE VIEW plain AS SELECT * FROM a WHERE x > 1")
        await warehouse.look()
        assert warehouse.stale() == {OF_A, OF_BOTH}

    warehouse.use(work)


def test_partitions_count_for_their_table(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run(
            "CREATE TABLE big (id int, day date) PARTITION BY RANGE (day)",
            "CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
            "CREATE MATERIALIZED VIEW of_big AS SELECT count(*) FROM big",
        )
        assert (await warehouse.poll("public.of_big")).kind == "content"
        await warehouse.look()
        assert warehouse.source.staleness_reports()["public.of_big"].fresh
        warehouse.run("INSERT INTO big VALUES (1, '2024-01-05')")
        await warehouse.look()
        assert not warehouse.source.staleness_reports()["public.of_big"].fresh
        await warehouse.poll("public.of_big")
        warehouse.run("CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')")
        await warehouse.look()
        assert not warehouse.source.staleness_reports()["public.of_big"].fresh

    warehouse.use(work)


def test_counters_that_were_reset_are_no_evidence_but_may_hide_a_change(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.run("INSERT INTO a VALUES (1, 1)")
        await warehouse.begin()
        await warehouse.look()
        looks = warehouse.source.tracker.tallies["public.a"].readings
        warehouse.run("SELECT pg_stat_reset()", "INSERT INTO a VALUES (2, 2), (3, 3)")
        await warehouse.look()
        assert warehouse.source.tracker.tallies["public.a"].readings == looks
        assert warehouse.source.staleness_reports()[OF_A].elapsed_s == 0
        assert {OF_A, OF_BOTH} <= warehouse.stale()
        again = await warehouse.poll(OF_A)
        assert (again.kind, again.comparable) == ("content", False)
        await warehouse.look()
        assert OF_A not in warehouse.stale()

    warehouse.use(work)


def test_the_dispersion_of_written_rows_is_reported(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        await warehouse.look()
        assert warehouse.source.staleness_reports()[OF_B].dispersion is None
        for turn in range(6):
            if turn % 2:
                warehouse.run(
                    f"INSERT INTO b SELECT g, 0 FROM generate_series({100 * turn}, {100 * turn + 99}) g"
                )
            await warehouse.look()
        dispersion = warehouse.source.staleness_reports()[OF_B].dispersion
        assert dispersion is not None
        assert 30 < dispersion < 100  # rows come by hundreds, every other time

    warehouse.use(work)


def test_a_crash_of_the_server_is_not_taken_for_a_change(own_postgres: PostgresServer) -> None:
    async def work() -> None:
        warehouse.run("INSERT INTO a VALUES (1, 1), (2, 2)")
        await warehouse.begin()
        await warehouse.look()
        looks = warehouse.source.tracker.tallies["public.a"].readings
        own_postgres.stop("immediate")
        own_postgres.start()
        await warehouse.look()
        assert warehouse.source.tracker.tallies["public.a"].readings == looks
        assert not any(told.changed for told in warehouse.source.staleness_reports().values())
        again = await warehouse.poll(OF_A)
        assert (again.kind, again.comparable) == ("content", False)

    warehouse = Warehouse(own_postgres, "postgres")
    warehouse.use(work)
    warehouse.close()


def test_a_view_refreshed_by_somebody_else_is_fresh(warehouse: Warehouse) -> None:
    async def work() -> None:
        await warehouse.begin()
        warehouse.run("INSERT INTO b VALUES (1, 1)")
        await warehouse.look()
        assert OF_B in warehouse.stale()
        warehouse.run("REFRESH MATERIALIZED VIEW of_b")
        await warehouse.look()
        assert OF_B not in warehouse.stale()

    warehouse.use(work)


def test_a_view_that_is_not_selected_counts_like_a_table(warehouse: Warehouse) -> None:
    async def work() -> None:
        warehouse.source = warehouse.make(views="public.of_b*")
        listing = await warehouse.look()
        assert [entry.key for entry in listing.entries] == [OF_B, OF_BOTH]
        await warehouse.poll(OF_BOTH)
        warehouse.run("INSERT INTO a VALUES (1, 1)")
        await warehouse.look()
        assert warehouse.source.staleness_reports()[OF_BOTH].fresh  # its source has not moved
        warehouse.run("REFRESH MATERIALIZED VIEW of_a")
        await warehouse.look()
        assert not warehouse.source.staleness_reports()[OF_BOTH].fresh

    warehouse.use(work)
