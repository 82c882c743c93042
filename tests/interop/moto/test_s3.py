"""Datasets and copies in S3, as the server of moto plays it on this machine."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.cli.conftest import Afresh
from tests.cli.planning.datasets.conftest import MakeItems
from tests.stores.backends import copy_of, ids_of, new_items, seen
from tests.waiting import until

from afresh.stores.object_copies import ObjectCopies
from afresh.stores.opening import CopiesPlace, open_store
from afresh.values.errors import StoreMissingError

pytest_plugins = ["tests.cli.conftest", "tests.cli.planning.datasets.conftest"]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def server(programs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """HOST:PORT of a server with the bucket ``shop``; the environment has what clients need."""
    port = free_port()
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ):
        monkeypatch.setenv(name, value)
    command = [str(programs / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(port))
            make = urllib.request.Request(f"http://127.0.0.1:{port}/shop", method="PUT")
            urllib.request.urlopen(make).close()
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def answers(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def test_a_plan_from_s3_to_s3(afresh: Afresh, make_items: MakeItems, tmp_path: Path, server: str) -> None:
    make_items()
    options = f"endpoint_override={server}&scheme=http"
    bucket, _ = fs.FileSystem.from_uri(f"s3://shop/items?{options}")
    fs.copy_files(str(tmp_path / "items"), "shop/items", fs.LocalFileSystem(), bucket)
    items, plan = f"s3://shop/items/*.parquet?{options}", f"s3://shop/plan?{options}"
    for _ in range(2):
        ran = afresh("plan", items, "--budget", "150/d", "-o", plan)
        assert ran.code == 0, ran.err
    assert "3 were there already" in ran.err
    assert afresh("plan", "whole.parquet", "--budget", "150/d", "-o", "plan.parquet").code == 0
    found = pq.read_table("shop/plan", filesystem=bucket)["frequency"].to_numpy()
    alone = pq.read_table("plan.parquet")["frequency"].to_numpy()
    assert abs(found - alone).sum() < 1e-6 * 150
    ran = afresh("plan", f"s3://nowhere/items/*.parquet?{options}", "--budget", "150/d", "-o", plan)
    assert ran.code == 1
    assert "s3://nowhere/items" in ran.err
    assert "key" not in ran.err


@pytest.mark.usefixtures("server")
def test_copies_in_s3(tmp_path: Path) -> None:
    place = CopiesPlace("s3://shop/copies", 3600.0)
    with open_store("sqlite:a.db", base=tmp_path, copies=place) as store:
        store.items.add(new_items(1), 0.0)
        (item_id,) = ids_of(store, ["k0"])
        for time_s, content in ((1.0, b"old"), (100.0, b"new")):
            (lease,) = store.leases.take([item_id], time_s, 60.0)
            store.commit([seen(lease, time_s, changed=True, new_copy=copy_of(content))])
        copy = store.copies.get(item_id)
        assert copy is not None
        assert copy.content == b"new"
        assert store.upkeep.check() == []
        store.items.remove([item_id], 200.0)
        assert store.upkeep.delete_unnamed_copies(4e9) == 0
        assert store.upkeep.delete_unnamed_copies(4e9 + 3600) == 2
    missing = ObjectCopies("s3://nowhere/copies")
    with pytest.raises(StoreMissingError, match="s3://nowhere/copies: there is no such bucket"):
        missing.put({bytes(32): b"data"})
