"""``afresh store copy``: a project moved to PostgreSQL and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.stores.backends import copy_of, new_items, poll, schema_url

from afresh.stores.opening import open_store


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
