"""Looks at views and refreshes share the requests of the budget: neither leaves the other without any."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.slow_cases import with_slow_cases
from tests.virtual_time import VirtualTime

from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.logs import LOGGER
from afresh.engine.settings.parsing import parse_settings
from afresh.values.items import ItemChange


class _AlwaysStale:
    """Functions of a user, in virtual time: every view is always stale, and a refresh takes no time. With
    ``stale = False`` every view is fresh."""

    def __init__(self) -> None:
        self.refreshed: list[str] = []
        self.looks: list[str] = []
        self.stale = True

    def refresh(self, view: str) -> None:
        self.refreshed.append(view)

    def is_stale(self, view: str) -> bool:
        self.looks.append(view)
        return self.stale


@pytest.fixture
def always_stale(monkeypatch: pytest.MonkeyPatch) -> _AlwaysStale:
    found, module = _AlwaysStale(), ModuleType("always_stale")
    vars(module).update(refresh=found.refresh, is_stale=found.is_stale)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return found


def _engine_of_views(
    folder: Path, sources: int, look_every: str, time: VirtualTime | None = None, requests: str = "1/s"
) -> Engine:
    """An engine in virtual time, with the default budget of one request a second."""
    text = f'[budget]\nseconds = "20m/h"\nrequests = "{requests}"\n'
    for number in range(sources):
        text += f"""
            [[source]]
            name = "s{number}"
            kind = "view"
            views = ["v{number}"]
            refresh = "always_stale:refresh"
            stale_when = "always_stale:is_stale"
            look_every = "{look_every}"
        """
    time = time or VirtualTime()
    return make_engine(parse_settings(text), folder, clock=time, seed=1, new_loop=time.new_loop)


@pytest.mark.parametrize(
    ("sources", "look_every"), with_slow_cases([(6, "5s"), (1, "1s"), (20, "1s")], kept=1)
)
def test_looks_leave_requests_for_refreshes(
    tmp_path: Path, always_stale: _AlwaysStale, sources: int, look_every: str
) -> None:
    """The looks would take every request of the budget."""
    with _engine_of_views(tmp_path, sources, look_every) as engine:
        found = engine.run(for_s=120.0)
        run = engine.status().run
    views = {f"v{number}" for number in range(sources)}
    assert set(always_stale.refreshed) == set(always_stale.looks) == views
    assert found.polls >= 45
    assert found.requests - found.polls >= 30  # looks
    assert 110 <= found.requests <= 122  # the budget is used, and not exceeded
    assert run is not None
    assert max(run.unspent_seconds, key=lambda reason: run.unspent_seconds[reason]) == "requests"
    assert run.unspent_seconds.get("machine", 0.0) < 0.1 * sum(run.unspent_seconds.values())


def test_looks_come_as_often_as_the_settings_say(tmp_path: Path, always_stale: _AlwaysStale) -> None:
    """Also between two checks of the settings, which come every tenth of a second."""
    always_stale.stale = False
    time = VirtualTime()
    with _engine_of_views(tmp_path, 1, "0.25s", time, requests="50/s") as engine:
        engine.run(for_s=30.0)
    assert 117 <= len(always_stale.looks) <= 122


def test_the_mean_age_is_that_of_the_views(tmp_path: Path, always_stale: _AlwaysStale) -> None:
    """It is seen, and not estimated."""
    with _engine_of_views(tmp_path, 6, "5s") as engine:
        engine.run(for_s=60.0)
        status = engine.status()
    assert len(always_stale.refreshed) > 6
    assert status.age_s == pytest.approx(sum(view.stale_for_s for view in status.views) / 6)
    assert sorted(view.ahead for view in status.views if view.state == "stale") == list(
        range(sum(view.state == "stale" for view in status.views))
    )


@pytest.mark.parametrize(("sources", "look_every"), [(6, "5s"), (1, "1s")])
def test_a_single_round_ends_although_looks_are_always_due(
    tmp_path: Path, always_stale: _AlwaysStale, sources: int, look_every: str
) -> None:
    with _engine_of_views(tmp_path, sources, look_every) as engine:
        for _ in range(2):
            always_stale.refreshed.clear()
            found = engine.run(once=True, for_s=600.0)
            assert sorted(always_stale.refreshed) == [f"v{number}" for number in range(sources)]
            assert found.requests <= 4 * sources + 2


def test_a_round_that_leaves_fresh_views_alone_does_not_ask_for_a_larger_burst(
    tmp_path: Path, always_stale: _AlwaysStale, caplog: pytest.LogCaptureFixture
) -> None:
    time = VirtualTime()
    LOGGER.addHandler(caplog.handler)
    try:
        with _engine_of_views(tmp_path, 3, "5s", time) as engine:
            engine.run(once=True)
            always_stale.stale = False
            engine.store.items.change([1, 2, 3], ItemChange(due_s=time.now_s() + 7200.0))
            time.passed_s += 600.0
            found = engine.run(once=True)
    finally:
        LOGGER.removeHandler(caplog.handler)
    assert found.polls == 0
    assert "burst" not in caplog.text
