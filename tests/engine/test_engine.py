"""An engine that runs in a thread of its own, from ``start`` to ``stop``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engine.virtual_site import VirtualSite

from afresh.values.errors import UsageError


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
