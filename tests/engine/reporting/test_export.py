"""Copies written out: every address has a file of its own, and nothing is half written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slow_cases import with_slow_cases

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting.export import write_folder, write_jsonl
from afresh.engine.settings.parsing import parse_settings
from afresh.values.errors import AfreshError

ODD = [
    "https://h.test/",
    "https://h.test/a",
    "https://h.test/a/",
    "https://h.test/A",
    "https://h.test/a?b=c&d=/../e#",
    "https://h.test/../../etc/passwd",
    "https://h.test/%2e%2e/%00",
    "https://h.test/ä/日本/🦀",
    "https://h.test/" + "x" * 1500 + "1",
    "https://h.test/" + "x" * 1500 + "2",
    "https://h.test/con:aux|<>*\"'",
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with make_engine(parse_settings(""), tmp_path) as made:
        made.add(ODD)
        made.observe(Reported(key, 1e9, content=f"copy of {key}".encode()) for key in ODD)
        yield made


def test_odd_addresses_have_a_file_each_inside_the_folder(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert write_folder(engine.store, folder) == len(ODD)
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    assert [row["item"] for row in rows] == ODD
    for row in rows:
        assert (folder / row["file"]).read_text() == f"copy of {row['item']}"
    names = [row["file"] for row in rows]
    assert len({name.lower() for name in names}) == len(ODD)
    assert {path.name.lower() for path in folder.iterdir()} == {"index.jsonl", *map(str.lower, names)}
    assert max(map(len, names)) < 200


def test_an_export_that_fails_leaves_the_one_before(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(engine.store, folder)
    before = (folder / "index.jsonl").read_bytes()
    first = json.loads(before.splitlines()[0])["file"]
    (folder / first).unlink()
    (folder / first).mkdir()
    with pytest.raises(AfreshError, match=f"{first} cannot be written"):
        write_folder(engine.store, folder)
    assert (folder / "index.jsonl").read_bytes() == before
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("command", with_slow_cases(["export", f"get {ODD[0]}"], kept=1))
def test_the_reader_of_a_pipe_may_go(engine: Engine, tmp_path: Path, command: str) -> None:
    engine.observe([Reported(ODD[0], 1e9 + 1, content=b"x" * 1_000_000)])
    (tmp_path / "afresh.toml").touch()
    code = "import sys; from afresh.cli.app import main; main()"
    line = f"'{sys.executable}' -c '{code}' {command} | head -c 10"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, capture_output=True, check=True
    )
    assert (len(ran.stdout), ran.stderr) == (10, b"")


def test_lines_are_utf8_whatever_the_locale(engine: Engine, tmp_path: Path) -> None:
    with (tmp_path / "copies.jsonl").open("wb") as out:
        assert write_jsonl(engine.store, out) == len(ODD)
    rows = [json.loads(line) for line in (tmp_path / "copies.jsonl").read_bytes().decode().splitlines()]
    assert [row["content"] for row in rows] == [f"copy of {key}" for key in ODD]
