"""A Ray cluster of several nodes on this machine, which ends with its ``with`` and leaves nothing behind."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.waiting import until

_MEMORY = 100 << 20


class RayCluster:
    """Two nodes: the head, on which the run of the cluster is, and a worker."""

    def __init__(self, cluster: Any, worker: Any) -> None:
        self._cluster, self.worker = cluster, worker
        self.address: str = cluster.address

    def kill_worker(self) -> None:
        """Kill all processes of the worker node, as a power cut would."""
        self._cluster.remove_node(self.worker, allow_graceful=False)

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
def ray_cluster() -> Iterator[RayCluster]:
    with ray_folder() as own, patch.dict(os.environ, own):
        yield from _started()


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
    options: dict[str, Any] = {"num_cpus": 2, "object_store_memory": _MEMORY}
    cluster: Any = Cluster()
    try:
        # Neither more nodes nor the logs of workers are asked for: two processes less to start.
        cluster.add_node(**options, include_dashboard=False, no_monitor=True, include_log_monitor=False)
        yield RayCluster(cluster, cluster.add_node(**options))
    finally:
        ray.shutdown()
        cluster.shutdown()
