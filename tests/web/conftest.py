"""One dashboard over one filled store for the tests that change nothing of note, and one browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
def browsers() -> Iterator[Callable[[], Browser]]:
    """Browsers for the tests of a module, one at a time."""
    with chromium() as alive:
        yield alive


@pytest.fixture
def browser(browsers: Callable[[], Browser]) -> Browser:
    """A browser that lives."""
    return browsers()
