"""The core alone, without any extra, plans, estimates and copies; it says which extra is missing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.core_environment import make_core_environment
from tests.engine.living import LivingSite
from tests.servers.quick_afresh import quick_afresh_of

pytestmark = pytest.mark.waits

Ran = subprocess.CompletedProcess[str]
Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs afresh, where only the packages of the core can be imported."""
    python, environment = make_core_environment(tmp_path_factory.mktemp("core"))
    with quick_afresh_of(python, environment, tmp_path_factory.mktemp("quick")) as quick:

        def run(folder: Path, *words: str) -> Ran:
            return quick.run(*words, folder=folder, environment=environment)

        yield run


def test_a_process_of_its_own_begins_as_the_others_do(core: Run, tmp_path: Path) -> None:
    """The other tests run forks of one process that has imported the command line."""
    python, environment = make_core_environment(tmp_path)
    ran = subprocess.run(
        [*python, "-m", "afresh", "--version"], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert core(tmp_path, "--version").stdout == ran.stdout


def test_csv_is_planned_and_estimated(core: Run, tmp_path: Path) -> None:
    (tmp_path / "polls.csv").write_text(
        "item,time,changed\n"
        + "".join(
            f"{item},{day},{int(day % gap == 0)}\n" for item, gap in (("a", 2), ("b", 5)) for day in range(20)
        )
    )
    estimated = core(tmp_path, "estimate", "polls.csv", "-o", "rates.csv")
    assert estimated.returncode == 0, estimated.stderr
    planned = core(tmp_path, "plan", "rates.csv", "--budget", "1/d", "-o", "plan.jsonl", "--json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["items"] == 2
    rows = [json.loads(line) for line in (tmp_path / "plan.jsonl").read_text().splitlines()]
    assert [row["item"] for row in rows] == ["a", "b"]


def test_a_site_is_copied_and_shown(core: Run, tmp_path: Path) -> None:
    assert core(tmp_path, "init", ".").returncode == 0
    with LivingSite([1.0] * 3) as site:
        assert core(tmp_path, "add", "--allow-private", *site.urls()).returncode == 0
        quick = ["--allow-private", "--host-delay", "0.001s", "--budget", "100/s"]
        ran = core(tmp_path, "run", "--once", *quick, "--json")
    assert json.loads(ran.stdout)["polls"] == 3, ran.stderr
    assert "3" in core(tmp_path, "status").stdout
    listed = core(tmp_path, "list", "-o", "items.csv")
    assert len((tmp_path / "items.csv").read_text().splitlines()) == 4, listed.stderr


def test_what_needs_an_extra_names_the_line_that_installs_it(core: Run, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,rate\na,1\n")
    (tmp_path / "items.parquet").write_bytes(b"PAR1 and more")
    core(tmp_path, "init", ".")
    plan = ["plan", "items.csv", "--budget", "1/d"]
    for words, extra in (
        (["plan", "items.parquet", "--budget", "1/d"], "parquet"),
        ([*plan, "-o", "plan.parquet"], "parquet"),
        (["plan", "s3://bucket/items.csv", "--budget", "1/d"], "parquet"),
        ([*plan, "--plot", "plan.svg"], "plots"),
        (["serve"], "web"),
    ):
        ran = core(tmp_path, *words)
        assert ran.returncode == 2, (words, ran.stdout, ran.stderr)
        assert f"pip install 'afresh[{extra}]'" in ran.stderr, (words, ran.stderr)
    assert not (tmp_path / "plan.parquet").exists()
