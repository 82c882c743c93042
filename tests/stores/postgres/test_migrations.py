"""The schema: its history replayed, older stores upgraded, newer and foreign ones refused, SQL all in use."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.stores.backends import new_items, schema_url
from tests.waiting import until

from afresh.stores.postgres.connection import fetch_rows, parse_address
from afresh.stores.postgres.database import PostgresDatabase
from afresh.stores.postgres.store import PostgresStore
from afresh.stores.sql.dialect import load_migrations, load_statements
from afresh.values.errors import (
    StoreCorruptError,
    StoreError,
    StoreMissingError,
    StoreReadOnlyError,
    StoreVersionError,
    UsageError,
)
from afresh.values.stored import Notice

PACKAGE = Path(str(files("afresh.stores.postgres")))
MIGRATIONS = load_migrations("afresh.stores.postgres")
CATALOGUE = {
    "columns": """
        SELECT table_name::text, column_name::text, data_type::text, is_nullable::text, column_default::text,
               identity_generation::text, collation_name::text
        FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, ordinal_position""",
    "indexes": """
        SELECT tablename::text, replace(indexdef, schemaname || '.', '')
        FROM pg_indexes WHERE schemaname = %s ORDER BY 1, 2""",
    "views": "SELECT viewname::text, definition FROM pg_views WHERE schemaname = %s ORDER BY 1",
    "options": """
        SELECT relname::text, reloptions FROM pg_class
        WHERE relnamespace = %s::text::regnamespace AND relkind = 'r' ORDER BY 1""",
}


@pytest.fixture
def url(postgres_url: str, tmp_path: Path) -> str:
    """A schema of the test's own."""
    return schema_url(postgres_url, tmp_path)


def described(connection: psycopg.Connection[Any], schema: str) -> dict[str, list[Any]]:
    """What the catalogue says of a schema, seen from inside it."""
    connection.execute(f"SET search_path TO {schema}".encode())
    return {
        name: connection.execute(query.encode(), (schema,)).fetchall() for name, query in CATALOGUE.items()
    }


def test_replayed_migrations_are_the_schema(url: str, postgres_url: str) -> None:
    PostgresStore(url).close()
    schema = parse_address(url).schema
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}_2; SET search_path TO {schema}_2".encode())
        connection.execute((PACKAGE / "schema.sql").read_bytes())
        replayed, written = described(connection, schema), described(connection, f"{schema}_2")
    assert len(replayed["columns"]) > 50
    assert replayed == written


def test_migrations_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (PACKAGE / "migrations").iterdir())
    assert [name[:5] for name in names] == [f"{number:04d}_" for number in range(1, len(names) + 1)]


def test_an_older_store_is_upgraded_once_by_whoever_comes_first(url: str) -> None:
    with PostgresStore(url) as store:
        store.items.add(new_items(3), 0.0)
    newer = (
        *MIGRATIONS,
        "ALTER TABLE item ADD COLUMN colour text; UPDATE item SET colour = 'red';",
    )

    def upgrade(_: int) -> int:
        database = PostgresDatabase(parse_address(url), migrations=newer)
        red = database.read(lambda c: fetch_rows(c, "SELECT count(*) FROM item WHERE colour = 'red'"))
        database.close()
        return int(red[0][0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(upgrade, range(4))) == [3] * 4
    known = len(MIGRATIONS)
    with pytest.raises(StoreVersionError, match=rf"newer afresh \(schema {known + 1}, known up to {known}\)"):
        PostgresStore(url)


def make_older_store(url: str, migrations: int, *statements: str) -> None:
    """Make the store that the first ``migrations`` make, and fill it."""
    address = parse_address(url)
    PostgresDatabase(address, migrations=MIGRATIONS[:migrations]).close()
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {address.schema}".encode())
        for statement in statements:
            connection.execute(statement.encode())


def test_notices_of_an_older_store_are_kept_without_an_origin(url: str) -> None:
    make_older_store(
        url,
        5,
        "INSERT INTO notice (item_id, number, time_s, count) VALUES (7, 3, 5.5, 2)",
        "INSERT INTO name (id, text) VALUES (4, 'web')",
        "INSERT INTO item VALUES (7, 'é', '', 1, 1, 0, 'infinity', NULL, NULL, '', 0)",
        "INSERT INTO item VALUES (9, 'ü', 'u', 1, 1, 0, 'infinity', NULL, NULL, '', 0)",
        "INSERT INTO state (item_id, source_id, group_id, status, due_s) VALUES (7, 4, 4, 0, 0)",
        "INSERT INTO state (item_id, source_id, group_id, status, due_s) VALUES (9, 4, 4, 0, 0)",
        "INSERT INTO value VALUES ('engine.listed:web:u', convert_to('{\"é\":\"\"}', 'UTF8'))",
        "INSERT INTO value VALUES ('engine.listed_at:web', '\\xff')",
    )
    with PostgresStore(url) as store:
        assert store.notices.open() == [Notice(3, 7, 5.5, 2, "")]
        question = "SELECT id, key, listed, source_id FROM item ORDER BY id"
        rows = store.database.read(lambda connection: fetch_rows(connection, question))
        assert rows == [(7, "é", 1, 4), (9, "ü", 0, 4)]
        assert [(item.key, item.source) for item in store.items.by_id([7, 9])] == [("é", "web"), ("ü", "web")]


def test_an_upgrade_whose_connection_is_cut_changes_nothing_and_is_done_later(
    url: str, postgres_url: str
) -> None:
    make_older_store(
        url,
        9,
        "INSERT INTO name (id, text) VALUES (4, 'web')",
        "INSERT INTO item VALUES (7, 'k', '', 1, 1, 0, 'infinity', NULL, NULL, '', 0)",
        "INSERT INTO state (item_id, source_id, group_id, status, due_s) VALUES (7, 4, 4, 0, 0)",
    )
    hanging = (*MIGRATIONS[:9], f"{MIGRATIONS[9]}\nSELECT pg_sleep(600);")

    def cut(connection: psycopg.Connection[Any]) -> bool:
        """End the server process that has upgraded everything and sleeps before its commit."""
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE wait_event = 'PgSleep' AND query LIKE '%item_key%pg_sleep(600)%'"
        )
        return opening.done()

    with psycopg.connect(postgres_url, autocommit=True) as connection, ThreadPoolExecutor(1) as pool:
        opening = pool.submit(PostgresDatabase, parse_address(url), migrations=hanging)
        until(lambda: cut(connection), "the upgrade has failed")
    assert isinstance(opening.exception(), StoreError)
    version = PostgresDatabase(parse_address(url), migrations=MIGRATIONS[:9])  # it is still the older one
    version.close()
    with PostgresStore(url) as store:
        assert [(item.id, item.key, item.source) for item in store.items.by_id([7])] == [(7, "k", "web")]


def test_several_that_make_a_store_at_once_make_one(url: str) -> None:
    def make(_: int) -> int:
        with PostgresStore(url) as store:
            return store.items.add(new_items(50), 0.0)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(make, range(4))) == 50
    with PostgresStore(url) as store:
        assert sum(count.items for count in store.items.counts()) == 50
        assert store.upkeep.check() == []


def test_an_upgrade_that_fails_leaves_the_old_store(url: str) -> None:
    PostgresStore(url).close()
    broken = (
        *MIGRATIONS,
        "CREATE TABLE more (a integer); INSERT INTO nowhere VALUES (1);",
    )
    with pytest.raises(StoreError, match="nowhere"):
        PostgresDatabase(parse_address(url), migrations=broken)
    with PostgresStore(url) as store:
        assert store.items.add(new_items(1), 0.0) == 1


def test_a_store_opened_for_reading_is_neither_made_nor_upgraded(url: str) -> None:
    for given in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreMissingError, match="there is no store at"):
            PostgresStore(url, **given)  # type: ignore[arg-type]
    with PostgresStore(url) as store:
        store.items.add(new_items(1), 0.0)
    with PostgresStore(url, read_only=True) as reader:
        assert reader.items.ids(["k0"]) == {"k0": 1}
        for use in (lambda: reader.items.add(new_items(2), 0.0), reader.upkeep.vacuum):
            with pytest.raises(StoreReadOnlyError, match="opened for reading only"):
                use()
    with pytest.raises(StoreReadOnlyError, match="needs an upgrade"):
        PostgresDatabase(
            parse_address(url),
            read_only=True,
            migrations=(*MIGRATIONS, "CREATE TABLE m (a int);"),
        )


def test_the_tables_of_another_program_are_refused_untouched(url: str, postgres_url: str) -> None:
    schema = parse_address(url).schema
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (a integer)".encode())
        with pytest.raises(StoreCorruptError, match="another program"):
            PostgresStore(url)
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall()
    assert tables == [("theirs",)]


def test_an_empty_schema_that_an_administrator_made_is_used(url: str, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {parse_address(url).schema}".encode())
    with PostgresStore(url) as store:
        assert store.items.add(new_items(1), 0.0) == 1


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.sql")), ids=lambda path: path.name)
def test_every_block_of_sql_is_used(path: Path) -> None:
    if path.name == "schema.sql":
        assert "CREATE TABLE migration" in path.read_text()
        return
    shared = [home.read_text() for home in (PACKAGE.parent / "sql").glob("*.py")]
    own = [home.read_text() for home in PACKAGE.glob("*.py")]
    code = "".join([*own, *(text for text in shared if f'"{path.stem}"' in text)])
    used = set(re.findall(r'"(\w+)"', code))
    blocks = set(load_statements("afresh.stores.postgres", path.stem))
    # Tables in the common form are looked up by their name.
    assert blocks - ({"item", "content", "ledger", "value"} if path.name == "transfer.sql" else set()) <= used


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://host/db?schema=", "schema is ''"),
        ("postgresql://host/db?schema=" + "x" * 64, "1 to 63 bytes"),
        ("postgresql://u:secret@[host/db", "cannot be read"),
        ("postgresql://u:secret@host/db?nonsense", "cannot be read"),
    ],
)
def test_addresses_that_cannot_be_are_refused_without_their_password(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        PostgresStore(url)
    assert "secret" not in str(caught.value)
