"""One dashboard over one filled store for the tests that change nothing of note, and one browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.web.browser import chromium
from tests.web.serving import Client, dashboard, engine_of, filled


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A dashboard that is shared by the tests of a module."""
    with engine_of(tmp_path_factory.mktemp("web")) as engine:
        filled(engine)
        with dashboard(engine) as client:
            yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module."""
    with chromium() as found:
        yield found
