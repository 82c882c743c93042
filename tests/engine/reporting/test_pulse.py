"""What a running engine tells through the store, and the budget that it follows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.engine.app import make_engine
from afresh.engine.reporting.pulse import FIELDS, Course, Pulse, add_point, read_course, read_pulse, thin_out
from afresh.engine.settings.overrides import SettingWithOrigin
from afresh.engine.settings.parsing import parse_settings
from afresh.engine.settings.tables import Settings
from afresh.engine.state_names import COURSE
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.values.errors import UsageError


def test_a_run_leaves_its_pulse_and_its_course(tmp_path: Path) -> None:
    with VirtualSite([0.5] * 5) as site, site.engine(tmp_path, budget="20/s") as engine:
        assert read_pulse(engine.store) is None
        engine.add(site.urls())
        progress = engine.run(for_s=2.5)
        pulse, course = read_pulse(engine.store), read_course(engine.store)
    assert pulse is not None
    assert pulse.state(site.time.now_s()) == "stopped"
    assert pulse.polls == progress.polls
    assert course.shape[1] == len(FIELDS)
    assert 1 <= course.shape[0] <= 2
    freshness, low, high = course[0, 1:4]
    assert 0 <= low <= freshness <= high <= 1


def test_silence_shows() -> None:
    assert Pulse(1000.0, 0.0).state(1005.0) == "running"
    assert Pulse(1000.0, 0.0).state(1020.0) == "lost"
    assert Pulse(1000.0, 0.0, stopped=True).state(9999.0) == "stopped"


def test_a_day_of_points_stays_small() -> None:
    now_s = 1e9
    course = np.zeros((100_000, len(FIELDS)))
    course[:, 0] = now_s - 10.0 * np.arange(100_000)[::-1]
    kept = thin_out(course, now_s)
    assert kept.shape[0] < 1600
    assert now_s - kept[0, 0] <= 86400.0
    assert np.max(np.diff(kept[:, 0])) <= 70.0
    assert thin_out(kept, now_s).shape == kept.shape


def points(count: int, now_s: float) -> Course:
    """So many points, one every ten seconds until now."""
    course = np.zeros((count, len(FIELDS)))
    course[:, 0] = now_s - 10.0 * np.arange(count)[::-1]
    course[:, 5] = np.arange(count)
    return course


def test_a_point_of_the_course_writes_little_and_nothing_is_lost() -> None:
    store, course = MemoryStore(), points(26 * 360, 1e9)
    for place in range(len(course)):
        values = add_point(store, course[place : place + 1])
        assert sum(len(data or b"") for data in values.values()) <= 12_000
        store.state.set(values)
        if place % 1000 == 0:
            np.testing.assert_array_equal(read_course(store), thin_out(course[: place + 1], course[place, 0]))
    np.testing.assert_array_equal(read_course(store), thin_out(course, 1e9))
    assert len(store.state.names()) == 25


def test_the_course_of_a_store_of_before_goes_on() -> None:
    store, course = MemoryStore(), points(8641, 1e9)
    old = thin_out(course[:-1], course[-2, 0])
    store.state.set({COURSE: old.tobytes()})
    np.testing.assert_array_equal(read_course(store), old)
    store.state.set(add_point(store, course[-1:]))
    assert store.state.get(COURSE) is None
    np.testing.assert_array_equal(read_course(store), thin_out(course, 1e9))


def test_a_clock_set_back_takes_the_points_of_its_hour_back() -> None:
    store, course = MemoryStore(), points(6, 3600.0 * 1000 + 100)
    for row in (0, 1, 4, 5, 2, 3):
        store.state.set(add_point(store, course[row : row + 1]))
    np.testing.assert_array_equal(read_course(store), course[:4])


def test_a_running_engine_follows_the_budget_asked_for(tmp_path: Path) -> None:
    """Also one that was asked for before the engine's first sign of life."""
    with VirtualSite([1.0] * 20) as site, site.engine(tmp_path, budget="4/s") as engine:
        engine.add(site.urls())
        engine.run(for_s=5.0, report=lambda _progress: engine.ask_budget(60.0))
        assert engine.current().budget.requests == 60.0
    assert len(site.requests) > 60  # 21 at the old budget


def test_the_file_counts_again_when_it_says_something_new(tmp_path: Path) -> None:
    for requests, counts in (("2/s", 9.0), ("3/s", 3.0)):
        with make_engine(parse_settings(f"[budget]\nrequests = '{requests}'"), tmp_path) as engine:
            if requests == "2/s":
                engine.ask_budget(9.0)
            assert engine.current().budget.requests == counts
            assert engine.status().budget_per_s == counts


def test_a_budget_for_each_item_can_be_asked_away_and_back(tmp_path: Path) -> None:
    with make_engine(parse_settings("[budget]\nrequests = '0.5/item/s'"), tmp_path) as engine:
        engine.add([f"https://a.example/{number}" for number in range(4)])
        assert engine.current().budget.requests == 2.0
        engine.ask_budget(0.5)
        assert engine.current().budget.requests == 0.5
    other = tmp_path / "other"
    other.mkdir()
    with make_engine(parse_settings("[budget]\nrequests = '2/s'"), other) as engine:
        engine.ask_budget(5.0)
        engine.ask_budget(2.0)
        assert engine.current().budget.requests == 2.0


@pytest.mark.parametrize("requests", [0.0, -1.0, float("inf"), float("nan")])
def test_a_budget_that_is_none_is_refused(tmp_path: Path, requests: float) -> None:
    with make_engine(parse_settings(""), tmp_path) as engine, pytest.raises(UsageError, match="a budget of"):
        engine.ask_budget(requests)


def test_what_was_said_last_of_the_budget_counts(tmp_path: Path) -> None:
    def said(file: str, option: str | None = None) -> Settings:
        options = {"budget.requests": SettingWithOrigin(option, f"--budget {option}")} if option else None
        return parse_settings(
            f"[store]\nurl = 'sqlite:{tmp_path}/one.db'\n[budget]\nrequests = '{file}'", options
        )

    def counts(settings: Settings, *, runs: bool = False) -> float:
        with make_engine(settings, tmp_path) as engine:
            if runs:
                engine.run(for_s=0.1)
            return engine.current().budget.requests

    with make_engine(said("1/s", "5/s"), tmp_path) as running, make_engine(said("1/s"), tmp_path) as beside:
        running.run(for_s=0.1)
        assert running.current().budget.requests == 5.0
        for requests in (3.0, 1.0, 3.0):  # also what the file says: the one that runs was told otherwise
            beside.ask_budget(requests)
            assert running.current().budget.requests == beside.current().budget.requests == requests
    assert counts(said("1/s"), runs=True) == 3.0  # a restart without the option keeps it
    assert counts(said("2/s")) == 2.0  # another file does not
    assert counts(said("1/s", "5/s"), runs=True) == 5.0  # nor does a restart with the option,
    assert counts(said("1/s")) == 1.0  # and then it is forgotten


def test_a_budget_asked_of_an_engine_with_an_option_outlives_it(tmp_path: Path) -> None:
    with make_engine(
        parse_settings("", {"budget.requests": SettingWithOrigin("5/s", "--budget 5/s")}), tmp_path
    ) as engine:
        engine.ask_budget(3.0)
    with make_engine(parse_settings(""), tmp_path) as engine:
        assert engine.current().budget.requests == 3.0
