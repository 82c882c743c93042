"""Keys that are too long are refused in words wherever they come from; stored ones do no harm."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite
from tests.servers.site import page
from tests.servers.threaded import sitemap

from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.logs import LOGGER
from afresh.engine.settings.parsing import parse_settings
from afresh.values import items
from afresh.values.errors import InputError
from afresh.values.items import LONGEST_KEY

LONG = "k" * (LONGEST_KEY + 1)
FUNCTION = f"[[source]]\nname = 'records'\nkind = 'python'\ncall = '{__name__}:record'"


def record(key: str) -> str:
    return f"record {key[:10]}"


def keys(engine: Engine) -> list[str]:
    return [item.key for item in engine.store.items.by_id(list(range(1, 10)))]


def test_a_long_key_is_not_added(tmp_path: Path) -> None:
    with VirtualSite().engine(tmp_path, settings=parse_settings(FUNCTION)) as engine:
        with pytest.raises(
            InputError, match="has 8,001 characters: 8,000 at most; it begins with 'kkk"
        ) as caught:
            engine.add([LONG])
        assert len(str(caught.value)) < 300
        with pytest.raises(InputError, match="there is no item 'kkk") as caught:
            engine.observe([Reported(LONG, 1.0, changed=True)])
        assert len(str(caught.value)) < 300
        assert engine.add([LONG[1:]]) == 1


def test_a_row_with_a_long_key_is_left_out_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE goods (name TEXT, price INTEGER)")
        database.executemany("INSERT INTO goods VALUES (?, 1)", [("apple",), (LONG,), ("pear",)])
    query = "query = 'SELECT name, price FROM goods'\nkey = 'name'"
    source = f"[[source]]\nname = 'shop'\nkind = 'sql'\nurl = 'sqlite:{tmp_path}/shop.db'\n{query}"
    LOGGER.addHandler(caplog.handler)
    try:
        with VirtualSite().engine(tmp_path, settings=parse_settings(source)) as engine:
            engine.run(once=True)
            assert sorted(keys(engine)) == ["apple", "pear"]
    finally:
        LOGGER.removeHandler(caplog.handler)
    problems = [getattr(line, "fields", {}).get("problem") for line in caplog.records]
    words = "1 entry refused, the first because an item's key has 8,001 characters: 8,000 at most"
    assert any(str(problem).startswith(words) for problem in problems)


def test_a_sitemap_with_a_long_address_is_read_without_it(tmp_path: Path) -> None:
    with VirtualSite([0.0]) as site, site.engine(tmp_path) as engine:
        site.routes["/map.xml"] = page(sitemap(site.root, "a", LONG), Content_Type="application/xml")
        assert engine.add_listings(sitemaps=[f"{site.root}/map.xml"]) == 1
        assert keys(engine) == [f"{site.root}/a"]


def test_stored_long_keys_are_polled_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = [f"{'a-/' * 30_000}{number}" for number in range(4)]
    with VirtualSite().engine(tmp_path, settings=parse_settings(FUNCTION)) as engine:
        with monkeypatch.context() as older:
            older.setattr(items, "LONGEST_KEY", 10**9)
            assert engine.add(stored) == 4
        assert engine.run(once=True).polls == 4
        assert engine.status().items == 4
