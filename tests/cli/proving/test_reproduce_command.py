"""``afresh reproduce`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from afresh.cli.proving.reproduce_command import reproduce
from afresh.papers import registry
from afresh.papers.report import Check, Report, Section
from afresh.values.errors import OutputError, UsageError

app = typer.Typer()
app.command()(reproduce)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "120", "NO_COLOR": "1"})
    if isinstance(result.exception, Exception):
        raise result.exception
    return result.exit_code, result.stdout


def test_tables_show_printed_recomputed_and_verdict() -> None:
    code, out = run("cho")
    assert code == 0
    assert "Table 6: the web, one refresh per page and month" in out
    (line,) = [line for line in out.splitlines() if "freshness, proportional " in line and "0.1287" in line]
    assert "0.12 " in line
    assert "differs: cut after two decimals" in line
    assert "0 differ unexplained" in out
    assert "Razniewski" not in out


def test_all_papers_by_default_as_one_object() -> None:
    code, out = run("--json")
    assert code == 0
    papers = json.loads(out)["papers"]
    assert [paper["paper"] for paper in papers] == list(registry.PAPERS)
    for paper in papers:
        assert paper["unexplained"] == 0
        assert paper["agrees"] + paper["differs"] == len(paper["checks"])
        assert {"section", "name", "printed", "recomputed", "unit", "verdict", "reason"} == set(
            paper["checks"][0]
        )


def test_infinity_is_null_in_json() -> None:
    checks = json.loads(run("razniewski", "--json")[1])["papers"][0]["checks"]
    assert None in [check["recomputed"] for check in checks if check["section"].startswith("Table 3")]


def test_html_is_written(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert run("yang", "--html", str(target), "--json")[0] == 0
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="none"):
        run("yang", "--html", str(tmp_path / "none" / "report.html"))


def test_an_unknown_paper_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'cho'"):
        run("choo")


def test_an_unexplained_difference_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Report("cho", "Wrong", (Section("Table 1", (Check("a", "0.50", 0.6),)),), ())
    monkeypatch.setattr(registry, "reproduce", lambda *_: (wrong,))
    code, out = run("cho")
    assert code == 1
    assert "unexplained: expected 0.50 at the precision written" in out
    assert "1 differ unexplained" in out
