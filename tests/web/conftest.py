"""One dashboard over one filled store for the tests that change nothing of note, and one browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.web.browser import chromium, last_words
from tests.web.serving import Client, dashboard, engine_of, filled
from tests.web.stage import Stage, open_stage


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A dashboard that is shared by the tests of a module."""
    with engine_of(tmp_path_factory.mktemp("web")) as engine:
        filled(engine)
        with dashboard(engine) as client:
            yield client


@pytest.fixture(scope="session")
def stage(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A dashboard over real sources; made once, for it takes a while until they have learned."""
    with open_stage(postgres_url, tmp_path_factory.mktemp("stage")) as found:
        yield found


# Of a module, not of the session: its driver runs an event loop in this thread, and the tests of the engine
# run their own there. All tests in a browser are in one module, so it is started once.
@pytest.fixture(scope="module")
def chromium_and_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, Path]]:
    """The browser, and where it writes its log."""
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture
def browser(chromium_and_log: tuple[Browser, Path]) -> Iterator[Browser]:
    """The browser; if it dies under a test, its last words are shown."""
    found, log = chromium_and_log
    yield found
    assert found.is_connected(), f"chromium died: {last_words(log)}"
