"""Every tutorial is typed through in an empty folder, and prints what its page shows.

In the suite the example servers change faster and runs are shorter; a slow test types the pages as they are
written. ``make interop`` does so with the real dbt.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.pages.blocks import PAGES, ROOT
from tests.pages.tutorials import TUTORIALS, Pace, differences, type_through
from tests.servers.quick_afresh import QuickAfresh

pytestmark = pytest.mark.waits

# tests/cluster types that of a cluster through, in a folder of Ray's own; it has no small version.
TYPED = [page for page in TUTORIALS if page != "tutorial-cluster"]

_SHORTER = {
    "--for 60s": "--for 3s",
    "--for 2m": "--for 3s",
    "CLOSESPIDER_TIMEOUT=60": "CLOSESPIDER_TIMEOUT=3",
    'min_interval = "1s"': 'min_interval = 0\ndelay = "0s"',
    'requests = "1/s"': 'requests = "30/s"',
}
_QUICK = """
export AFRESH_BUDGET_REQUESTS=30/s
afresh() { quick "" "$@"; }
python() { quick "$@"; }
"""


def small(quick_afresh: QuickAfresh) -> Pace:
    return Pace(quick_afresh.shell + _QUICK, _SHORTER, speed=25.0, limit_s=100.0)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a program ``dbt`` that writes what the real one wrote."""
    folder = tmp_path / "programs"
    folder.mkdir()
    dbt = folder / "dbt"
    command = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m tests.pages.recorded_dbt "$@"'
    dbt.write_text(f"#!/bin/sh\n{command}\n")
    dbt.chmod(0o755)
    return folder


@pytest.mark.parametrize("page", TYPED)
def test_a_tutorial_works_and_prints_what_it_shows(
    page: str, quick_afresh: QuickAfresh, tmp_path: Path, programs: Path
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    steps = type_through(page, folder, small(quick_afresh), programs)
    assert {step.block.place: differences(step) for step in steps if differences(step)} == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", TYPED)
def test_a_tutorial_works_as_it_is_written(page: str, tmp_path: Path, programs: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    steps = type_through(page, folder, programs=programs)
    assert {step.block.place: differences(step) for step in steps if differences(step)} == {}


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_has_what_a_reader_looks_for(page: str) -> None:
    text = PAGES[page].read_text()
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads[0] == "What you need"
    assert heads[-1] == "What to look at next"
    assert len(re.findall(r"^## \d\. ", text, re.MULTILINE)) >= 3
