"""The schema: its history replayed, older stores upgraded, newer and foreign ones refused, SQL all in use."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.stores.backends import new_items
from tests.stores.sqlite.write_schema import PACKAGE, schema_of

from afresh.stores.sql.dialect import load_migrations, load_statements
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.migrations import APPLICATION_ID
from afresh.stores.sqlite.store import SqliteStore
from afresh.values.errors import StoreCorruptError, StoreError, StoreReadOnlyError, StoreVersionError
from afresh.values.items import ItemQuery, NewItem
from afresh.values.stored import Notice
from afresh.values.zstd_frames import zstd

DATA = Path(__file__).parents[2] / "data"

MIGRATIONS = load_migrations("afresh.stores.sqlite")
EXAMPLE = {
    "column": "state.due_s",
    "id": "state.item_id",
    "direction": "ASC",
    "first": "state INDEXED BY by_due",
    "second": "item",
    "index": "of_group",
    "matches": "state.group_id = :group",
    "after": "TRUE",
    "before": "TRUE",
}


def test_replayed_migrations_are_the_schema(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store.db").close()
    message = "write the schema anew with make schema"
    assert schema_of(tmp_path / "store.db") == (PACKAGE / "schema.sql").read_text(), message


def test_migrations_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (PACKAGE / "migrations").iterdir())
    assert [name[:5] for name in names] == [f"{number:04d}_" for number in range(1, len(names) + 1)]


def test_an_older_store_is_upgraded_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.items.add(new_items(3), 0.0)
    newer = (
        *MIGRATIONS,
        "ALTER TABLE item ADD COLUMN colour TEXT;\nUPDATE item SET colour = 'red';",
    )
    database = SqliteDatabase(path, migrations=newer)
    assert database.fetch("SELECT count(*) FROM item WHERE colour = 'red'") == [(3,)]
    database.close()
    # The upgrade happened once; whoever opens it next finds it done.
    SqliteDatabase(path, migrations=newer).close()
    known = len(MIGRATIONS)
    with pytest.raises(StoreVersionError, match=rf"newer afresh \(schema {known + 1}, known up to {known}\)"):
        SqliteStore(path)


def test_a_store_of_the_first_version_is_upgraded_with_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    database = SqliteDatabase(path, migrations=MIGRATIONS[:1])
    with database.transaction() as connection:
        connection.execute("INSERT INTO name (id, text) VALUES (1, 'web')")
        connection.execute("INSERT INTO item (id, key, added_s) VALUES (7, 'k', 5.0)")
        connection.execute(
            "INSERT INTO state (item_id, source_id, group_id, status, weight, cost, min_interval_s,"
            " max_interval_s, due_s) VALUES (7, 1, 1, 0, 1.0, 1.0, 0.0, 9e999, 6.0)"
        )
        connection.execute("INSERT INTO item (id, key, added_s) VALUES (8, 'é', 5.0)")
        connection.execute(
            "INSERT INTO state (item_id, source_id, group_id, status, weight, cost, min_interval_s,"
            " max_interval_s, due_s) VALUES (8, 1, 1, 0, 1.0, 1.0, 0.0, 9e999, 6.0)"
        )
        listed = (
            "engine.listed:web:https://h/sitemap.xml",
            json.dumps({"é": ""}, ensure_ascii=False).encode(),
        )
        connection.execute("INSERT INTO value (name, data) VALUES (?, ?)", listed)
        connection.execute("INSERT INTO value (name, data) VALUES ('engine.listed_at:web', x'ff')")
        connection.execute("INSERT INTO tally VALUES (1, 1, 0, 2)")
        connection.execute("INSERT INTO notice (item_id, number, time_s, count) VALUES (7, 3, 5.5, 2)")
    database.close()
    with SqliteStore(path) as store:
        item = store.items.get("k")
        assert item is not None
        assert (item.id, item.selector, item.due_s) == (7, "", 6.0)
        assert store.notices.open() == [Notice(3, 7, 5.5, 2, "")]
        assert store.upkeep.check() == []
        assert {lease.key: lease.listed for lease in store.leases.take([7, 8], 10.0, 1.0)} == {
            "k": False,
            "é": True,
        }


BEFORE_SOURCES = MIGRATIONS[:11]  # keys alone were unique


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The store of 0.1.0, upgraded until just before keys belonged to sources. Items were removed from it."""
    path = tmp_path / "store.db"
    path.write_bytes(zstd.decompress((DATA / "store-0.1.0.db.zst").read_bytes()))
    SqliteDatabase(path, migrations=BEFORE_SOURCES).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sqlite_sequence SET seq = 1000 WHERE name = 'item'")
        connection.commit()
    return path


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables of the older store, of the columns and counters that it had."""
    new, counters = ("change", "consumer", "content_text", "page_links"), ("lease", "notice")
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        columns = {"item": "id, key, labels, added_s, selector, listed"}
        columns["version"] = "item_id, number, content_id, time_s, media_type_id, normal_hash"
        questions = {name: f"SELECT {columns.get(name, '*')} FROM {name}" for (name,) in names}
        rows = {name: sorted(connection.execute(text), key=repr) for name, text in questions.items()}
    rows["counter"] = [row for row in rows["counter"] if row[0] in counters]
    return {name: found for name, found in rows.items() if name not in new}


def test_items_get_their_source_and_keep_everything_else(older: Path) -> None:
    before = rows_of(older)
    assert len(before["item"]) == 49
    assert all(before[name] for name in ("state", "version", "observation_run", "audit", "ledger"))
    with SqliteStore(older) as store:
        assert store.upkeep.check() == []
        found = {item.id: (item.source, item.key) for item in store.items.page(ItemQuery(), 100).items}
    assert rows_of(older) == before
    assert found == {row[0]: ("web", row[1]) for row in before["item"]}
    key = found[1][1]
    with SqliteStore(older) as store:
        assert store.items.add([NewItem(key, "web", "h"), NewItem(key, "other", "h")], 0.0) == 1
        assert store.items.find([key]) == [(1, "web", key), (1001, "other", key)]  # no id is given twice
        store.items.remove([1], 0.0)
        assert store.copies.versions(1) == []  # what belongs to an item is removed with it, as before
        assert store.upkeep.check() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from afresh.stores.sqlite import migrations
from afresh.stores.sqlite.store import SqliteStore

split = migrations.split_statements
def split_and_die(script):
    for statement in split(script):
        if statement.startswith(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield statement
migrations.split_statements = split_and_die
SqliteStore(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("statement", ["DROP TABLE item", "CREATE VIEW full_item AS"])
def test_an_upgrade_that_is_killed_changes_nothing_and_is_done_later(older: Path, statement: str) -> None:
    before, schema = rows_of(older), schema_of(older)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(older), statement], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert rows_of(older) == before
    assert schema_of(older) == schema
    with SqliteStore(older) as store:
        assert store.upkeep.check() == []
    assert rows_of(older) == before


def test_an_upgrade_that_fails_leaves_the_old_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    broken = (
        *MIGRATIONS,
        "CREATE TABLE more (a);\nINSERT INTO nowhere VALUES (1);",
    )
    with pytest.raises(StoreError, match="nowhere"):
        SqliteDatabase(path, migrations=broken)
    assert "more" not in schema_of(path)
    SqliteStore(path).close()


def test_a_store_opened_for_reading_is_not_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    with pytest.raises(StoreReadOnlyError, match="needs an upgrade"):
        SqliteDatabase(
            path,
            read_only=True,
            migrations=(*MIGRATIONS, "CREATE TABLE more (a);"),
        )


def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreCorruptError, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_our_files_carry_our_mark(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store.db").close()
    assert (tmp_path / "store.db").read_bytes()[68:72] == APPLICATION_ID.to_bytes(4) == b"afre"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.sql")), ids=lambda path: path.name)
def test_every_block_of_sql_is_used_and_is_sql(path: Path, tmp_path: Path) -> None:
    if path.name == "schema.sql":
        assert path.read_text().startswith("CREATE TABLE")
        return
    shared = [home.read_text() for home in (PACKAGE.parent / "sql").glob("*.py")]
    own = [home.read_text() for home in PACKAGE.glob("*.py")]
    code = "".join([*own, *(text for text in shared if f'"{path.stem}"' in text)])
    blocks = load_statements("afresh.stores.sqlite", path.stem)
    used = set(re.findall(r'"(\w+)"', code))
    assert set(blocks) <= used
    database = SqliteDatabase(tmp_path / "store.db")
    with database.transaction() as connection:
        for block in blocks.values():
            text = block.format(**EXAMPLE) if "{" in block else block
            if text.startswith("("):  # not a statement but what one reads from
                text = f"SELECT * FROM {text}"
            names = dict.fromkeys(re.findall(r":(\w+)", text)) or [None] * 20
            values = names if isinstance(names, dict) else names[: parameters_of(text)]
            connection.execute(f"EXPLAIN {text}", values)
    database.close()


def parameters_of(text: str) -> int:
    """How many unnamed parameters a statement has."""
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    return max(numbered, default=text.count("?"))
