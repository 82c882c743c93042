"""Rows through SQLAlchemy, here of a DuckDB file; ``make interop`` does the same with MariaDB."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.sources.polling import SetClock, lease_of, lease_with_copy, make_source

from afresh.sources.context import SourceContext
from afresh.sources.sql.source import SqlSource
from afresh.values.errors import UsageError
from afresh.values.listing import Listing


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "stock.duckdb"
    write(
        path,
        "CREATE TABLE stock (id INT PRIMARY KEY, name TEXT, price DECIMAL(9, 2), seen TIMESTAMP);"
        "INSERT INTO stock SELECT range, 'n' || range, range / 4, "
        "TIMESTAMP '2026-01-01' + range * INTERVAL 1 MINUTE FROM range(2500)",
    )
    return path


def write(path: Path, statement: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)


def source_of(file: Path, **changes: Any) -> SqlSource:
    query = "SELECT * FROM stock WHERE name LIKE 'n%' AND '12:30:00'::TIME > '00:00'"
    table = {"name": "s", "kind": "sql", "url": f"duckdb:{file}", "query": query, "key": "id"} | changes
    source = make_source(table, SourceContext(clock=SetClock()))
    assert isinstance(source, SqlSource)
    return source


def use(source: SqlSource, work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        try:
            await work()
        finally:
            await source.close()

    asyncio.run(run())


async def list_keys(source: SqlSource) -> Listing:
    (listing,) = [listing async for listing in source.listings()]
    return listing


def test_rows_are_listed_and_polled_in_bulk_and_changes_are_found(file: Path) -> None:
    source = source_of(file, cursor="seen", overlap="1s")

    async def work() -> None:
        listing = await list_keys(source)
        assert (len(listing.entries), listing.complete) == (2500, True)
        leases = [lease_of(entry.key) for entry in listing.entries]
        found = await source.poll_many(leases[:1000])
        assert {one.kind for one in found} == {"content"}
        assert json.loads(found[3].content or b"") == {
            "id": 3,
            "name": "n3",
            "price": 0.75,
            "seen": "2026-01-01 00:03:00",
        }
        leases = [lease_with_copy(lease, one) for lease, one in zip(leases, found, strict=False)]
        write(file, "UPDATE stock SET price = 9, seen = TIMESTAMP '2027-01-01' WHERE id = 7")
        write(file, "DELETE FROM stock WHERE id = 8")
        kinds = [one.kind for one in await source.poll_many(leases)]
        assert (kinds[7], kinds[8], kinds.count("unchanged")) == ("content", "gone", 998)
        moved = await list_keys(source)
        assert not moved.complete
        assert {entry.key for entry in moved.entries} == {"2499", "7"}  # from the last value on

    use(source, work)


def test_a_key_of_another_type_is_refused_alone(file: Path) -> None:
    source = source_of(file)

    async def work() -> None:
        found = await source.poll_many([lease_of("1"), lease_of("one"), lease_of("2")])
        assert [one.kind for one in found] == ["content", "refused", "content"]
        assert found[1].problem == "the key is no value of the key's type: 'one'"

    use(source, work)


def test_mistakes_are_said_in_words(file: Path) -> None:
    async def problem(**changes: Any) -> str:
        source = source_of(file, **changes)
        try:
            return (await source.poll(lease_of("1"))).problem
        finally:
            await source.close()

    async def work() -> None:
        assert await problem(key="sku") == "key: the query has no column 'sku', only id, name, price, seen"
        assert "no_such" in await problem(query="SELECT * FROM no_such", key="id")
        assert (await problem(url="nosuch://u:p@h/x")).startswith("SQLAlchemy does not know nosuch")
        words = await problem(url="mysql+pymysql://me:hunter2@127.0.0.1:1/x")
        assert words.startswith("no connection: ")
        assert "hunter2" not in words

    asyncio.run(work())


def test_without_the_library_a_source_is_refused(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setattr("afresh.sources.sql.database_url.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"needs more: pip install 'afresh\[sqlalchemy\]'"):
        source_of(file, url="mysql+pymysql://h/x")


def test_weights_of_new_rows_come_from_columns(file: Path) -> None:
    source = source_of(file, weight="price + 1")

    async def work() -> None:
        weights = {entry.key: entry.weight for entry in (await list_keys(source)).entries}
        assert weights["8"] == 3.0

    use(source, work)
