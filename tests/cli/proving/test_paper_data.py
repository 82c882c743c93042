"""``afresh reproduce cho --data FOLDER``: the figure that needs a history."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from afresh.cli.proving.reproduce_command import reproduce
from afresh.papers.page import inline_svg
from afresh.papers.report import PaperFigure
from afresh.values.errors import InputError

app = typer.Typer()
app.command()(reproduce)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def write_history(path: Path) -> None:
    days = np.cumsum(np.random.default_rng(1).exponential(10, (20, 40)), axis=1)
    lines = [f"page{row},{86400 * day:.0f}" for row, course in enumerate(days) for day in course]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(["item,time", *lines]) + "\n")


def test_figure_11_is_drawn_for_every_history_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outline(figure: PaperFigure, prefix: str) -> str:
        """Only the new figures are drawn: to draw the other eight takes two seconds."""
        return inline_svg(figure, prefix) if figure.name.startswith("Figure 11") else "<svg></svg>"

    monkeypatch.setattr("afresh.papers.page.inline_svg", outline)
    for name in ("news", "blogs"):
        write_history(tmp_path / f"{name}.changes.csv.gz")
    page = tmp_path / "report.html"
    found = json.loads(run("cho", "--data", str(tmp_path), "--html", str(page), "--json"))
    (paper,) = found["papers"]
    assert paper["figures"][-2:] == ["Figure 11, blogs", "Figure 11, news"]
    assert "change every 10 days on average" in page.read_text("utf-8")


def test_without_a_history_there_is_no_figure_11() -> None:
    (paper,) = json.loads(run("cho", "--json"))["papers"]
    assert not any(name.startswith("Figure 11") for name in paper["figures"])


def test_a_folder_without_histories_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no history: a file such as pages.changes.csv"):
        run("cho", "--data", str(tmp_path))
    with pytest.raises(InputError, match="is no folder"):
        run("cho", "--data", str(tmp_path / "none"))


def test_a_wrong_time_names_file_and_row(tmp_path: Path) -> None:
    (tmp_path / "a.changes.csv").write_text("item,time\nx,1\nx,soon\n")
    with pytest.raises(InputError, match=r"a.changes.csv, row 2 .*column time"):
        run("cho", "--data", str(tmp_path))
