"""An engine that runs in a thread of its own, from ``start`` to ``stop``."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.engine.app import init_folder, open_engine
from afresh.values.errors import UsageError
from afresh.web.token import make_token_file


def test_an_engine_is_started_and_stopped(tmp_path: Path) -> None:
    with VirtualSite([0.0] * 5) as site, site.engine(tmp_path) as engine:
        engine.add(site.urls())
        engine.start()
        with pytest.raises(UsageError, match="running already"):
            engine.start()
        progress = engine.stop()
        assert progress.in_flight == 0
        with pytest.raises(UsageError, match="not running"):
            engine.stop()
        engine.start()  # and again
        engine.stop()


def test_what_breaks_in_the_thread_is_raised_by_stop(tmp_path: Path) -> None:
    with VirtualSite() as site, site.engine(tmp_path, source='on_change = "nowhere:nothing"') as engine:
        engine.start()
        with pytest.raises(UsageError, match="nowhere"):
            engine.stop()


def test_the_files_of_a_new_project_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    init_folder(tmp_path / "mirror")
    make_token_file(tmp_path / "mirror")
    with open_engine(tmp_path / "mirror") as engine:
        engine.add(["https://example.org/"])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "mirror").iterdir()}
    assert {"afresh.toml", "afresh.db", "afresh.db-wal", "web.token"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes
