"""The recipe for Dagster in docs/howto.md, run by Dagster; a script with recorded files stands for dbt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interop.environments import ROOT
from tests.pages.blocks import blocks_of
from tests.sources.recorded_dbt import ENDED_S, OF_ORDERS, copy_recorded

from afresh.values.clock import SystemClock


class Job:
    """A project folder with the recipe, and programs ``afresh`` and ``dbt`` for it."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.programs = folder, programs
        self.shift_s = SystemClock().now_s() - 60.0 - ENDED_S
        (recipe,) = [block.text for block in blocks_of("howto") if "import dagster" in block.text]
        (folder / "recipe.py").write_text(recipe)
        own = folder / "bin"
        own.mkdir()
        self._write(own / "afresh", f'exec {sys.executable} -m afresh "$@"')
        self._write(
            own / "dbt",
            f'echo "$@" > {folder}/arguments; cp {folder}/new/* {folder}/target; exit $(cat code)',
        )
        self.environment = {
            **os.environ,
            "PATH": f"{own}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}",
            "DAGSTER_HOME": str(folder / "home"),
        }
        (folder / "home").mkdir()
        copy_recorded("1-built", folder / "target", shift_s=self.shift_s)
        for words in (["init", "."], ["add", "--dbt", "target"]):
            self.run([str(own / "afresh"), *words])

    def _write(self, path: Path, script: str) -> None:
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )

    def execute(self) -> subprocess.CompletedProcess[str]:
        return self.run(
            [str(self.programs / "dagster"), "job", "execute", "-f", "recipe.py", "-j", "freshness"]
        )


@pytest.fixture
def job(tmp_path: Path, programs: Path) -> Job:
    return Job(tmp_path, programs)


def test_the_recipe_builds_what_is_due_and_fails_as_dbt_does(job: Job) -> None:
    done = job.execute()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is due" in done.stderr
    assert not (job.folder / "arguments").exists()
    copy_recorded("2-loaded", job.folder / "target", "sources.json", shift_s=job.shift_s)
    copy_recorded("3-failed", job.folder / "new", "run_results.json", shift_s=job.shift_s)
    (job.folder / "code").write_text("1")
    done = job.execute()
    assert done.returncode != 0
    assert "dbt ended with 1" in done.stderr
    words = (job.folder / "arguments").read_text().split()
    assert (words[0], set(words[2:])) == ("build", OF_ORDERS)
    known = job.run([sys.executable, "-m", "afresh", "observe", "--dbt", "target"])
    assert "no run that was not known already" in known.stderr  # it was learned, although it failed


def test_the_schedule_is_hourly(job: Job) -> None:
    text = "import recipe; (one,) = recipe.defs.schedules; print(one.cron_schedule)"
    done = job.run([str(job.programs / "python"), "-c", text])
    assert done.stdout.strip() == "0 * * * *", done.stderr
