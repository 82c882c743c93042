"""The tutorial of a cluster is typed through as it is written, and prints what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.ray_cluster import ray_folder
from tests.pages.tutorials import Pace, differences, type_through

pytestmark = pytest.mark.waits


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ray_folder() as own:
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        steps = type_through("tutorial-cluster", tmp_path, Pace(in_place_of={"--for 60s": "--for 25s"}))
    assert {step.block.place: differences(step) for step in steps if differences(step)} == {}
    folder = tmp_path / "shops"
    assert "<title>" in (folder / "film.html").read_text()
    assert (folder / "changes.jsonl").read_text().count('"new"') == 20
    assert (folder / "shards" / "2.db").exists()
