"""A Ray cluster of several nodes on this machine, which ends with its ``with`` and leaves nothing behind."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from tests.waiting_first import kept_together

_MEMORY = 100 << 20


class RayCluster:
    """Two nodes with one core each: the head, on which the run of the cluster is, and a worker."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._worker = self.add_node()
        self.address: str = cluster.address

    def add_node(self) -> Any:
        """Start another node; return what ``kill_node`` takes."""
        return self._cluster.add_node(num_cpus=1, object_store_memory=_MEMORY)

    def kill_node(self, node: Any) -> None:
        """Kill all processes of a node, as a power cut would."""
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_worker(self) -> None:
        """Kill all processes of the worker node."""
        self.kill_node(self._worker)

    def kill_head(self) -> None:
        """Kill the process of the head that knows all others, as a lost machine would."""
        (server,) = self._cluster.head_node.all_processes["gcs_server"]
        server.process.kill()
        server.process.wait()


@contextmanager
def ray_folder() -> Iterator[dict[str, str]]:
    """The environment of a Ray that leaves nothing behind: a folder of its own, and no reports."""
    folder = tempfile.mkdtemp(prefix="r")  # short, because the paths of sockets are limited
    try:
        # Ray would run its workers at a low priority, where other tests leave them little time.
        given = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
        yield given | {"RAY_TMPDIR": folder}
        # Processes of Ray end by themselves when that of their node is gone, on a busy machine after a while.
        until(lambda: not _processes_of(folder), "all processes of Ray have ended")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ray_environment() -> Iterator[None]:
    """Let every Ray that starts here, or in a program that is started here, leave nothing behind."""
    with ray_folder() as own, pytest.MonkeyPatch.context() as environment:
        for name, value in own.items():
            environment.setenv(name, value)
        yield


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    with ray_environment():
        yield from _started()


class SharedRayCluster:
    """A plugin of pytest: a cluster for all tests that ``waits(together="ray")`` keeps together."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._nodes: RayCluster | None = None

    @property
    def nodes(self) -> RayCluster:
        """The cluster, which starts with the first test that uses it."""
        if self._nodes is None:
            self._nodes = self._stack.enter_context(ray_cluster())
        return self._nodes

    @pytest.hookimpl(trylast=True)  # after the fixtures of the test
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> None:
        """End the cluster after the last of its tests."""
        if nextitem is None or kept_together(nextitem) != "ray":
            self.close()

    def close(self) -> None:
        """End the cluster, if it runs: once, because this is called after every later test, too. What Ray
        leaves to the end of the process is collected here, in silence."""
        if self._nodes is None:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            warnings.simplefilter("ignore", FutureWarning)
            self._stack.close()
            self._nodes = None
            gc.collect()


def _processes_of(folder: str) -> list[int]:
    """The processes, except this one, that have files in this folder open, as Ray's have their logs. What
    they were started with cannot be read, because they overwrite it with a title."""
    processes = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
    return [process for process in processes if process != os.getpid() and _has_open(process, folder)]


def _has_open(process: int, folder: str) -> bool:
    with suppress(OSError):  # it has ended, or is not ours
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):  # it was closed just now
                if file.readlink().is_relative_to(folder):
                    return True
    return False


def _started() -> Iterator[RayCluster]:
    import ray
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    cluster: Any = Cluster()
    try:
        # Neither more nodes nor the logs of workers are asked for: two processes less to start.
        more: dict[str, Any] = {"include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
        cluster.add_node(num_cpus=1, object_store_memory=_MEMORY, **more)
        yield RayCluster(cluster)
    finally:
        ray.shutdown()
        cluster.shutdown()
