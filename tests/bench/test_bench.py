"""The benchmarks run, at small sizes, and judge what they measure."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from bench.__main__ import BENCHES, main
from bench.rows import Row

# Even their small sizes are dear, because they start servers, browsers or builds, or replay whole worlds.
DEAR = (
    "api", "attacks", "beliefs", "calibration", "cluster", "constants", "crawl", "demo", "engine_scale",
    "estimate_file",
    "follow", "large",
    "package",
    "plan_scale", "plan_stream", "rates_speed", "render",
    "replay", "replay_rivals", "replay_robust", "search", "signals",
    "changes", "sql_bulk", "store",
    "store_postgres", "view_simulation", "views", "web",
)  # fmt: skip


WITH_TOOLS = ("dbt_models",)
"""Those that need a tool of ``make interop``, where they are run."""


@pytest.mark.parametrize("name", [name for name in BENCHES if name not in (*DEAR, *WITH_TOOLS)])
def test_runs_small(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick"]) == 0
    assert name in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", DEAR)
def test_dear_ones_run_small(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    test_runs_small(name, capsys)


def test_some_cases_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay_robust", "--quick", "--case", "few rounds, births", "--case", "cho"]) == 0
    out = capsys.readouterr().out
    assert out.count("replay_robust") == 2
    assert "cho: " in out
    assert "few rounds, births" in out


@pytest.mark.parametrize("name", BENCHES)
def test_each_can_be_imported_and_says_what_it_measures(name: str) -> None:
    module = import_module(f"bench.{name}")
    assert callable(module.rows)
    assert module.__doc__


@pytest.mark.slow
def test_links_are_followed_small(capsys: pytest.CaptureFixture[str]) -> None:
    """The case without a browser; with both it is one of the dear ones."""
    assert main(["follow", "--quick", "--case", "plain"]) == 0
    out = capsys.readouterr().out
    assert "pages not copied" in out
    assert "rendered" not in out


def test_a_missed_ratio_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = [
        Row("plan", 2.0, "s", ratio=31.0, at_most=30.0),
        Row("cvxpy", 1.0, "s", ratio=10.0, at_least=300.0),
    ]
    monkeypatch.setattr("bench.plan_stream.rows", lambda *, quick: slow)  # noqa: ARG005
    assert main(["plan_stream"]) == 1
    assert capsys.readouterr().out.count("missed") == 2


def test_an_unknown_name_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["plan_streem"])
    assert stop.value.code == 2
    assert "one of plan_stream" in capsys.readouterr().err


ROOT = Path(__file__).parents[2]


def imported(path: Path) -> set[str]:
    """The modules that a file imports from. To parse all files would take seconds."""
    return set(re.findall(r"^ *from ([\w.]+) import ", path.read_text(), re.MULTILINE))


def test_benchmarks_and_tests_do_not_know_each_other() -> None:
    """Worlds and servers that both need stand beside the tests; only the tests of benchmarks know these."""
    for path in (ROOT / "bench").glob("*.py"):
        assert not [name for name in imported(path) if ".test_" in name], path
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent.name != "bench":
            assert not [name for name in imported(path) if name.split(".")[0] == "bench"], path


def test_every_benchmark_is_in_the_list() -> None:
    with_rows = {path.stem for path in (ROOT / "bench").glob("*.py") if "\ndef rows(" in path.read_text()}
    assert with_rows == set(BENCHES)
