"""Which models of a dbt project are due, and what a run teaches; by files that dbt wrote."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from tests.sources.polling import SetClock
from tests.sources.recorded_dbt import ENDED_S, MODELS, OF_ORDERS, copy_recorded

from afresh.engine.app import make_engine
from afresh.engine.dbt_models import DueModels
from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.sources.views.dbt_artifacts import read_project, read_run
from afresh.values.errors import UsageError

SETTINGS = """
[budget]
seconds = "{seconds}"
[[source]]
name = "models"
kind = "view"
dbt = "{target}"
"""


class Project:
    """An engine over the recorded files, which the test replaces as dbt would."""

    def __init__(self, folder: Path, seconds: str = "5m/h") -> None:
        self.target, self.clock = folder / "target", SetClock(ENDED_S + 60.0)
        copy_recorded("1-built", self.target)
        text = SETTINGS.format(seconds=seconds, target=self.target)
        self.engine: Engine = make_engine(parse_settings(text), folder, clock=self.clock)
        self.engine.add(MODELS, source="models")

    def learn(self, moment: str, *files: str) -> tuple[int, int, int]:
        copy_recorded(moment, self.target, *files)
        found = self.engine.dbt.learn()
        return len(found.built), len(found.failed), len(found.skipped)

    def due(self, period_s: float = 3600.0) -> DueModels:
        return asyncio.run(self.engine.dbt.find_due(period_s))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_after_a_build_nothing_is_due_until_a_source_is_loaded(project: Project) -> None:
    assert project.learn("1-built") == (13, 0, 0)
    assert project.due().models == ()
    assert project.learn("2-loaded", "sources.json") == (0, 0, 0)
    found = project.due()
    assert (set(found.models), found.stale) == (OF_ORDERS, 7)
    order = list(found.models)
    assert order.index("orders_by_customer") < order.index("top_customers") < order.index("finance_report")
    project.engine.close()


def test_what_no_run_has_built_is_due_first_with_the_views_and_seeds_that_it_needs(project: Project) -> None:
    found = project.due()
    assert set(found.models) == {*MODELS, "stg_orders", "regions"}
    assert set(found.models[:2]) == {"stg_orders", "regions"}
    project.engine.close()


def test_a_run_with_a_failed_model_leaves_it_and_those_above_it_stale(project: Project) -> None:
    project.learn("1-built")
    project.learn("2-loaded", "sources.json")
    assert project.learn("3-failed", "run_results.json") == (1, 1, 2)
    assert set(project.due().models) == OF_ORDERS - {"orders_daily"}
    assert "broken" in project.engine.why("orders_by_customer").item.problem
    assert project.learn("3-failed", "run_results.json") == (0, 0, 0)  # it is known already
    project.engine.close()


def test_a_model_with_another_definition_is_stale(project: Project) -> None:
    project.learn("1-built")
    copy_recorded("3-failed", project.target, "manifest.json")
    found = project.due()
    assert set(found.models) == {"orders_by_customer", "top_customers", "finance_report"}
    project.engine.close()


def test_whole_invocations_are_paid_by_the_budget(tmp_path: Path) -> None:
    """A second an hour: the recorded build of everything took 2.9 s, so that the next has to wait. Then one
    job may be built although dbt alone takes longer than a second, because nothing is owed any more."""
    project = Project(tmp_path, seconds="1s/h")
    project.learn("1-built")
    run = read_run(project.target, read_project(project.target))
    assert run is not None
    project.learn("2-loaded", "sources.json")
    assert project.due() == DueModels((), 7, 0.0, 0.0)
    waiting_s = run.seconds * 3600
    project.clock.time_s += waiting_s - 60
    assert project.due(60.0).budget_s == pytest.approx(0.0, abs=1e-3)
    assert project.due(3660.0).budget_s == pytest.approx(1.0)
    project.clock.time_s += 61
    found = project.due()
    assert found.budget_s == pytest.approx(1.0)
    assert found.cost_s > found.budget_s
    assert len(found.models) > 0
    project.engine.close()


def test_the_time_that_the_caller_measured_counts(tmp_path: Path) -> None:
    """Five minutes, because the start of Python took so long: an hour of the budget."""
    project = Project(tmp_path, seconds="5m/h")
    project.engine.dbt.learn(seconds=300.0)
    project.learn("2-loaded", "sources.json")
    assert project.due(1800.0).budget_s == 0.0
    assert project.due(7200.0).budget_s == pytest.approx(300.0, rel=0.01)
    project.engine.close()


def test_without_a_budget_of_seconds_everything_stale_is_due(tmp_path: Path) -> None:
    project = Project(tmp_path)
    settings = parse_settings(
        SETTINGS.format(seconds="1h/h", target=project.target).replace('seconds = "1h/h"', "")
    )
    project.engine.settings = settings
    project.learn("1-built")
    project.learn("2-loaded", "sources.json")
    found = project.due()
    assert (set(found.models), found.budget_s) == (OF_ORDERS, math.inf)
    project.engine.close()


def test_a_paused_model_is_left_out(project: Project) -> None:
    from afresh.values.items import ItemChange

    project.learn("1-built")
    project.learn("2-loaded", "sources.json")
    project.engine.set(["finance_report"], ItemChange(status="paused"))
    assert set(project.due().models) == OF_ORDERS - {"finance_report"}
    project.engine.close()


def test_a_project_without_models_of_dbt_is_told_how_to_add_them(tmp_path: Path) -> None:
    engine = make_engine(parse_settings("[[source]]\nname = 'web'"), tmp_path, clock=SetClock())
    with pytest.raises(UsageError, match="afresh add --dbt target"):
        engine.dbt.learn()
    engine.close()
