"""Every kind of search server answers alike."""

from __future__ import annotations

import asyncio
import csv
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import PostgresServer
from tests.servers.search_site import SearchSite
from tests.sources.polling import SetClock, lease_of
from tests.sources.searching import World, make_world, search_table, with_source, write_relation

from afresh.probes.keyword_index import Keyword
from afresh.sources.context import SourceContext
from afresh.sources.search.relation import read_relation
from afresh.sources.search.search_server import SearchServer, make_server
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.sources.web_api.records_answer import RecordsAnswer

KINDS = ("http", "sqlite", "postgres", "file")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, count=200, own=20)


@contextmanager
def table_of(kind: str, world: World, request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The settings of a source on a server of this kind that holds all papers."""
    rows = [(*row, paper) for paper, row in enumerate(world.papers.rows(range(len(world.papers))))]
    folder = world.relation.parent
    if kind == "http":
        with SearchSite(world.papers, lambda: 0.0) as site:
            yield search_table(world, site, fields={}, paths={})
    elif kind == "sqlite":
        database = sqlite3.connect(folder / "server.db")
        with database:
            database.execute(
                "CREATE VIRTUAL TABLE p USING fts5(id UNINDEXED, title, authors, cites UNINDEXED)"
            )
            database.executemany("INSERT INTO p VALUES (?, ?, ?, ?)", rows)
        database.close()
        yield search_table(world, None, server=f"sqlite:{folder / 'server.db'}", table="p")
    elif kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.url(request.getfixturevalue("database"))
        with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE p (id text, title text, authors text, cites integer)")
            cursor.executemany("INSERT INTO p VALUES (%s, %s, %s, %s)", rows)
        yield search_table(world, None, server=url, table="public.p")
    else:
        with (folder / "server.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("id", "title", "authors", "cites"), *rows])
        yield search_table(world, None, server=str(folder / "server.csv"))


def ask_server(table: dict[str, Any], work: Callable[[SearchServer], Any]) -> RecordsAnswer:
    """What the server of a source answers."""
    settings = read_settings(SearchSettings, table)
    relation = read_relation(settings.relation, settings.key, settings.attributes, scoped=settings.scoped)

    async def run() -> RecordsAnswer:
        server = make_server(settings, SourceContext(), relation)
        try:
            found: RecordsAnswer = await work(server)
            return found
        finally:
            await server.close()

    return asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
def test_pages_totals_and_look_ups(kind: str, world: World, request: pytest.FixtureRequest) -> None:
    name = world.papers.authors[world.own[0]].split(";")[0].lower()
    expected = {
        f"p{paper}"
        for paper in range(len(world.papers))
        if name in world.papers.authors[paper].lower().split(";")
    }
    assert len(expected) > 10
    words = [Keyword("authors", name)]
    with table_of(kind, world, request) as table:
        pages = -(-len(expected) // 10)
        found = [ask_server(table, methodcaller("page", words, at)) for at in range(1, pages + 2)]
        assert all(not one.problem and one.requests == 1 for one in found)
        assert {one.total for one in found} == {len(expected)}
        keys = [record.key for one in found for record in one.records]
        assert len(keys) == len(expected)
        assert set(keys) == expected
        assert not found[-1].records
        key = world.keys[3]
        alone = ask_server(table, lambda server: server.look_up([key]))
        assert [record.key for record in alone.records] == [key]
        none = ask_server(table, lambda server: server.look_up(["p99999"]))
        assert not none.records
        assert not none.problem
        if kind != "http":
            assert str(alone.records[0].fields["cites"]) == key[1:]


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "file"])
def test_a_source_refreshes_its_whole_relation_on_every_server(
    kind: str, world: World, request: pytest.FixtureRequest
) -> None:
    clock = SetClock(0.0)

    async def cover(source: SearchSource, desk: Any) -> int:
        asks = 0
        while len(desk.fetched) < len(world.own):
            await desk.ask(source)
            asks += 1
            assert asks < len(world.own)
        return asks

    with table_of(kind, world, request) as table:
        with_source(world, None, clock, cover, **table)


def test_a_file_is_asked_for_the_keywords_of_a_relation_that_was_written(
    world: World, request: pytest.FixtureRequest
) -> None:
    async def rewrite(source: SearchSource, desk: Any) -> None:
        await desk.ask(source)
        other = [paper for paper in range(len(world.papers)) if paper not in world.own][:40]
        write_relation(world, other)
        assert [listing.problem async for listing in source.listings()] == [""]
        desk.leases = {f"p{paper}": lease_of(f"p{paper}", source="papers") for paper in other}
        for _ in range(40):
            await desk.ask(source)
        assert {f"p{paper}" for paper in other} <= set(desk.fetched)

    with table_of("file", world, request) as table:
        with_source(world, None, SetClock(0.0), rewrite, **table)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("sqlite", {"table": "q"}, "no such table: q"),
        ("postgres", {"table": "q"}, "there is no such table or view"),
        ("sqlite", {"server": "sqlite:/nowhere/at/all.db"}, "unable to open database file"),
        ("file", {"server": "nowhere.csv"}, "nowhere.csv: does not exist"),
        ("file", {"fields": {"price": "absolute"}}, "has no column price"),
    ],
)
def test_a_wrong_server_is_reported(
    kind: str, change: dict[str, Any], words: str, world: World, request: pytest.FixtureRequest
) -> None:
    with table_of(kind, world, request) as table:
        found = ask_server(table | change, lambda server: server.page([Keyword("title", "word1")], 1))
    assert words in found.problem
    assert not found.records


def test_a_table_of_postgres_is_read_again_and_its_address_is_never_shown(
    world: World, request: pytest.FixtureRequest
) -> None:
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.url(request.getfixturevalue("database"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE r (id text, title text, authors text)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO r VALUES (%s, %s, %s)", world.papers.rows(world.own))

        async def rewrite(source: SearchSource, _: Any) -> None:
            before = source.keys()
            listings = [listing async for listing in source.listings()]
            assert source.keys() is before  # nothing is made anew where nothing is new
            connection.execute("DELETE FROM r WHERE id = %s", (world.keys[0],))
            listings += [listing async for listing in source.listings()]
            assert {entry.key for entry in listings[1].entries} == set(world.keys[1:])
            connection.execute("ALTER TABLE r RENAME TO s")
            listings += [listing async for listing in source.listings()]
            assert not listings[2].entries  # so that status says it
            assert set(source.keys()) == set(world.keys[1:])
            assert "table r: there is no such table; the records read before are kept" in listings[2].problem
            assert url not in repr(listings)
            settings = read_settings(SearchSettings, search_table(world, None, **changes))
            assert url not in repr(settings)

        with table_of("file", world, request) as table:
            changes = table | {"relation": f"{url}#r"}
            with_source(world, None, SetClock(0.0), rewrite, **changes)
