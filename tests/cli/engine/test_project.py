"""A project that may not be written, such as one on a read-only disk: questions are answered as ever."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK
from tests.nobody import as_nobody
from tests.servers.site import Site

from afresh.stores.sqlite.database import SqliteDatabase
from afresh.values.errors import StoreReadOnlyError

KEY = "https://h.test/a"
QUESTIONS = [
    ("status", "--json"),
    ("why", KEY, "--json"),
    ("get", KEY),
    ("due",),
    ("run", "--dry-run"),
    ("export",),
    ("config", "check"),
    ("store", "check"),
    ("store", "sizes", "--json"),
]
DEEDS = [
    ("add", "https://h.test/b"),
    ("set", KEY, "--pause"),
    ("remove", KEY),
    ("run", "--for", "1s"),
    ("due", "--lease", "1m"),
    ("get", KEY, "--max-age", "0s"),
    ("observe", "seen.jsonl"),
    ("store", "vacuum"),
]


def told(text: str) -> str:
    """What was said, without the numbers that time moves."""
    return re.sub(r"[0-9.]+(e-?[0-9]+)?", "0", text)


@pytest.mark.parametrize("file_mode", [0o666, 0o444])
def test_questions_are_answered_and_deeds_refused(
    afresh: Afresh, open_folder: Path, monkeypatch: pytest.MonkeyPatch, file_mode: int
) -> None:
    monkeypatch.chdir(open_folder)
    afresh("init")
    afresh("add", KEY)
    (open_folder / "seen.jsonl").write_text(f'{{"item": "{KEY}", "content": "hello"}}')
    assert afresh("observe", "seen.jsonl").code == 0
    afresh("set", KEY, "--min-interval", "1d")  # so that nothing becomes due meanwhile
    afresh("run", "--for", "0s")
    for path in open_folder.iterdir():
        path.chmod(file_mode)
    asked = {question: afresh(*question) for question in QUESTIONS}
    assert {ran.code for ran in asked.values()} == {0}
    open_folder.chmod(0o555)
    with as_nobody():
        for question, before in asked.items():
            ran = afresh(*question)
            assert (ran.code, told(ran.out)) == (0, told(before.out)), (question, ran.err)
        for deed in DEEDS:
            ran = afresh(*deed)
            assert ran.code == 1, deed
            assert "may be read but not written" in ran.err, deed


def test_a_store_that_may_only_be_read_answers_questions(
    mirror: Afresh, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"{site.url}/a"
    mirror("add", key)
    mirror("run", "--once", *QUICK)
    whole = SqliteDatabase.__init__

    def refused(database: SqliteDatabase, path: Path, *, read_only: bool = False, **given: Any) -> None:
        if not read_only:  # root may write everything: rights would not do
            raise StoreReadOnlyError(f"{path} may be read but not written")
        whole(database, path, read_only=read_only, **given)

    monkeypatch.setattr(SqliteDatabase, "__init__", refused)
    assert mirror("get", key).out == "a"
    assert json.loads(mirror("status", "--json").out)["copies"] == 1
    assert "1 item" in mirror("status").out
    assert mirror("why", key).code == mirror("export").code == mirror("due").code == 0
    ran = mirror("set", key, "--pause")
    assert (ran.code, "may be read but not written" in ran.err) == (1, True)
