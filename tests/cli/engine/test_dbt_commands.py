"""``add``, ``due`` and ``observe`` with ``--dbt``, with a script in the place of dbt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.sources.recorded_dbt import ENDED_S, MODELS, OF_ORDERS, copy_recorded

from afresh.values.clock import SystemClock


@pytest.fixture
def shift_s() -> float:
    """By how much the recorded times must be shifted, so that the last run ended a minute ago."""
    return SystemClock().now_s() - 60.0 - ENDED_S


@pytest.fixture
def built(afresh: Afresh, tmp_path: Path, shift_s: float) -> Afresh:
    """A project whose models were all built."""
    copy_recorded("1-built", tmp_path / "target", shift_s=shift_s)
    afresh("init")
    found = afresh("add", "--dbt", "target/", "--json")
    assert json.loads(found.out) == {"new": 11, "items": 11, "source": "dbt", "built": 13}
    return afresh


def script(tmp_path: Path, then: str) -> list[str]:
    """A program that writes its arguments to a file, then does what ``then`` says."""
    path = tmp_path / "fake-dbt"
    path.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n{then}\n')
    path.chmod(0o755)
    return ["--", str(path), "build"]


def test_adding_models_writes_a_source_and_twice_changes_nothing(built: Afresh, tmp_path: Path) -> None:
    text = (tmp_path / "afresh.toml").read_text()
    assert text.endswith('\n[[source]]\nname = "dbt"\nkind = "view"\ndbt = "target"\n')
    assert "0 new, 11 items in all" in built("add", "--dbt", "target").err
    assert (tmp_path / "afresh.toml").read_text() == text
    assert built("config", "check").code == 0
    assert built("due", "--dbt").err == "nothing is due: no model is stale\n"


def test_models_are_due_after_a_load_and_the_command_gets_them(
    built: Afresh, tmp_path: Path, shift_s: float
) -> None:
    command = script(tmp_path, f"cp {tmp_path}/new/run_results.json {tmp_path}/target/; exit 1")
    assert built("due", "--dbt", "--for", "1h", *command).code == 0
    assert not (tmp_path / "arguments").exists()  # nothing was due
    copy_recorded("2-loaded", tmp_path / "target", "sources.json", shift_s=shift_s)
    found = built("due", "--dbt", "--for", "1h", "--json")
    assert set(json.loads(found.out)["models"]) == OF_ORDERS
    assert "no-such: No such file or directory" in built("due", "--dbt", "--", "no-such").err
    copy_recorded("3-failed", tmp_path / "new", "run_results.json", shift_s=shift_s)
    found = built("due", "--dbt", "--for", "1h", *command)
    assert (found.code, found.out) == (1, "")  # the exit code and the output are those of the command
    assert "7 stale; building orders_by_customer orders_daily revenue_daily " in found.err
    assert "1 node built, 1 node failed, 2 nodes skipped" in found.err
    words = (tmp_path / "arguments").read_text().split()
    assert words[:2] == ["build", "--select"]
    assert set(words[2:]) == OF_ORDERS
    assert set(built("due", "--dbt").out.split()) == OF_ORDERS - {"orders_daily"}
    assert "broken" in built("status").out


def test_observing_a_run_learns_from_it_once(built: Afresh, tmp_path: Path, shift_s: float) -> None:
    copy_recorded("3-failed", tmp_path / "elsewhere", shift_s=shift_s)
    found = json.loads(built("observe", "--dbt", "elsewhere", "--json").out)
    assert (found["new"], found["built"], found["failed"]) == (True, ["orders_daily"], ["orders_by_customer"])
    assert set(found["skipped"]) == {"top_customers", "finance_report"}
    assert "no run that was not known already" in built("observe", "--dbt", "elsewhere").err


def test_views_are_shown_by_status_and_why(built: Afresh) -> None:
    shown = built("status").out
    assert all(model in shown for model in MODELS)
    assert "fresh: nothing that it is made from changed" in built("why", "funnel").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "--dbt", "nowhere"], "nowhere/manifest.json: is missing"),
        (["add", "--dbt", "target", "http://x.test/"], "--dbt: not with other items"),
        (["add", "--dbt", "target", "--source", "web"], "source 'web' has no setting dbt"),
        (["due", "--dbt", "--lease", "1m"], "--lease: not with --dbt"),
        (["due", "--dbt", "--for", "0s"], "--for: give more than 0 s"),
        (["due", "--for", "1h"], "--for: only with --dbt"),
        (["due", "dbt"], "dbt: only with --dbt"),
        (["due", "--dbt", "--", "true", "--select", "x"], "--select: leave it out"),
    ],
)
def test_wrong_usage_is_named(built: Afresh, arguments: list[str], words: str) -> None:
    found = built(*arguments)
    assert (found.code != 0, words in found.err) == (True, True), found.err
