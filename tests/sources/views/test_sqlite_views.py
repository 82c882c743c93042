"""Views in a SQLite file: triggers count the writes of the tables that they depend on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.sources.rebuilding import RebuiltViews

DEPENDS_ON = {"daily": ["big_sales"], "weekly": ["daily", "shops"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "house.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE sales (id INTEGER PRIMARY KEY, x INT); CREATE TABLE shops (id INTEGER PRIMARY KEY);"
            "CREATE VIEW big_sales AS SELECT * FROM sales WHERE x > 10;"
            "CREATE TABLE daily AS SELECT count(*) AS n FROM big_sales; CREATE TABLE weekly (n INT);"
        )
    return path


def write(file: Path, statement: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(statement)
    connection.close()


def house(file: Path, tmp_path: Path) -> RebuiltViews:
    return RebuiltViews(tmp_path, url=f"sqlite:{file}", depends_on=DEPENDS_ON, count_writes=True)


def test_a_view_is_stale_after_a_write_to_a_table_below_it(file: Path, tmp_path: Path) -> None:
    views = house(file, tmp_path)

    async def work() -> None:
        assert [entry.key for entry in (await views.look()).entries] == ["daily", "weekly"]
        await views.poll("weekly")
        assert views.built() == ["daily", "weekly"]  # what it is made from first
        await views.look()
        assert views.stale() == set()
        for statement, stale in (
            ("INSERT INTO sales VALUES (1, 20)", {"daily", "weekly"}),
            ("UPDATE shops SET id = 2", set()),  # there is no shop
            ("INSERT INTO shops VALUES (1)", {"weekly"}),
            ("UPDATE sales SET x = 21", {"daily", "weekly"}),
            ("DELETE FROM sales", {"daily", "weekly"}),
            ("ALTER TABLE sales ADD COLUMN y", {"daily", "weekly"}),
        ):
            write(file, statement)
            await views.check_stale_then_refresh(statement, stale, "weekly")
        assert (await views.poll("daily")).kind == "content"  # others refreshed it in between
        assert (await views.poll("daily")).kind == "unchanged"
        assert views.built() == []

    views.use(work)


def test_a_plain_view_that_is_redefined_is_a_change(file: Path, tmp_path: Path) -> None:
    views = house(file, tmp_path)

    async def work() -> None:
        await views.poll("weekly")
        write(file, "DROP VIEW big_sales")
        write(file, "CREATE VIEW big_sales AS SELECT * FROM sales WHERE x > 5")
        await views.look()
        assert views.stale() == {"daily", "weekly"}

    views.use(work)


def test_a_table_that_is_created_again_is_counted_again(file: Path, tmp_path: Path) -> None:
    views = house(file, tmp_path)

    async def work() -> None:
        await views.poll("weekly")
        write(file, "DROP TABLE shops")
        write(file, "CREATE TABLE shops (id INTEGER PRIMARY KEY)")
        await views.look()
        assert views.stale() == {"weekly"}
        await views.poll("weekly")
        write(file, "INSERT INTO shops VALUES (7)")
        await views.look()
        assert views.stale() == {"weekly"}

    views.use(work)


def test_the_state_outlives_the_process(file: Path, tmp_path: Path) -> None:
    views = house(file, tmp_path)

    async def work() -> None:
        await views.poll("weekly")
        await views.look()
        kept = views.source.save_state()
        await views.source.close()
        write(file, "INSERT INTO shops VALUES (7)")
        views.source = views.make()
        views.source.load_state(kept)
        await views.look()
        assert views.stale() == {"weekly"}

    views.use(work)


def test_without_triggers_nothing_is_written_and_a_warning_says_so(file: Path, tmp_path: Path) -> None:
    views = RebuiltViews(tmp_path, url=f"sqlite:{file}", depends_on=DEPENDS_ON)
    before = file.read_bytes()

    async def work() -> None:
        assert (await views.look()).problem == (
            "no change counter for sales, shops: staleness of the views above is not known: "
            "set stale_when, or count_writes = true, which creates triggers"
        )
        assert (await views.look()).problem == ""
        assert not any(told.known for told in views.source.staleness_reports().values())

    views.use(work)
    assert file.read_bytes() == before


def test_a_table_that_is_missing_is_named(file: Path, tmp_path: Path) -> None:
    views = RebuiltViews(tmp_path, url=f"sqlite:{file}", depends_on={"daily": ["sails"]}, count_writes=True)

    async def work() -> None:
        assert (await views.look()).problem == "depends_on: the database has no table sails"

    views.use(work)
