"""The recipe for Airflow in docs/howto.md: a file that Python runs, and a command that does what it says.

Airflow itself is not started: stand-ins record what the file says to it, and bash runs the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import pytest
from tests.pages.blocks import blocks_of
from tests.servers.quick_afresh import QuickAfresh
from tests.sources.recorded_dbt import ENDED_S, OF_ORDERS, copy_recorded

from afresh.values.clock import SystemClock

FOLDER = "/srv/shop"
"""The folder of the project in the recipe."""


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """Stands for the classes of Airflow, after it was given the recipe."""
    found = MagicMock()
    for name, word in (("airflow.sdk", "DAG"), ("airflow.providers.standard.operators.bash", "BashOperator")):
        parts = name.split(".")
        for length in range(1, len(parts)):
            parent = ".".join(parts[:length])
            monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
        module = ModuleType(name)
        setattr(module, word, getattr(found, word))
        monkeypatch.setitem(sys.modules, name, module)
    (recipe,) = [block for block in blocks_of("howto") if "airflow" in block.text]
    exec(compile(recipe.text, recipe.place, "exec"), {"__name__": "recipe"})
    return found


def test_the_recipe_runs_one_command_every_hour_and_never_twice_at_once(airflow: MagicMock) -> None:
    airflow.DAG.assert_called_once()
    assert airflow.DAG.call_args.kwargs == {"schedule": "@hourly", "catchup": False, "max_active_runs": 1}
    airflow.BashOperator.assert_called_once()
    assert f"cd {FOLDER} && " in airflow.BashOperator.call_args.kwargs["bash_command"]


class Task:
    """The task of the recipe on a project with recorded files; a script stands for dbt."""

    def __init__(self, folder: Path, quick: QuickAfresh, command: str) -> None:
        self.folder, self.shift_s = folder, SystemClock().now_s() - 60.0 - ENDED_S
        self._command = (
            f'{quick.shell}\nafresh() {{ quick "" "$@"; }}\n{command.replace(FOLDER, str(folder))}'
        )
        copy_recorded("1-built", folder / "target", shift_s=self.shift_s)
        copy_recorded("3-failed", folder / "failed", "run_results.json", shift_s=self.shift_s)
        for words in (("init", "."), ("add", "--dbt", "target")):
            assert quick.run(*words, folder=folder).returncode == 0
        (folder / "bin").mkdir()
        dbt = folder / "bin" / "dbt"
        dbt.write_text('#!/bin/sh\n[ "$1" = source ] || { echo "$@" > words; cp failed/* target; }\nexit 1\n')
        dbt.chmod(0o755)

    def run(self) -> int:
        """Run the task as Airflow does, by bash; return its exit code."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(
            ["bash", "-c", self._command], env=environment, capture_output=True, check=False
        )
        return done.returncode

    @property
    def words(self) -> list[str]:
        """The words of the last ``dbt build``; none if there was none."""
        path = self.folder / "words"
        return path.read_text().split() if path.exists() else []


def test_its_command_builds_what_is_due_and_ends_as_dbt_does(
    airflow: MagicMock, tmp_path: Path, quick_afresh: QuickAfresh
) -> None:
    """``dbt source freshness`` fails each time, as for a source that is too old; the command goes on."""
    task = Task(tmp_path, quick_afresh, airflow.BashOperator.call_args.kwargs["bash_command"])
    assert task.run() == 0
    assert task.words == []  # nothing was due
    copy_recorded("2-loaded", tmp_path / "target", "sources.json", shift_s=task.shift_s)
    assert task.run() == 1  # as dbt build
    assert (task.words[:2], set(task.words[2:])) == (["build", "--select"], OF_ORDERS)
