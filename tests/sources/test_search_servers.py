"""Every kind of search server answers alike; bad relations and bad settings are refused in words."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.servers.postgres import PostgresServer
from tests.servers.search_site import SearchSite
from tests.sources.polling import SetClock, lease_of
from tests.sources.searching import World, make_world, search_table, with_source, write_relation

from afresh.probes.keyword_index import Keyword
from afresh.sources.context import SourceContext
from afresh.sources.search.factory import make_server
from afresh.sources.search.relation import read_relation
from afresh.sources.search.search_server import SearchResults, SearchServer
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.errors import InputError, UsageError

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


def asked(table: dict[str, Any], work: Callable[[SearchServer], Any]) -> SearchResults:
    """What the server of a source answers."""
    settings = read_settings(SearchSettings, table)
    relation = read_relation(settings.relation, settings.key, settings.attributes, "", scoped=settings.scoped)

    async def run() -> SearchResults:
        server = make_server(settings, SourceContext(), relation)
        try:
            found: SearchResults = await work(server)
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
        found = [asked(table, methodcaller("page", words, at)) for at in range(1, pages + 2)]
        assert all(not one.problem and one.requests == 1 for one in found)
        assert {one.total for one in found} == {len(expected)}
        keys = [record.key for one in found for record in one.records]
        assert len(keys) == len(expected)
        assert set(keys) == expected
        assert not found[-1].records
        key = world.keys[3]
        alone = asked(table, lambda server: server.look_up(key))
        assert [record.key for record in alone.records] == [key]
        none = asked(table, lambda server: server.look_up("p99999"))
        assert not none.records
        assert not none.problem
        if kind != "http":
            assert str(alone.records[0].fields["cites"]) == key[1:]


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "file"])
def test_a_source_covers_its_relation_on_every_server(
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
def test_a_wrong_server_is_said(
    kind: str, change: dict[str, Any], words: str, world: World, request: pytest.FixtureRequest
) -> None:
    with table_of(kind, world, request) as table:
        found = asked(table | change, lambda server: server.page([Keyword("title", "word1")], 1))
    assert words in found.problem
    assert not found.records


BAD_RELATIONS: dict[str, tuple[str | None, str]] = {
    "missing": (None, "does not exist"),
    "no key": ("uid,title,authors\n1,a,b\n", r"has no column id"),
    "empty key": (
        "id,title,authors\n1,a,b\n,c,d\n",
        r"row 2 .*column id: is empty: every record needs a key",
    ),
    "twice": ("id,title,authors\n1,a,b\n1,c,d\n", r"row 2, column id: '1' stands twice, first in row 1"),
    "no words": ("id,title,authors\n1,,\n2,the,\n", r"no record has a keyword in authors, title"),
    "too long": (f"id,title,authors\n1,{'x' * 10_000_000},b\n", r"column title: holds 10,000,000 characters"),
    "not text": ("\x00\x01\x02", r"cannot be read|has no column"),
}


@pytest.mark.parametrize("bad", BAD_RELATIONS)
def test_a_bad_relation_is_refused_in_words(bad: str, world: World) -> None:
    text, words = BAD_RELATIONS[bad]
    world.relation.unlink()
    if text is not None:
        world.relation.write_text(text)
    settings = read_settings(SearchSettings, search_table(world, None, server="all.csv"))
    with pytest.raises(InputError, match=words):
        SearchSource(settings, SourceContext())


def test_files_and_tables_give_one_relation(world: World, request: pytest.FixtureRequest) -> None:
    rows = [(*row, float(at)) for at, row in enumerate(world.papers.rows(world.own))]
    columns = dict(zip(("id", "title", "authors", "w"), zip(*rows, strict=True), strict=True))
    folder = world.relation.parent
    with world.relation.open("w", newline="") as file:
        csv.writer(file).writerows([tuple(columns), *rows])
    pq.write_table(pa.table({name: list(column) for name, column in columns.items()}), folder / "r.parquet")
    records = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    (folder / "r.jsonl").write_text("\n".join(records) + "\n")
    with closing(sqlite3.connect(folder / "r.db")) as database, database:
        database.execute("CREATE TABLE r (id, title, authors, w)")
        database.executemany("INSERT INTO r VALUES (?, ?, ?, ?)", rows)
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.url(request.getfixturevalue("database"))
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE r (id text, title text, authors text, w float)")
        cursor.executemany("INSERT INTO r VALUES (%s, %s, %s, %s)", rows)
    settings = read_settings(SearchSettings, search_table(world, None, server="all.csv"))
    places = [str(world.relation), *(str(folder / f"r.{ending}") for ending in ("parquet", "jsonl", "db#r"))]
    found = [
        read_relation(place, "id", settings.attributes, "w", scoped=True, resolver={"WHERE": url}.get)
        for place in (*places, f"{url}#r", "env:WHERE#public.r")
    ]
    for one in found:
        assert one.keys == world.keys
        assert one.index.keywords == found[0].index.keywords
        np.testing.assert_array_equal(one.weights, found[0].weights)


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


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "no query": ({"server": "https://a.test/?page={page}"}, r"server: needs \{query\}"),
    "odd part": ({"server": "https://a.test/?q={query}&p={pg}"}, r"server: \{pg\} is not known"),
    "brace": ({"server": "https://a.test/?q={query"}, "a brace stands alone"),
    "no key part": ({"look_up": "https://a.test/x"}, r"look_up: needs \{key\}"),
    "path": ({"rows": "data["}, "'data\\[' is not a JSON path"),
    "no table": ({"server": "sqlite:a.db"}, "table: name the server's table"),
    "twice": ({"keywords": ["title", "title:;"]}, "keywords: each column once"),
    "odd path": ({"paths": {"price": "p"}}, "'price' is none of the fields"),
    "unknown": ({"pagesize": 5}, "did you mean 'page_size'"),
}


@pytest.mark.parametrize("bad", BAD_SETTINGS)
def test_bad_settings_are_refused_in_words(bad: str, world: World) -> None:
    change, words = BAD_SETTINGS[bad]
    good = search_table(world, None, server="https://a.test/?q={query}&page={page}")
    read_settings(SearchSettings, good)
    with pytest.raises(UsageError, match=words):
        read_settings(SearchSettings, good | change)


def test_an_unknown_dissimilarity_is_refused(world: World) -> None:
    table = search_table(world, None, server="all.csv", fields={"cites": "absolut"})
    with pytest.raises(UsageError, match="did you mean 'absolute'"):
        SearchSource(read_settings(SearchSettings, table), SourceContext())
