"""One dashboard over one filled store for the tests that change nothing of note."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.web.serving import Client, dashboard, engine_of, filled


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A dashboard that is shared by the tests of a module."""
    with engine_of(tmp_path_factory.mktemp("web")) as engine:
        filled(engine)
        with dashboard(engine) as client:
            yield client
