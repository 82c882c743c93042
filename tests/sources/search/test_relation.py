"""The local relation: files and tables give the same, and bad ones are refused."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.servers.postgres import PostgresServer
from tests.sources.searching import World, make_world, search_table

from afresh.sources.context import SourceContext
from afresh.sources.record_expression import RecordExpression
from afresh.sources.search.relation import read_relation
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.errors import InputError


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, count=200, own=20)


BAD_RELATIONS: dict[str, tuple[str | None, str]] = {
    "missing": (None, "does not exist"),
    "no key": ("uid,title,authors\n1,a,b\n", r"has no column id"),
    "empty key": (
        "id,title,authors\n1,a,b\n,c,d\n",
        r"row 2 .*column id: is empty: every record needs a key",
    ),
    "twice": ("id,title,authors\n1,a,b\n1,c,d\n", r"row 2, column id: '1' occurs twice, first in row 1"),
    "no words": ("id,title,authors\n1,,\n2,the,\n", r"no record has a keyword in authors, title"),
    "too long": (f"id,title,authors\n1,{'x' * 10_000_000},b\n", r"column title: holds 10,000,000 characters"),
    "not text": ("\x00\x01\x02", r"is not UTF-8"),
}


@pytest.mark.parametrize("bad", BAD_RELATIONS)
def test_a_bad_relation_is_refused_with_a_reason(bad: str, world: World) -> None:
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
    weight = RecordExpression.parse("weight", "w")
    found = [
        read_relation(place, "id", settings.attributes, weight, scoped=True, resolver={"WHERE": url}.get)
        for place in (*places, f"{url}#r", "env:WHERE#public.r")
    ]
    for one in found:
        assert one.keys == world.keys
        assert one.index.keywords == found[0].index.keywords
        np.testing.assert_array_equal(one.weights, found[0].weights)
