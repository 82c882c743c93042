"""Every step of writing an export fails once: the error is said, old files stay whole, the next try works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.tables.failing_writes import ERRORS, WriteFaults, failing_writes

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.external_polls import Reported
from afresh.engine.reporting.export import write_folder, write_jsonl, write_polls
from afresh.engine.settings.parsing import parse_settings
from afresh.tables.atomic_output import open_output
from afresh.values.errors import AfreshError

KEYS = ["https://h.test/a", "https://h.test/b"]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with make_engine(parse_settings(""), tmp_path) as made:
        made.add(KEYS)
        made.observe(Reported(key, 1e9, content=f"copy of {key}".encode()) for key in KEYS)
        yield made


def to_folder(engine: Engine, place: Path) -> None:
    write_folder(engine.store, place / "out")


def to_lines(engine: Engine, place: Path) -> None:
    with open_output(place / "copies.jsonl") as out:
        write_jsonl(engine.store, out)


def to_table(engine: Engine, place: Path) -> None:
    write_polls(engine.store, str(place / "polls.csv"))


def to_backup(engine: Engine, place: Path) -> None:
    engine.store.upkeep.backup(place / "backup.db")


def files(place: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_file()}
    # A backup differs from the one before in a counter that SQLite keeps in its first page.
    return {name: path.read_bytes()[100 if path.suffix == ".db" else 0 :] for name, path in found.items()}


@pytest.mark.parametrize("code", ERRORS)
@pytest.mark.parametrize("export", [to_folder, to_lines, to_table, to_backup])
def test_every_step_fails_once(
    engine: Engine, tmp_path: Path, export: Callable[[Engine, Path], None], code: int
) -> None:
    place, clean = tmp_path / "exports", WriteFaults()
    place.mkdir()
    with failing_writes(clean):
        export(engine, place)
    whole = files(place)
    said = []
    for at in range(len(clean.steps)):
        with failing_writes(WriteFaults(at, code)):
            try:
                export(engine, place)
            except AfreshError as error:
                said.append(str(error))
        assert files(place) == whole, f"{clean.steps[at]} left something else behind"
    # Two failures do no harm: to sync the folder after the rename, and to make a folder that exists.
    assert len(said) >= len(clean.steps) - 2 > 0
    assert all(str(place) in words for words in said)
    export(engine, place)
    assert files(place) == whole
