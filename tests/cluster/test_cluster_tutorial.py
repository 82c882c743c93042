"""The tutorial of a cluster is typed through as it is written, and prints what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cluster.ray_cluster import ray_folder
from tests.pages.tutorials import Pace, differences, type_through

from afresh.cluster.host_hashing import assign_hosts

pytestmark = pytest.mark.waits


def belong_as_shown(addresses: Sequence[str]) -> bool:
    """The shops of the page belong to the first and the second shard, also where there are three.

    Shops on other ports may move to the third one. ``rebalance`` then names them, and the page does not.
    """
    return assign_hosts(addresses, range(3)) == [0, 1]


def test_the_shops_belong_to_shards_as_the_page_shows() -> None:
    assert belong_as_shown(["127.0.0.1:8201", "127.0.0.1:8202"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ray_folder() as own:
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        pace = Pace(in_place_of={"--for 60s": "--for 25s"}, suits=belong_as_shown)
        steps = type_through("tutorial-cluster", tmp_path, pace)
    assert {step.block.place: differences(step) for step in steps if differences(step)} == {}
    folder = tmp_path / "shops"
    assert "<title>" in (folder / "film.html").read_text()
    assert (folder / "changes.jsonl").read_text().count('"new"') == 20
    assert (folder / "shards" / "2.db").exists()
