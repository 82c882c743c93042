"""Steps as tasks of a Ray cluster with two nodes on this machine."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.cli.planning.datasets.conftest import MakeItems
from tests.cli.planning.datasets.test_plan_dataset import BUDGET, assert_same_plan
from tests.cluster.ray_cluster import RayCluster
from tests.waiting import until

from afresh.cli.planning.datasets import ray_executor
from afresh.cli.planning.datasets.ray_executor import RayExecutor, import_ray
from afresh.values.errors import AfreshError, InputError, UsageError

pytestmark = pytest.mark.waits(together="ray")


def ten_times(number: int) -> int:
    if number < 0:
        raise InputError("is below 0", path="a.csv", row=3)
    return 10 * number


def die_once(mark: str) -> int:
    """End the worker at the first call, as a machine does that loses its power."""
    path = Path(mark)
    if not path.exists():
        path.touch()
        os._exit(1)
    return 1


def wait_for_mark(folder: str) -> int:
    """Say that it runs, and end when there is a mark."""
    Path(folder, f"runs-{os.getpid()}").touch()
    until(Path(folder, "go").exists)
    return 1


@pytest.fixture
def executor(ray_address: str) -> Iterator[RayExecutor]:
    with RayExecutor(ray_address) as opened:
        yield opened


@pytest.mark.slow
def test_results_come_in_order_and_errors_as_they_were_raised(executor: RayExecutor, tmp_path: Path) -> None:
    assert executor.workers == 2
    assert list(executor.run(ten_times, range(20))) == [*range(0, 200, 10)]
    with pytest.raises(InputError, match=r"a.csv, row 3 \(line 4\): is below 0"):
        list(executor.run(ten_times, [1, -1]))
    # A job whose worker died runs again.
    assert list(executor.run(die_once, [str(tmp_path / name) for name in "ab"])) == [1, 1]


@pytest.mark.usefixtures("ray_address")
def test_a_plan_on_two_nodes_is_the_plan_of_one_file(
    afresh: Afresh, make_items: MakeItems, tmp_path: Path
) -> None:
    make_items()
    ran = afresh("plan", "items", *BUDGET, "-o", "plan", "--on", "ray")  # its nodes run in another folder
    assert ran.code == 0, ran.err
    assert afresh("plan", "whole.parquet", *BUDGET, "-o", "whole-plan.parquet").code == 0
    assert_same_plan(tmp_path / "plan", tmp_path / "whole-plan.parquet", 150.0)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_address")
def test_an_estimate_on_two_nodes_is_that_of_one_file(afresh: Afresh, tmp_path: Path) -> None:
    rows = [
        f"p{item},{86400 * time},{int(item * time % 7 == 1)}" for time in range(20) for item in range(300)
    ]
    (tmp_path / "polls").mkdir()
    for number in range(3):
        lines = ["item,time,changed", *rows[number::3]]
        (tmp_path / "polls" / f"{number}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "whole.csv").write_text("\n".join(["item,time,changed", *rows]) + "\n")
    ran = afresh("estimate", tmp_path / "polls", "-o", tmp_path / "rates", "--on", "ray", "--json")
    assert ran.code == 0, ran.err
    alone = json.loads(afresh("estimate", "whole.csv", "--json").out)
    assert json.loads(ran.out)["mean_rate"] == pytest.approx(alone["mean_rate"], rel=1e-9)


@pytest.mark.slow
def test_the_jobs_of_a_lost_node_run_elsewhere(ray_nodes: RayCluster, tmp_path: Path) -> None:
    """A second node, which has joined for this test, is lost while both jobs run."""
    extra = ray_nodes.add_node()
    with RayExecutor(ray_nodes.address) as executor, ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: list(executor.run(wait_for_mark, [str(tmp_path)] * 3)))
        until(lambda: len(list(tmp_path.glob("runs-*"))) == 3)
        ray_nodes.kill_node(extra)
        (tmp_path / "go").touch()
        assert found.result(timeout=120) == [1, 1, 1]


@pytest.mark.slow
def test_a_node_that_was_lost_just_before_is_left_out(ray_nodes: RayCluster) -> None:
    """Ray takes it to be alive for some seconds more."""
    ray_nodes.kill_node(ray_nodes.add_node())
    with RayExecutor(ray_nodes.address) as executor:
        assert executor.workers == 2
        assert list(executor.run(ten_times, range(4))) == [0, 10, 20, 30]


@pytest.mark.slow
def test_a_node_with_another_version_is_refused(ray_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "__version__", "9.9.9")
    with pytest.raises(UsageError, match=r"has afresh .*, this machine afresh 9.9.9 .*: install the same"):
        RayExecutor(ray_address).__enter__()


def test_an_unreachable_cluster_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"127.0.0.1:{port} cannot be reached: Connection refused"):
            RayExecutor(f"127.0.0.1:{port}").__enter__()
    with pytest.raises(UsageError, match="give ray://HOST or"):
        RayExecutor("host:name")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "find_spec", lambda _name: None)
    with pytest.raises(AfreshError, match=r"pip install 'afresh\[ray\]'"):
        import_ray()
