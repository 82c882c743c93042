"""A Ray cluster of several nodes on this machine, which ends with its ``with`` and leaves nothing behind."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_MEMORY = 100 << 20


class RayCluster:
    """Two nodes: the head, on which the run of the cluster is, and a worker."""

    def __init__(self, cluster: Any, worker: Any) -> None:
        self._cluster, self.worker = cluster, worker
        self.address: str = cluster.address

    def kill_worker(self) -> None:
        """Kill all processes of the worker node, as a power cut would."""
        self._cluster.remove_node(self.worker, allow_graceful=False)


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    folder = tempfile.mkdtemp(prefix="r")  # short, because the paths of sockets are limited
    own = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
    try:
        with patch.dict(os.environ, own):
            yield from _started()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started() -> Iterator[RayCluster]:
    import ray
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    options: dict[str, Any] = {"num_cpus": 2, "object_store_memory": _MEMORY}
    cluster: Any = Cluster()
    try:
        cluster.add_node(**options, include_dashboard=False)
        yield RayCluster(cluster, cluster.add_node(**options))
    finally:
        ray.shutdown()
        cluster.shutdown()
