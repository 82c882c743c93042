"""Cells of the replay benchmark: the same orders for all policies, judged with errors, restartable."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from bench.replay import rows
from bench.trials import Figures, Results, Trial, in_random_orders, measure

from afresh.policy.policy import PolicyInput
from afresh.replay.change_history import ChangeHistory
from afresh.replay.compare import replay

DAY = 86400.0


def a_trial(objective: str = "freshness", items: int = 20) -> Trial:
    rng = np.random.default_rng(3)
    count = rng.poisson(rng.gamma(0.5, 20.0, items))
    time = rng.uniform(0.0, 300 * DAY, count.sum())
    history = ChangeHistory.of(items, np.repeat(np.arange(items), count), time, 0.0, 300 * DAY)
    return Trial(history, [f"a{one % 5}/b{one}" for one in range(items)], 0.03, objective)


def some_figures(own: list[float], uniform: list[float], oracle: float, days: float) -> Figures:
    """Freshness that is the same in all thirds, an entry per order."""
    values = {"adaptive": own, "uniform": uniform, "oracle": [oracle] * len(own)}
    thirds = {policy: np.repeat(np.array(each)[:, None], 3, axis=1) for policy, each in values.items()}
    history = ChangeHistory.of(2, [0], [1.0], 0.0, days * DAY)
    return Figures(thirds, Trial(history, ["a", "b"], 0.1))


def test_figures_are_those_of_a_replay() -> None:
    trial = in_random_orders(a_trial())(0)
    figures = measure("one", lambda _: trial, 1, Results(None))
    start = PolicyInput.of(20, trial.budget)
    uniform, oracle = replay(trial.history, ["uniform", "oracle"], start)
    assert figures.means[1] == pytest.approx(uniform.after.scores.freshness)
    assert figures.means[2] == pytest.approx(oracle.after.scores.freshness)


def test_an_order_moves_items_with_their_changes_and_names() -> None:
    trial = a_trial()
    other = in_random_orders(trial)(4)
    assert other.names != trial.names
    count = dict(zip(trial.names, np.diff(trial.history.first).tolist(), strict=True))
    assert dict(zip(other.names, np.diff(other.history.first).tolist(), strict=True)) == count
    shuffled = in_random_orders(trial, shuffled=True)(4)
    np.testing.assert_array_equal(shuffled.history.time, other.history.time)
    assert sorted(shuffled.names) == sorted(other.names)
    assert shuffled.names != other.names


def test_a_cell_below_uniform_is_missed_unless_noise_or_few_polls_explain_it() -> None:
    steady = some_figures([0.898, 0.898], [0.9, 0.9], 0.95, days=300)
    assert steady.points == pytest.approx(-0.2)
    assert not steady.row("x").ok
    assert some_figures([0.8995, 0.8995], [0.9, 0.9], 0.95, days=300).row("x").ok
    assert some_figures([0.890, 0.906], [0.9, 0.9], 0.95, days=300).row("x").ok  # ± 0.8 points
    assert some_figures([0.898, 0.898], [0.9, 0.9], 0.95, days=90).row("x").ok  # nine polls
    assert some_figures([0.898, 0.898], [0.9, 0.9], 0.89, days=300).row("x").ok  # the oracle loses too
    assert not some_figures([0.896, 0.896], [0.9, 0.9], 0.89, days=90).row("x").ok


def test_a_row_says_how_many_requests_uniform_polling_needs() -> None:
    figures = measure("one", in_random_orders(a_trial()), 2, Results(None))
    uniform = Figures({**figures.thirds, "adaptive": figures.thirds["uniform"]}, figures.trial)
    assert uniform.uniform_needs() == pytest.approx(1.0, abs=0.15)
    assert figures.uniform_needs() > 1.1
    assert "times the requests" in figures.row("one", with_needs=True).name


def test_age_is_judged_by_its_ratio_to_that_of_uniform() -> None:
    figures = measure("age", in_random_orders(a_trial("age")), 2, Results(None))
    row = figures.row("age")
    assert row.ratio == pytest.approx(figures.means[0] / figures.means[1])
    assert row.at_most == 1.02


def test_no_run_is_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_RESULTS", str(tmp_path / "results.jsonl"))
    make = in_random_orders(a_trial())
    first = measure("cell", make, 2, Results.from_environment())
    monkeypatch.setattr("bench.trials.run_by_thirds", None)
    again = measure("cell", make, 2, Results.from_environment())
    assert again.means == first.means
    with pytest.raises(TypeError):  # a third order is not known yet
        measure("cell", make, 3, Results.from_environment())


def test_the_histories_of_a_folder_are_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = a_trial()
    changes = zip(trial.history.change_item, trial.history.time, strict=True)
    lines = [f"{trial.names[item]},{when}" for item, when in changes]
    texts = {"items": ["item", *trial.names], "changes": ["item,time", *lines]}
    for kind, text in texts.items():
        (tmp_path / f"docs-x.{kind}.csv.gz").write_bytes(gzip.compress("\n".join(text).encode()))
    (tmp_path / "docs-x.meta.json").write_text(json.dumps({"start": 0.0, "end": 300 * DAY}))
    monkeypatch.setenv("AFRESH_DATA", str(tmp_path))
    monkeypatch.setenv("AFRESH_ORDERS", "2")
    found = rows(quick=False, cases=["docs-x, 0.01", "lag, docs-x, 0.02"])
    names = [row.name.partition(":")[0] for row in found]
    assert names[:3] == ["docs-x, 0.01, names", "docs-x, 0.01, shuffled", "lag, docs-x, 0.02"]
    together = {row.name.partition("; thirds ")[0]: row.at_least for row in found}
    assert together["captured, all together, names"] == 0.95
    assert together["captured, all together, shuffled"] == 0.7
    assert "docs-x, 0.01, names: " in capsys.readouterr().err
