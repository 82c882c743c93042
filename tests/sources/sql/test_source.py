"""The sql source over real databases: rows, bulks, listings, notices, and whatever a database refuses."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psycopg
import pytest
from tests.servers.postgres import PostgresServer
from tests.sources.polling import SetClock, lease_of, lease_with_copy, make_source
from tests.waiting import until_async

from afresh.engine.app import make_engine
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.context import SourceContext
from afresh.sources.settings import read_settings
from afresh.sources.sql.settings import SqlSettings
from afresh.sources.sql.source import SqlSource
from afresh.values.errors import UsageError
from afresh.values.fetched import Fetched
from afresh.values.items import ItemQuery
from afresh.values.lease import Lease
from afresh.values.listing import Listing, compare_listing

Found = TypeVar("Found")


class Database(Protocol):
    """A database that a test writes to behind the source's back."""

    url: str

    def run(self, *statements: str) -> None: ...


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"sqlite:{path}"
        sqlite3.connect(path).close()

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()


class PostgresDatabase:
    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Each kind of database in turn, with a few books."""
    found: Database
    if request.param == "sqlite":
        found = SqliteDatabase(tmp_path / "books.db")
    else:
        found = PostgresDatabase(request.getfixturevalue("schema_url"))
    found.run(
        "CREATE TABLE book (id integer PRIMARY KEY, title text, price numeric, seen int, version int)",
        "INSERT INTO book VALUES (1, 'Emma', 9.5, 0, 1), (2, 'Ivanhoe', NULL, 0, 2), (3, '', 7, 0, 3)",
    )
    return found


def table_of(address: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": "books",
        "kind": "sql",
        "url": address,
        "query": "SELECT * FROM book",
        "key": "id",
    } | changes


def settings_of(address: str, **changes: Any) -> SqlSettings:
    return read_settings(SqlSettings, table_of(address, **changes))


def source_of(address: str, context: SourceContext | None = None, **changes: Any) -> SqlSource:
    source = make_source(table_of(address, **changes), context or SourceContext())
    assert isinstance(source, SqlSource)
    assert source.capabilities.bulk is source
    return source


def use_source(source: SqlSource, work: Callable[[SqlSource], Awaitable[Found]]) -> Found:
    async def run() -> Found:
        try:
            return await work(source)
        finally:
            await source.close()

    return asyncio.run(run())


def poll_rows(source: SqlSource, *leases: Lease) -> list[Fetched]:
    return use_source(source, lambda source: source.poll_many(leases))


async def read_listing(source: SqlSource) -> Listing:
    (listing,) = [listing async for listing in source.listings()]
    return listing


def marks(listing: Listing) -> dict[str, str]:
    return {entry.key: entry.mark for entry in listing.entries}


def leases_of(*keys: str) -> list[Lease]:
    return [lease_of(key) for key in keys]


def test_one_statement_brings_many_rows_at_a_shared_cost(db: Database) -> None:
    admitted: list[str] = []

    async def admit(group: str) -> None:
        admitted.append(group)

    found = poll_rows(source_of(db.url, SourceContext(admit=admit)), *leases_of("1", "3", "9"))
    assert [one.kind for one in found] == ["content", "content", "gone"]
    assert found[0].content == b'{"id":1,"price":9.5,"seen":0,"title":"Emma","version":1}'
    assert found[1].content == b'{"id":3,"price":7,"seen":0,"title":"","version":3}'
    assert admitted == ["g"]
    assert sum(one.requests for one in found) == 1
    assert found[0].seconds == found[2].seconds > 0


def test_a_change_is_a_change_of_value(db: Database) -> None:
    async def run(source: SqlSource) -> None:
        first = await source.poll_many(leases_of("1", "2", "3"))
        leases = [
            lease_with_copy(lease, one) for lease, one in zip(leases_of("1", "2", "3"), first, strict=True)
        ]
        db.run(
            "UPDATE book SET price = 9.50, seen = 8 WHERE id = 1", "UPDATE book SET price = 0 WHERE id = 2"
        )
        again = await source.poll_many(leases)
        assert [one.kind for one in again] == ["unchanged", "content", "unchanged"]
        assert again[1].content == b'{"id":2,"price":0,"seen":0,"title":"Ivanhoe","version":2}'

    use_source(source_of(db.url, ignore_columns="seen"), run)


def test_a_new_column_is_no_change_of_the_rows(db: Database) -> None:
    async def run(source: SqlSource) -> Fetched:
        lease = lease_with_copy(lease_of("1"), await source.poll(lease_of("1")))
        db.run("ALTER TABLE book ADD COLUMN shelf text DEFAULT 'A'")
        return await source.poll(lease)

    again = use_source(source_of(db.url), run)
    assert (again.kind, again.comparable) == ("content", False)
    assert b'"shelf":"A"' in (again.content or b"")


def test_any_select_will_do(db: Database) -> None:
    query = (
        "WITH dear AS (SELECT * FROM book WHERE title LIKE '%a%') SELECT title AS k, 1 AS n FROM dear -- x"
    )
    found = poll_rows(source_of(db.url, query=query, key="k"), *leases_of("Emma", "Ivanhoe", "50%"))
    assert [one.content for one in found] == [b'{"k":"Emma","n":1}', b'{"k":"Ivanhoe","n":1}', None]


def test_listings_show_births_and_deaths_and_by_a_cursor_changes(db: Database) -> None:
    clock = SetClock()

    async def run(source: SqlSource) -> None:
        first = await read_listing(source)
        assert (first.complete, first.requests, marks(first)) == (True, 1, {"1": "1", "2": "2", "3": "3"})
        db.run(
            "UPDATE book SET title = 'Emma!', version = 4 WHERE id = 1",
            "INSERT INTO book VALUES (4, 'New', 1, 0, 3)",  # a tie with what was the highest
            "DELETE FROM book WHERE id = 2",
        )
        clock.time_s += 60
        second = await read_listing(source)
        assert (second.complete, marks(second)) == (False, {"1": "4", "3": "3", "4": "3"})
        found = compare_listing(marks(first), second.entries, complete=second.complete)
        assert (found.births, found.notices, found.deaths) == (("4",), ("1",), ())
        clock.time_s += 7200
        third = await read_listing(source)
        assert compare_listing(marks(first), third.entries, complete=third.complete).deaths == ("2",)

    use_source(source_of(db.url, SourceContext(clock=clock), cursor="version"), run)


def test_a_transaction_that_commits_late_is_noticed(db: Database) -> None:
    clock = SetClock()

    async def run(source: SqlSource) -> None:
        await read_listing(source)
        clock.time_s += 350
        await read_listing(source)  # all rows are listed again: not for an hour now
        for version in (10, 11, 12):
            clock.time_s += 100
            db.run(f"UPDATE book SET version = {version} WHERE id = 1")
            await read_listing(source)
        clock.time_s += 100
        # it took its number 350 seconds ago, when version 3 was the highest
        db.run("UPDATE book SET version = 9 WHERE id = 2")
        assert marks(await read_listing(source)) == {"1": "12", "2": "9", "3": "3"}

    source = source_of(db.url, SourceContext(clock=clock), cursor="version", overlap="350s")
    use_source(source, run)


def test_without_a_cursor_there_are_no_notices_but_births_and_deaths(db: Database) -> None:
    listing = use_source(source_of(db.url), read_listing)
    assert (listing.complete, set(marks(listing).values())) == (True, {""})
    assert settings_of(db.url).listings_every_s is None
    assert settings_of(db.url, cursor="version").listings_every_s == 60


def test_rows_without_a_key_and_too_many_rows_are_reported(db: Database) -> None:
    async def twice(source: SqlSource) -> tuple[Listing, Listing]:
        return await read_listing(source), await read_listing(source)

    keyless = source_of(db.url, query="SELECT NULLIF(title, '') AS k FROM book", key="k")
    listing, again = use_source(keyless, twice)
    assert set(marks(listing)) == set(marks(again)) == {"Emma", "Ivanhoe"}
    assert listing.problem == "1 row has no key (column 'k' is NULL or empty)"
    assert again.problem == ""  # it was said
    cut = use_source(source_of(db.url, max_rows=2), read_listing)
    assert (cut.complete, len(cut.entries)) == (False, 2)
    assert "more than max_rows = 2" in cut.problem


def test_a_key_that_is_not_unique_is_reported(db: Database) -> None:
    db.run("INSERT INTO book VALUES (4, 'Emma', 1, 0, 4)")
    found = poll_rows(source_of(db.url, key="title"), *leases_of("Emma", "Ivanhoe"))
    assert [one.kind for one in found] == ["failed", "content"]
    assert found[0].problem == "2 rows have this key: it must be unique"
    db.run(*(f"INSERT INTO book VALUES ({at}, 'Emma', 1, 0, 4)" for at in range(10, 20)))
    assert (
        "not unique: 3 rows for 1 keys"
        in poll_rows(source_of(db.url, key="title"), lease_of("Emma"))[0].problem
    )


def test_a_row_that_is_too_large_fails_alone(db: Database) -> None:
    db.run(f"UPDATE book SET title = '{'x' * 500}' WHERE id = 1")
    found = poll_rows(source_of(db.url, max_size=400), *leases_of("1", "2"))
    assert [one.kind for one in found] == ["failed", "content"]
    assert "more than 400" in found[0].problem


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key": "isbn"}, "key: the query has no column 'isbn', only id, title, price, seen, version"),
        ({"cursor": "at"}, "cursor: the query has no column 'at'"),
        ({"ignore_columns": "at"}, "ignore_columns: the query has no column 'at'"),
        ({"query": "SELECT * FROM nothing"}, "nothing"),
        ({"query": "SELECT FROM WHERE"}, "syntax error"),
    ],
)
def test_wrong_queries_are_reported_and_back_off(db: Database, changes: dict[str, Any], words: str) -> None:
    source = source_of(db.url, **changes)
    one, other = poll_rows(source, *leases_of("1", "2"))
    assert (one.kind, other.kind) == ("failed", "failed")
    assert words in one.problem
    assert 0 < (other.retry_after_s or 0) <= 1
    assert (one.requests, other.requests) == (1, 0)


def test_nothing_can_be_written(db: Database) -> None:
    query = "SELECT * FROM book) AS q; DELETE FROM book; SELECT * FROM (SELECT * FROM book"
    poll_rows(source_of(db.url, query=query), lease_of("1"))
    assert len(use_source(source_of(db.url), read_listing).entries) == 3


def test_a_statement_that_takes_too_long_is_ended(db: Database) -> None:
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT sum(id) AS id FROM n"

    async def run(source: SqlSource) -> None:
        found = await source.poll(lease_of("1"))
        assert found.kind == "failed"
        assert "time-out" in found.problem or "no answer within" in found.problem
        assert found.seconds > 0.2

    use_source(source_of(db.url, query=endless, timeout="0.2s"), run)


def test_a_cancelled_poll_ends_its_statement(db: Database) -> None:
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT sum(id) AS id FROM n"

    async def run(source: SqlSource) -> None:
        poll = asyncio.create_task(source.poll(lease_of("1")))
        while source.ready_s("g", 0.0) == 0.0:
            await asyncio.sleep(0)
        poll.cancel()  # before the statement has begun or after, as it happens
        with pytest.raises(asyncio.CancelledError):
            await poll
        await until_async(lambda: source.ready_s("g", 0.0) < float("inf"), "the statement ends")

    use_source(source_of(db.url, query=endless, timeout="1h"), run)


def test_polls_at_once_take_turns_and_a_closed_source_says_so(db: Database) -> None:
    async def run(source: SqlSource) -> None:
        found = await asyncio.gather(*(source.poll(lease_of(key)) for key in "123"))
        assert [one.kind for one in found] == ["content"] * 3
        await source.close()
        assert (await source.poll(lease_of("1"))).problem == "the source is closed"

    use_source(source_of(db.url), run)


def test_keys_of_any_type_in_sqlite(tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path / "keys.db")
    db.run("CREATE TABLE t (k)", "INSERT INTO t VALUES (1), (1.5), ('a''b'), ('007'), (9223372036854775807)")

    async def run(source: SqlSource) -> None:
        keys = [entry.key for entry in (await read_listing(source)).entries]
        assert keys == ["1", "1.5", "a'b", "007", "9223372036854775807"]
        assert [one.kind for one in await source.poll_many(leases_of(*keys))] == ["content"] * 5

    use_source(source_of(db.url, query="SELECT k FROM t", key="k"), run)


def test_rows_whose_key_is_not_text_are_refused_alone(tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path / "odd.db")
    db.run(
        "CREATE TABLE odd (k)",
        "INSERT INTO odd VALUES ('a'), (x'ff00'), ('nul' || char(0)), (CAST(x'ff' AS TEXT)), (7), (NULL)",
    )
    source = source_of(db.url, query="SELECT * FROM odd", key="k")
    listing = use_source(source, read_listing)
    assert [entry.key for entry in listing.entries] == ["a", "7"]
    assert listing.problem == (
        "1 row has no key (column 'k' is NULL or empty); "
        "3 rows have a key that is not text (column 'k' has a BLOB, NUL or invalid UTF-8)"
    )


def test_text_that_is_no_unicode_in_sqlite(tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path / "odd.db")
    db.run("CREATE TABLE book (id, t)", "INSERT INTO book VALUES (1, CAST(x'ff41' AS TEXT))")
    assert poll_rows(source_of(db.url), lease_of("1"))[0].content == b'{"id":1,"t":"\\udcffA"}'


def test_a_file_that_is_missing_or_no_database(tmp_path: Path) -> None:
    assert "unable to open" in poll_rows(source_of(f"sqlite:{tmp_path}/none.db"), lease_of("1"))[0].problem
    (tmp_path / "letter.db").write_text("Dear database, " * 100)
    assert "not a database" in poll_rows(source_of(f"sqlite:{tmp_path}/letter.db"), lease_of("1"))[0].problem


PG_VALUES = """
    SELECT 1 AS id, '2024-03-01 12:00+02'::timestamptz AS at, 'infinity'::timestamptz AS never,
        '20000-01-01'::date AS far, '1.00'::numeric AS n, 'NaN'::numeric AS nan, '-0'::float8 AS zero,
        '{"b": 1.0, "a": [1e2]}'::jsonb AS j, '{"b":  1}'::json AS raw, '\\xff'::bytea AS bytes,
        '{1.50,NULL}'::numeric[] AS list, '{}'::text[] AS none, '1 day 2 hours'::interval AS span,
        'c0ffee00-0000-0000-0000-000000000000'::uuid AS u, '10.0.0.1'::inet AS ip, true AS yes,
        '[1,5)'::int4range AS r, NULL::text AS nothing
"""


def test_every_type_of_postgresql(postgres: PostgresServer) -> None:
    content = poll_rows(source_of(postgres.url(), query=PG_VALUES), lease_of("1"))[0].content
    assert content == (
        b'{"at":"2024-03-01 10:00:00+00","bytes":{"base64":"/w=="},"far":"20000-01-01","id":1,'
        b'"ip":"10.0.0.1","j":{"a":[100],"b":1},"list":[1.5,null],"n":1,"nan":{"number":"NaN"},'
        b'"never":"infinity","none":[],'
        b'"nothing":null,"r":"[1, 5)","raw":"{\\"b\\":  1}","span":"1 day 02:00:00",'
        b'"u":"c0ffee00-0000-0000-0000-000000000000","yes":true,"zero":0}'
    )


def test_two_columns_of_one_name_are_refused(postgres: PostgresServer) -> None:
    found = poll_rows(source_of(postgres.url(), query="SELECT 1 AS id, 2 AS id"), lease_of("1"))
    assert found[0].problem == "query: gives two columns 'id': rename one with AS"


def test_a_key_of_the_wrong_type_is_found_and_spoils_nothing(postgres: PostgresServer) -> None:
    query = "SELECT n AS id FROM generate_series(1, 9) AS n"
    source = source_of(postgres.url(), query=query)
    found = poll_rows(source, *leases_of("1", "2", "x", "3", "99999999999999"))
    assert [one.kind for one in found] == ["content", "content", "refused", "content", "refused"]
    assert (
        'the key is no value of the key\'s type: invalid input syntax for type integer: "x"'
        in found[2].problem
    )
    assert sum(one.requests for one in found) > 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ({"user": "locked", "password": "wrong-word"}, "the password is wrong"),
        ({"database": "nowhere"}, 'there is no such database or role: database "nowhere" does not exist'),
        ({"user": "stranger"}, 'there is no such database or role: role "stranger" does not exist'),
    ],
)
def test_a_refused_login_is_reported_with_the_reason(
    postgres: PostgresServer, url: dict[str, str], words: str
) -> None:
    found = poll_rows(source_of(postgres.url(**url)), lease_of("1"))[0]
    assert words in found.problem
    assert "wrong-word" not in found.problem
    assert found.kind == "failed"


def test_a_role_without_rights(postgres: PostgresServer, schema_url: str) -> None:
    schema = schema_url.rpartition("%3D")[2]
    PostgresDatabase(schema_url).run(
        "CREATE TABLE book (id int)", f"GRANT USAGE ON SCHEMA {schema} TO locked"
    )
    url = schema_url.replace(postgres.url(), postgres.url(user="locked", password="right"))
    assert poll_rows(source_of(url), lease_of("1"))[0].problem == (
        "the role has no rights to it: permission denied for table book"
    )


def test_a_full_disk_is_reported_and_waited_for(schema_url: str) -> None:
    db = PostgresDatabase(schema_url)
    db.run(
        "CREATE TABLE disk AS SELECT true AS is_full",
        """CREATE FUNCTION disk_space() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
            IF (SELECT is_full FROM disk) THEN
                RAISE EXCEPTION 'could not write to file' USING ERRCODE = '53100';
            END IF;
            RETURN 1;
        END $$""",
    )

    async def run(source: SqlSource) -> None:
        full = await source.poll_many(leases_of("1", "2"))
        assert {(each.kind, each.problem) for each in full} == {
            ("failed", "the server's disk is full: could not write to file")
        }
        assert source.ready_s("g", 1e9) > 1e9  # a sort that needs the disk may be no row's fault
        db.run("UPDATE disk SET is_full = false")
        assert (await source.poll(lease_of("1"))).kind == "content"

    context = SourceContext(clock=SetClock())
    use_source(source_of(schema_url, context, query="SELECT 1 AS id, disk_space() AS space"), run)


def test_a_server_that_restarts_between_polls_is_found_again(own_postgres: PostgresServer) -> None:
    async def run(source: SqlSource) -> None:
        assert (await source.poll(lease_of("1"))).kind == "content"
        own_postgres.stop()
        down = await source.poll(lease_of("1"))
        assert (down.kind, down.problem[:13]) == ("failed", "no connection")
        now_s = 1e9
        assert now_s < source.ready_s("g", now_s) <= now_s + 2
        own_postgres.start()
        assert (await source.poll(lease_of("1"))).kind == "content"
        own_postgres.stop("immediate")
        own_postgres.start()
        # an old connection that proves dead is no failure of the item
        assert (await source.poll(lease_of("1"))).kind == "content"

    use_source(source_of(own_postgres.url(), SourceContext(clock=SetClock()), query="SELECT 1 AS id"), run)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "http://x"}, "url: no database: write sqlite:PATH"),
        ({"query": "DROP TABLE book"}, "is not a SELECT"),
        ({"url": "env:NOWHERE"}, "the environment has no variable NOWHERE"),
        ({"ignore_columns": ["id"]}, "ignore_columns: 'id' is the key or the cursor"),
        ({"bulk": 0}, "bulk"),
        ({"kye": "id"}, "did you mean 'key'?"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        source_of("sqlite:x.db", **changes)
    assert words in str(caught.value)


def test_the_address_may_be_a_secret(db: Database) -> None:
    context = SourceContext(resolver={"BOOKS": db.url}.get)
    source = source_of("env:BOOKS", context)
    assert poll_rows(source, lease_of("1"))[0].kind == "content"
    assert db.url not in repr(settings_of(db.url))


def test_weight_and_rate_of_new_rows_come_from_columns(db: Database, tmp_path: Path) -> None:
    """They apply when the row is listed first; a price that is NULL gives none."""
    own: dict[str, Any] = {
        "weight": "price * 2",
        "rate": "version / 4 / d",
        "query": "SELECT *, 'a%' AS x FROM book",
    }
    listing = use_source(source_of(db.url, **own), read_listing)
    weights = {entry.key: entry.weight for entry in listing.entries}
    rates = {entry.key: entry.prior_rate_per_s for entry in listing.entries}
    assert weights == {"1": 19.0, "2": None, "3": 14.0}
    assert rates["2"] == pytest.approx(0.5 / 86400.0)
    text = f'[[source]]\nname = "books"\nkind = "sql"\nurl = "{db.url}"\nquery = "SELECT * FROM book"\n'
    text += 'key = "id"\nweight = "price * 2"\n'
    with make_engine(parse_settings(text), tmp_path, seed=1) as engine:
        engine.run(once=True)
        items = {item.key: item.weight for item in engine.store.items.page(ItemQuery(), 9).items}
    assert items == {"1": 19.0, "2": 1.0, "3": 14.0}


def test_expressions_name_columns_of_the_query(db: Database) -> None:
    listing = use_source(source_of(db.url, weight="cost"), read_listing)
    assert "weight, rate: the query has no column 'cost'" in listing.problem
    with pytest.raises(UsageError, match="is no rate"):
        settings_of(db.url, rate="price")
