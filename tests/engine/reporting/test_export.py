"""Copies written out: every address has a file of its own, and nothing is half written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.slow_cases import with_slow_cases

from afresh.cli.planning.poll_log import read_polls
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting.export import write_folder, write_jsonl, write_polls
from afresh.engine.settings.parsing import parse_settings
from afresh.tables.input_file import InputFile
from afresh.values.errors import AfreshError
from afresh.values.stored import ObservationColumns

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


def test_polls_are_written_as_estimate_reads_them(engine: Engine, tmp_path: Path) -> None:
    keys = [engine.store.items.ids([key])[key] for key in ODD[:2]]
    engine.store.observations.add(
        ObservationColumns(
            item_id=np.array([keys[0], keys[0], keys[1]]),
            time_s=np.array([1e9 + 60, 1e9 + 100, 1e9 + 50]),
            elapsed_s=np.array([60.0, 40.0, 50.0]),
            changed=np.array([True, False, True]),
            modified_s=np.array([1e9 + 30, np.nan, np.nan]),
            count=np.array([np.nan, np.nan, 3.0]),
            audit=np.zeros(3, dtype=bool),
        )
    )
    path = tmp_path / "polls.csv"
    assert write_polls(engine.store, str(path)) == len(ODD) + 3
    rows = path.read_text().splitlines()
    assert rows[:6] == [
        "item,time,changed,modified,count,source",
        f"{ODD[0]},1000000000,0,,,web",
        f"{ODD[0]},1000000060,1,1000000030,,web",
        f"{ODD[0]},1000000100,0,,,web",
        f"{ODD[1]},1000000000,0,,,web",
        f"{ODD[1]},1000000050,1,,3,web",
    ]
    with InputFile(str(path)) as source:
        log = read_polls(source, now_s=2e9)
    assert len(log.names) == len(ODD)
    assert log.modified_s is not None
    assert log.modified_s[1] == 1e9 + 30
    assert np.nansum(log.count if log.count is not None else 0) == 3
    written = subprocess.run(
        [sys.executable, "-m", "afresh", "-C", str(tmp_path), "estimate", str(path), "--json"],
        capture_output=True,
        check=True,
    )
    assert json.loads(written.stdout)["changes"] == 4


def test_where_old_polls_are_gone_the_first_interval_has_a_beginning(tmp_path: Path) -> None:
    with make_engine(parse_settings(""), tmp_path) as engine:
        engine.add(["https://h.test/a"])
        (item,) = engine.store.items.ids(["https://h.test/a"]).values()
        unknown = np.array([np.nan])
        engine.store.observations.add(
            ObservationColumns(
                np.array([item]),
                np.array([1e9]),
                np.array([50.0]),
                np.array([True]),
                unknown,
                unknown,
                unknown > 0,
            )
        )
        assert write_polls(engine.store, str(tmp_path / "polls.csv")) == 2
    rows = (tmp_path / "polls.csv").read_text().splitlines()[1:]
    assert [row.split(",")[1:3] for row in rows] == [["999999950", "0"], ["1000000000", "1"]]


def test_an_export_that_is_killed_leaves_no_half_file_and_the_next_one_cleans_up(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    code = (
        "import os, sys; from pathlib import Path; from afresh.tables.atomic_output import replaced_file\n"
        "with replaced_file(Path(sys.argv[1]), '-wal') as part:\n"
        "    for name in (part, Path(f'{part}-wal')): name.write_text('half')\n"
        "    os.kill(os.getpid(), 9)"
    )
    folder.mkdir()
    for name in ("index.jsonl", "7-other"):
        ran = subprocess.run([sys.executable, "-c", code, str(folder / name)], check=False)
        assert ran.returncode == -9
    assert len(list(folder.iterdir())) == 4
    write_folder(engine.store, folder)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
    assert not (folder / "7-other").exists()
