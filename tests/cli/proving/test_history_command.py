"""``afresh history git``: from a real repository to the two files of a history."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from afresh.cli.proving.history_command import history
from afresh.histories.recorded import read_recorded
from afresh.values.errors import InputError, OutputError, UsageError

DAY = 86400
app = typer.Typer()
app.add_typer(history, name="history")


def run(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["history", "git", *map(str, arguments)], env={"COLUMNS": "250"})
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout, result.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()

    def git(*words: str, day: int = 0) -> None:
        who = {f"GIT_{role}_{what}": "t" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        when = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"@{day * DAY} +0000")
        path = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        subprocess.run(["git", *words], cwd=folder, env=who | when | path, check=True, capture_output=True)

    git("init", "--quiet")
    for day, files in enumerate([{"docs/a": "1", "b, c": "1"}, {"docs/a": "2"}, {"docs/a": "3"}], start=1):
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
        git("add", "--all")
        git("commit", "--quiet", "-m", "x", day=day)
    return folder


def test_two_files_that_can_be_read_back(repository: Path, tmp_path: Path) -> None:
    name = tmp_path / "site history"
    _, said = run(repository, "-o", name)
    assert "2, of which 1 change" in said
    assert f"afresh replay '{name}.changes.csv' --items" in said
    assert "--start 1970-01-02T00:00:00Z --end 1970-01-04T00:00:00Z" in said
    found = read_recorded(f"{name}.changes.csv", f"{name}.items.csv", DAY, 3 * DAY)
    assert found.names.tolist() == ["b, c", "docs/a"]
    assert list(zip(found.item.tolist(), found.time.tolist(), strict=True)) == [(1, 2 * DAY), (1, 3 * DAY)]


def test_paths_and_window_choose(repository: Path, tmp_path: Path) -> None:
    out, _ = run(
        repository, "-o", tmp_path / "x", "--paths", "docs/**", "--end", "1970-01-03T12:00:00Z", "--json"
    )
    summary = json.loads(out)
    assert summary == {
        "items": 1,
        "changed": 1,
        "changes": 1,
        "commits": 1,
        "start": DAY,
        "end": 2.5 * DAY,
        "files": {"changes": f"{tmp_path}/x.changes.csv", "items": f"{tmp_path}/x.items.csv"},
    }
    with (tmp_path / "x.items.csv").open() as file:
        assert list(csv.reader(file)) == [["item"], ["docs/a"]]


def test_renames_are_followed_on_request(repository: Path, tmp_path: Path) -> None:
    out, _ = run(repository, "-o", tmp_path / "x", "--follow-renames", "--json")
    assert json.loads(out)["items"] == 2


def test_wrong_use_is_said_before_anything_is_read(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="none"):
        run(repository, "-o", tmp_path / "none" / "x")
    with pytest.raises(OutputError, match="cannot be the name of two files"):
        run(repository, "-o", "-")
    with pytest.raises(UsageError, match="--start 'soon' is not a time"):
        run(repository, "-o", tmp_path / "x", "--start", "soon")
    with pytest.raises(InputError, match="is not a git repository"):
        run(tmp_path, "-o", tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
