"""The program as a whole: version, -C, exit codes, start-up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh

import afresh as package


def test_version(afresh: Afresh) -> None:
    assert afresh("--version").out == f"afresh {package.__version__}\n"


def test_directory_as_in_git(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "items.csv").write_text("item,rate\na,1\n")
    assert afresh("-C", "sub", "plan", "items.csv", "--budget", "1/d", "-o", "plan.csv").code == 0
    assert (tmp_path / "sub" / "plan.csv").exists()


def test_directory_that_is_not_there(afresh: Afresh) -> None:
    ran = afresh("-C", "nowhere", "plan", "items.csv", "--budget", "1/d")
    assert (ran.code, ran.out) == (2, "")
    assert "nowhere" in ran.err


def test_linear_algebra_uses_one_thread_unless_told_otherwise(
    afresh: Afresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert afresh("run", "--help").code == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    assert afresh("run", "--help").code == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"


def test_an_unknown_option_is_wrong_usage(afresh: Afresh) -> None:
    assert afresh("plan", "items.csv", "--bugdet", "1/d").code == 2


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    lines = "".join(f"i{n},{n}\n" for n in range(1, 30_000))
    (tmp_path / "items.csv").write_text("item,rate\n" + lines)
    command = f"{sys.executable} -m afresh plan items.csv --budget 5/d 2>err | head -n 1"
    ran = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("item,frequency")
    assert "Traceback" not in (tmp_path / "err").read_text()


def test_flags_are_shown_as_flags(afresh: Afresh) -> None:
    for words in (["--help"], ["run", "--help"], ["history", "git", "--help"]):
        assert "<bool>" not in afresh(*words).out
    assert re.search(r"--web +Serve the dashboard", afresh("run", "--help").out)


def test_a_value_that_is_no_number_is_told_in_plain_words(afresh: Afresh) -> None:
    for words, told in (
        (["add", "https://example.org/", "--weight", "heavy"], "must be a number"),
        (["due", "--k", "few"], "must be a whole number"),
        (["demo", "--seed", "-1"], "must be at least 0"),
    ):
        ran = afresh(*words)
        assert ran.code == 2
        assert told in " ".join(ran.err.split()), ran.err


# What each of these commands must not import, because it would take a large part of the time it may take.
_NEITHER = {"scipy", "pyarrow", "pandas", "matplotlib", "numba", "plotly", "fastapi", "uvicorn", "starlette"}
_NEITHER |= {"aiohttp", "ray", "duckdb", "psycopg", "lxml", "http.client", "afresh.engine.runner.build"}
_NEITHER |= {
    "afresh.engine.dbt_models",
    "afresh.engine.reporting.item_snapshot",
    "afresh.sources.api.settings",
    "afresh.sources.search.settings",
}
_NOT_FOR_HELP = _NEITHER | {
    "numpy",
    "pydantic",
    "asyncio",
    "sqlite3",
    "backports.zstd",
    "afresh.engine",
    "afresh.sources",
}


@pytest.mark.parametrize(
    ("words", "needless"),
    [(("--help",), _NOT_FOR_HELP), (("status",), _NEITHER | {"afresh.cli.engine.run_commands"})],
)
def test_a_command_answers_at_once_since_it_imports_little(
    afresh: Afresh, tmp_path: Path, words: tuple[str, ...], needless: set[str]
) -> None:
    """``--help`` is to take less than 0.3 s, and ``status`` less than 0.5 s."""
    assert afresh("init", ".").code == 0
    assert afresh("add", *(f"https://example.org/{name}" for name in "abc")).code == 0
    program = (
        f"import sys; sys.argv = ['afresh', *{words}]\n"
        "from afresh.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"imported = {needless} & set(sys.modules)\n"
        "sys.exit(f'imported {imported}' if imported else 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "plan" in ran.stdout or "example.org" in ran.stdout
