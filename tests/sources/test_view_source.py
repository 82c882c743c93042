"""The view source over a real PostgreSQL: what is stale, and what is refreshed when."""

from __future__ import annotations

import json

from tests.servers.postgres import PostgresServer
from tests.sources.viewing import OF_A, OF_B, OF_BOTH, Warehouse


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
        assert {view: told.known for view, told in house.source.staleness_reports().items()} == dict.fromkeys(
            (OF_A, OF_B, OF_BOTH), False
        )
        await house.begin()
        assert house.stale() == set()
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.look()
        assert house.stale() == {OF_A, OF_BOTH}
        since = house.source.staleness_reports()[OF_A].stale_since_s
        await house.look()
        assert house.source.staleness_reports()[OF_A].stale_since_s == since == house.clock.time_s - 5
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
        before = await house.source.read_catalogue()
        house.clock.time_s += 1
        assert (await house.poll(OF_B)).kind == "content"
        house.source.tracker.record_reading(before)
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
        assert house.source.staleness_reports()["public.of_big"].fresh
        house.run("INSERT INTO big VALUES (1, '2024-01-05')")
        await house.look()
        assert not house.source.staleness_reports()["public.of_big"].fresh
        await house.poll("public.of_big")
        house.run("CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')")
        await house.look()
        assert not house.source.staleness_reports()["public.of_big"].fresh

    house.use(work)


def test_counters_set_back_are_no_evidence_but_may_hide_a_change(house: Warehouse) -> None:
    async def work() -> None:
        house.run("INSERT INTO a VALUES (1, 1)")
        await house.begin()
        await house.look()
        looks = house.source.tracker.tallies["public.a"].readings
        house.run("SELECT pg_stat_reset()", "INSERT INTO a VALUES (2, 2), (3, 3)")
        await house.look()
        assert house.source.tracker.tallies["public.a"].readings == looks
        assert house.source.staleness_reports()[OF_A].elapsed_s == 0
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
        assert house.source.staleness_reports()[OF_B].dispersion is None
        for turn in range(6):
            if turn % 2:
                house.run(
                    f"INSERT INTO b SELECT g, 0 FROM generate_series({100 * turn}, {100 * turn + 99}) g"
                )
            await house.look()
        dispersion = house.source.staleness_reports()[OF_B].dispersion
        assert dispersion is not None
        assert 30 < dispersion < 100  # rows come by hundreds, every other time

    house.use(work)


def test_a_crash_of_the_server_is_not_taken_for_a_change(own_postgres: PostgresServer) -> None:
    async def work() -> None:
        house.run("INSERT INTO a VALUES (1, 1), (2, 2)")
        await house.begin()
        await house.look()
        looks = house.source.tracker.tallies["public.a"].readings
        own_postgres.stop("immediate")
        own_postgres.start()
        await house.look()
        assert house.source.tracker.tallies["public.a"].readings == looks
        assert not any(told.changed for told in house.source.staleness_reports().values())
        again = await house.poll(OF_A)
        assert (again.kind, again.comparable) == ("content", False)

    house = Warehouse(own_postgres, "postgres")
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
        assert house.source.staleness_reports()[OF_BOTH].fresh  # its source has not moved
        house.run("REFRESH MATERIALIZED VIEW of_a")
        await house.look()
        assert not house.source.staleness_reports()[OF_BOTH].fresh

    house.use(work)
