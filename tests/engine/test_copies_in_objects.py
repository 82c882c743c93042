"""A run that keeps its copies in a folder of objects, while that folder works and while it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import obstore
import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.engine.engine import Engine
from afresh.engine.settings.parsing import parse_settings
from afresh.values.items import ItemQuery

SETTINGS = """
[store]
copies = "file:copies"
versions = 1
[budget]
requests = "4/s"
[[source]]
name = "web"
kind = "http"
delay = "0s"
respect_robots = false
allow_private = true
"""


def run_site(folder: Path, site: VirtualSite, lasts_s: float) -> Engine:
    engine = site.engine(folder, settings=parse_settings(SETTINGS))
    engine.add(site.urls())
    engine.run(for_s=lasts_s)
    return engine


def judge(engine: Engine, folder: Path, site: VirtualSite) -> None:
    assert engine.store.upkeep.check() == []
    assert engine.store.upkeep.stats().stored_bytes == 0
    items = engine.store.items.page(ItemQuery(), 99).items
    assert sum(item.polls for item in items) == len(site.requests)
    for item in items:
        copy = engine.get(item.key)
        assert copy is not None
        assert copy.content
    assert list((folder / "copies").rglob("*.zst"))


def test_a_run_keeps_its_copies_in_objects(tmp_path: Path) -> None:
    site = VirtualSite([0.5] * 3, hosts=1)
    with run_site(tmp_path, site, 20.0) as engine:
        judge(engine, tmp_path, site)


def test_a_folder_that_is_full_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, calls = obstore.put, [0]

    def fail_at_first(*given: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] in range(3, 12):
            raise obstore.exceptions.GenericError("LocalFileSystem: No space left on device (os error 28)")
        return put(*given, **more)

    monkeypatch.setattr(obstore, "put", fail_at_first)
    site = VirtualSite([0.5] * 3, hosts=1)
    with run_site(tmp_path, site, 60.0) as engine:
        assert calls[0] > 12
        judge(engine, tmp_path, site)
