"""The benchmarks run, at small sizes, and judge what they measure."""

from __future__ import annotations

import pytest
from bench.__main__ import BENCHES, main
from bench.rows import Row


@pytest.mark.parametrize("name", BENCHES)
def test_runs_small(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick"]) == 0
    assert name in capsys.readouterr().out


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
