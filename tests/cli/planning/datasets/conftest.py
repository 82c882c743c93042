"""Datasets of items, and the address of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cluster.ray_cluster import RayCluster

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


@pytest.fixture
def ray_address(ray_nodes: RayCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a Ray cluster of two nodes, which the variable ``RAY_ADDRESS`` names."""
    monkeypatch.setenv("RAY_ADDRESS", ray_nodes.address)
    return ray_nodes.address
