"""``afresh store copy``: a project moved to PostgreSQL and back."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.stores.backends import copy_of, new_items, poll, schema_url

from afresh.stores.opening import open_store
from afresh.stores.sqlite.errors import translate_error


def test_a_store_moves_to_postgresql_and_back(
    afresh: Afresh, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store("sqlite:here.db", base=tmp_path) as store:
        store.items.add(new_items(5), 0.0)
        poll(store, "k0", 1.0, new_copy=copy_of(b"kept"))
    url = schema_url(postgres_url, tmp_path)
    monkeypatch.setenv("THERE", url)
    ran = afresh("store", "copy", "here.db", "env:THERE", "--json")
    rows = json.loads(ran.out)["rows"]
    assert (ran.code, ran.err) == (0, f"{rows} rows copied\n")
    assert rows > 5
    assert afresh("store", "copy", url, "back.db").code == 0
    with open_store("back.db", base=tmp_path, create=False) as store:
        copy = store.copies.get(1)
        assert copy is not None
        assert copy.content == b"kept"
    again = afresh("store", "copy", "here.db", url)
    assert again.code == 1
    assert "is not empty" in again.err


def test_what_is_missing_is_said(afresh: Afresh, tmp_path: Path) -> None:
    for given, words in (
        (("copy",), "'store copy FROM TO' two stores"),
        (("copy", "here.db"), "'store copy FROM TO' two stores"),
        (("copy", "nowhere.db", "there.db"), "there is no store"),
        (("copy", "env:NO_SUCH_VARIABLE", "there.db"), "no such variable"),
        (("copy", "memory:", "there.db"), "in memory cannot be copied"),
        (("backup",), "needs a file"),
        (("vacuum", "x"), "others nothing"),
    ):
        ran = afresh("store", *given)
        assert ran.code in (1, 2)
        assert words in ran.err
    assert not (tmp_path / "there.db").exists()


def test_a_backup_goes_over_nothing(mirror: Afresh, tmp_path: Path) -> None:
    (tmp_path / "dear.db").write_text("dear")
    ran = mirror("store", "backup", "dear.db")
    assert (ran.code, "dear.db is there already" in ran.err) == (2, True)
    assert (tmp_path / "dear.db").read_text() == "dear"
    assert mirror("store", "backup", "new.db").code == 0


def test_a_locked_store_says_what_helps(mirror: Afresh, tmp_path: Path) -> None:
    words = str(translate_error(_locked(tmp_path / "afresh.db"), tmp_path / "afresh.db"))
    assert words.endswith("is locked by another process: try again when that one is done")
    assert mirror("status").code == 0


def _locked(path: Path) -> sqlite3.Error:
    with closing(sqlite3.connect(path, timeout=0)) as one, closing(sqlite3.connect(path, timeout=0)) as two:
        one.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as found:
            two.execute("BEGIN IMMEDIATE")
    return found.value
