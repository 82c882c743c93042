"""``afresh run --once`` over tables of a SQLite file that a command rebuilds."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh

SETTINGS = """
[budget]
requests = "1000/s"
seconds = "50m/h"
[[source]]
name = "house"
kind = "view"
url = "sqlite:house.db"
count_writes = true
refresh = ["{python}", "rebuild.py", "{{view}}"]
depends_on = {{ daily = ["sales"], weekly = ["daily"] }}
"""
REBUILD = """
import sqlite3, sys
below = {"daily": "sales", "weekly": "daily"}[sys.argv[1]]
with sqlite3.connect("house.db") as connection:
    connection.execute(f"DELETE FROM {sys.argv[1]}")
    connection.execute(f"INSERT INTO {sys.argv[1]} SELECT n FROM {below}")
"""


def values(table: str) -> list[int]:
    with closing(sqlite3.connect("house.db")) as connection:
        return [n for (n,) in connection.execute(f"SELECT n FROM {table} ORDER BY n")]


def write(*statements: str) -> None:
    with closing(sqlite3.connect("house.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def house(afresh: Afresh, tmp_path: Path) -> Afresh:
    write(*(f"CREATE TABLE {name} (n INT)" for name in ("sales", "daily", "weekly")))
    (tmp_path / "rebuild.py").write_text(REBUILD)
    (tmp_path / "afresh.toml").write_text(SETTINGS.format(python=sys.executable))
    return afresh


def test_each_round_rebuilds_what_is_stale(house: Afresh) -> None:
    for count in range(1, 3):
        write(f"INSERT INTO sales VALUES ({count})")
        found = house("run", "--once")
        assert found.code == 0, found.err
        assert values("weekly") == list(range(1, count + 1)), found.err


@pytest.mark.timeout(60)
def test_a_round_ends_although_a_stale_view_fails(house: Afresh) -> None:
    """Each is tried once: a failed refresh was repeated at once, without end."""
    assert house("run", "--once").code == 0
    write(
        "CREATE TRIGGER spoil BEFORE INSERT ON daily BEGIN SELECT raise(ABORT, 'no room'); END",
        "INSERT INTO sales VALUES (3)",
    )
    found = house("run", "--once")
    assert found.code == 1  # nothing that was due succeeded
    assert found.err.count("poll failed") == 2
    assert "no room" in house("status").out
