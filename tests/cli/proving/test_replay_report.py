"""How a replay's outcomes are shown: objects, tables, visits, pictures."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from afresh.cli.proving.replay_report import as_object, draw_replay, print_tables, write_visits
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import PeriodScores, ReplayResult
from afresh.replay.policy_run import Visits
from afresh.replay.scores import Scores

DAY = 86400.0
NAMES = pa.array(["a", "b, c"], pa.large_string())


def outcome(
    policy: str, freshness: float, *, per_day: float = 2.0, captured: float = 0.5, **changes: Any
) -> ReplayResult:
    figures = {
        "freshness": freshness,
        "low": freshness - 0.01,
        "high": freshness + 0.01,
        "age": DAY / 2,
        "missed": 3.0,
        "lag": 2 * DAY,
        "harmonic": 1.5,
        "error": float("nan"),
        "visits": 2,
    }
    whole = PeriodScores(Scores(**(figures | changes)), captured)
    after = PeriodScores(Scores(**(figures | {"freshness": freshness + 0.005} | changes)), captured)
    visits = Visits(np.array([1, 0]), np.array([10.0, 20.5]), np.array([True, False]))
    return ReplayResult(policy, per_day / DAY, visits, whole, after)


def test_an_object_has_the_whole_window_at_the_top_and_the_same_keys_after_the_warm_up() -> None:
    found = as_object(outcome("adaptive", 0.9), "h")
    assert found["policy"] == "adaptive"
    assert found["freshness"] == 0.9
    assert found["after_warm_up"]["freshness"] == 0.905
    assert found["age"] == 12
    assert found["budget"] == pytest.approx(2 / 24)
    assert set(found) - set(found["after_warm_up"]) == {"policy", "budget", "after_warm_up"}


def test_one_table_per_budget_freshest_first(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [outcome("uniform", 0.8), outcome("adaptive", 0.9), outcome("uniform", 0.85, per_day=5.0)]
    print_tables([*outcomes, outcome("oracle", 0.9, per_day=5.0, captured=float("nan"))], "d", "news")
    said = capsys.readouterr().err
    assert "news, budget 2 per day" in said
    assert "news, budget 5 per day" in said
    assert said.index("adaptive") < said.index("uniform")
    (line,) = [line for line in said.splitlines() if "adaptive" in line]
    for part in ("90.50%", "89.0–91.0", "12 h", "50%", "90.00%"):
        assert part in line
    assert "–" in next(line for line in said.splitlines() if "oracle" in line)


def test_the_objective_and_known_values_have_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_tables([outcome("adaptive", 0.9)], "d", "news", "harmonic")
    said = capsys.readouterr().err
    assert "harmonic" in said
    assert "1.5" in said
    assert "error" not in said
    print_tables([outcome("adaptive", 0.9, error=12.25)], "d", "news", "lag")
    said = capsys.readouterr().err
    assert [word for word in ("lag", "2 d", "error", "12.25") if word not in said] == []
    assert as_object(outcome("adaptive", 0.9, error=12.25), "d")["error"] == 12.25


def test_visits_are_written_with_names(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    write_visits(str(path), [outcome("adaptive", 0.9)], NAMES)
    with path.open() as file:
        assert list(csv.reader(file)) == [
            ["policy", "item", "time", "changed"],
            ["adaptive", "b, c", "10", "true"],
            ["adaptive", "a", "20.5", "false"],
        ]


def test_visits_at_several_budgets_say_which(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    write_visits(str(path), [outcome("a", 0.9), outcome("a", 0.9, per_day=4.0)], NAMES)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["budget_per_s"]) * DAY for row in rows] == pytest.approx([2, 2, 4, 4])


@pytest.mark.parametrize("budgets", [(2.0,), (2.0, 5.0)])
def test_a_picture_is_drawn(tmp_path: Path, budgets: tuple[float, ...]) -> None:
    path = tmp_path / "x.svg"
    outcomes = [outcome(name, 0.9, per_day=budget) for budget in budgets for name in ("adaptive", "uniform")]
    draw_replay(str(path), outcomes, ChangeHistory.of(2, [0, 1], [5.0, 8.0], 0.0, 30.0), 10.0, "d")
    assert path.read_bytes().startswith(b"<?xml")
