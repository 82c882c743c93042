"""Views in a DuckDB file: hashes of the rows show which tables changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tests.sources.rebuilding import RebuiltViews
from tests.waiting import until

DEPENDS_ON = {"daily": ["big_sales"], "weekly": ["daily", "raw.shops"]}
HOLD = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "house.duckdb"
    write(
        path,
        "CREATE TABLE sales (id INT, x INT); CREATE SCHEMA raw; CREATE TABLE raw.shops (id INT);"
        "CREATE VIEW all_sales AS SELECT * FROM sales;"
        "CREATE VIEW big_sales AS SELECT * FROM all_sales WHERE x > 1;"
        "CREATE TABLE daily AS SELECT count(*) AS n FROM big_sales; CREATE TABLE weekly AS SELECT 1 AS n",
    )
    return path


def write(file: Path, statements: str) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute(statements)


def test_a_view_is_stale_after_a_change_of_a_table_below_it(file: Path, tmp_path: Path) -> None:
    views = RebuiltViews(tmp_path, url=f"duckdb:{file}", depends_on=DEPENDS_ON)

    async def work() -> None:
        await views.poll("weekly")
        assert views.built() == ["daily", "weekly"]
        for statement, stale in (
            ("INSERT INTO sales VALUES (1, 5), (2, 6)", {"daily", "weekly"}),
            ("INSERT INTO raw.shops VALUES (1)", {"weekly"}),
            ("UPDATE sales SET x = 11 - x", {"daily", "weekly"}),
            ("UPDATE sales SET x = x", set()),  # rows are compared, not statements
            ("DELETE FROM sales WHERE id = 1", {"daily", "weekly"}),
            ("CREATE OR REPLACE VIEW all_sales AS SELECT id, x + 1 AS x FROM sales", {"daily", "weekly"}),
        ):
            write(file, statement)
            await views.check_stale_then_refresh(statement, stale, "weekly")

    views.use(work)


def test_a_view_that_another_program_rebuilt_is_as_fresh_as_the_reading(file: Path, tmp_path: Path) -> None:
    views = RebuiltViews(tmp_path, url=f"duckdb:{file}", depends_on=DEPENDS_ON)

    async def work() -> None:
        await views.poll("weekly")
        await views.look()
        write(file, "INSERT INTO sales VALUES (3, 5)")
        await views.look()
        assert views.stale() == {"daily", "weekly"}
        write(file, "CREATE OR REPLACE TABLE daily AS SELECT count(*) AS n FROM big_sales")
        await views.look()
        assert views.stale() == {"weekly"}

    views.use(work)


def test_the_file_is_left_to_a_process_that_writes(file: Path, tmp_path: Path) -> None:
    """Nobody reads a file that a process writes; afterwards the reading goes on, and locks nobody out."""
    views = RebuiltViews(tmp_path, url=f"duckdb:{file}", depends_on=DEPENDS_ON, lock_timeout="0.1s")
    writer = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    until(lambda: writer.stdout.readline() == "open\n", "the writer has the file")  # type: ignore[union-attr]

    async def work() -> None:
        assert (await views.look()).problem.startswith("another process writes the file")
        writer.communicate("")
        assert len((await views.look(600.0)).entries) == 2
        write(file, "INSERT INTO sales VALUES (9, 9)")

    views.use(work)


def test_a_million_rows_are_read_only_after_a_write(file: Path, tmp_path: Path) -> None:
    write(file, "INSERT INTO sales SELECT range, range FROM range(1000000)")
    views = RebuiltViews(tmp_path, url=f"duckdb:{file}", depends_on=DEPENDS_ON)

    async def work() -> None:
        await views.look()
        with duckdb.connect(str(file)) as connection:  # nobody else could read the file now
            connection.execute("SELECT 1")
            assert (await views.look()).problem == ""

    views.use(work)


def test_a_query_says_whether_a_view_is_stale(file: Path, tmp_path: Path) -> None:
    asks = "SELECT (SELECT count(*) FROM big_sales) <> n FROM {view}"
    views = RebuiltViews(tmp_path, url=f"duckdb:{file}", views=["daily"], stale_when=asks)

    async def work() -> None:
        await views.look()
        assert views.stale() == set()  # it is stated to be fresh
        write(file, "INSERT INTO sales VALUES (3, 5)")
        await views.look()
        assert views.stale() == {"daily"}
        await views.poll("daily")
        assert views.built() == ["daily"]
        await views.look()
        assert views.stale() == {"daily"}  # the command did nothing, and the query knows it

    views.use(work)
