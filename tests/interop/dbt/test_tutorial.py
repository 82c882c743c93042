"""The tutorial of dbt, typed through as it is written, with the real dbt."""

from __future__ import annotations

from pathlib import Path

from tests.pages.tutorials import differences, type_through


def test_the_tutorial_works_with_dbt(tmp_path: Path, programs: Path) -> None:
    steps = type_through("tutorial-dbt", tmp_path, programs=programs)
    assert {step.block.place: differences(step) for step in steps if differences(step)} == {}
