"""The commands in docs/histories.md run, on a small repository in place of the one it clones."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from afresh.cli.history import history
from afresh.cli.replay import replay
from afresh.cli.simulate import simulate

PAGE = Path(__file__).parents[2] / "docs" / "histories.md"
app = typer.Typer()
app.command()(replay)
app.command()(simulate)
app.add_typer(history, name="history")


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("afresh ")]


def make_repository(folder: Path) -> None:
    """Thirty pages, the first ten of which change now and then from 2023 to 2026."""
    alone = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}

    def git(*words: str, given: bytes = b"") -> None:
        subprocess.run(["git", *words], input=given, env=alone, check=True, capture_output=True)

    stream = bytearray()
    for commit in range(60):
        stamp = 1_660_000_000 + commit * 2_000_000
        stream += f"commit refs/heads/main\ncommitter a <a@b> {stamp} +0000\ndata 1\nx\n".encode()
        for page in range(30) if commit == 0 else range(commit % 10, 10, 4):
            stream += f"M 644 inline content/en/p{page}.md\ndata 2\n{commit:02d}\n".encode()
    git("init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    git("-C", str(folder), "fast-import", "--quiet", given=bytes(stream))


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_repository(tmp_path / "website.git")
    lines = commands()
    assert len(lines) >= 5
    for line in lines:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.exception or result.stderr}"
    assert len((tmp_path / "docs.items.csv").read_text().splitlines()) == 31
    assert len((tmp_path / "docs.changes.csv").read_text().splitlines()) > 50
    assert (tmp_path / "world.svg").exists()
