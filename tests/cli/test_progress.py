"""The progress bar: nothing is drawn for quick work, and the bar follows the work that takes long."""

from __future__ import annotations

import pytest

from afresh.cli.progress import PATIENCE_S, ProgressBar
from afresh.values.clock import SystemClock


class TurnedClock(SystemClock):
    """A clock that stands still until a test turns it."""

    time_s = 0.0

    def elapsed_s(self) -> float:
        return self.time_s


def test_quick_work_draws_nothing_and_long_work_draws_a_bar(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then draws as on a terminal
    clock = TurnedClock()
    with ProgressBar("reading items.csv", 4.0, clock=clock, show=True) as bar:
        bar.reach(1)
        assert capfd.readouterr().err == ""
        clock.time_s = PATIENCE_S
        bar.reach(2)
        bar.reach(3)
    assert "reading items.csv" in capfd.readouterr().err
    assert bar.done == 3


def test_nothing_is_drawn_where_standard_error_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    clock = TurnedClock()
    with ProgressBar("reading", 2.0, clock=clock) as bar:
        clock.time_s = 10 * PATIENCE_S
        bar.reach(1)
    assert capfd.readouterr().err == ""
