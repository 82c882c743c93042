"""Datasets of items, and a Ray cluster of two nodes with one core each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MakeItems = Callable[..., Path]


@pytest.fixture
def make_items(tmp_path: Path) -> MakeItems:
    """Writes items to ``whole.parquet`` and in parts to the folder ``items``, and returns the folder."""

    def make(rows: int = 3000, parts: int = 3, **more: Any) -> Path:
        rng = np.random.default_rng(1)
        columns: dict[str, Any] = {
            "item": np.arange(rows),
            "rate": rng.lognormal(0, 2, rows).astype(np.float32),
            "weight": rng.lognormal(0, 1, rows).astype(np.float32),
            "cost": rng.uniform(0.5, 2, rows),
            **more,
        }
        table = pa.table(columns)
        folder = tmp_path / "items"
        folder.mkdir()
        pq.write_table(table, tmp_path / "whole.parquet")
        for part in range(parts):
            first, last = part * rows // parts, (part + 1) * rows // parts
            pq.write_table(table.slice(first, last - first), folder / f"part-{part}.parquet")
        return folder

    return make


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    """A cluster of two nodes with one core each, which the variable ``RAY_ADDRESS`` names."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        node = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
        cluster: Any = Cluster(initialize_head=True, head_node_args=node)
        try:
            cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
            patch.setenv("RAY_ADDRESS", cluster.address)
            yield cluster
        finally:
            cluster.shutdown()
            shutil.rmtree(Path(tempfile.gettempdir(), "ray"), ignore_errors=True)
