"""What the tests of the engine's commands share: a new project, and a small site with pages and a sitemap."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.servers.site import Site, page
from tests.servers.threaded import served, sitemap

from afresh.engine.logs import LOGGER

QUICK = ("--budget", "200/s", "--host-delay", "0.001s", "--allow-private")


@pytest.fixture
def site() -> Iterator[Site]:
    with served({f"/{name}": page(name.encode()) for name in "abc"}) as found:
        found.routes["/map.xml"] = page(sitemap(found.url, "a", "b"), Content_Type="application/xml")
        found.routes["/closed/map.xml"] = found.routes["/map.xml"]
        found.routes["/robots.txt"] = page(b"User-agent: *\nDisallow: /closed")
        yield found


@pytest.fixture
def mirror(afresh: Afresh) -> Iterator[Afresh]:
    """A shell in a new project."""
    assert afresh("init").code == 0
    yield afresh
    LOGGER.handlers.clear()


def write_settings(folder: Path, text: str) -> None:
    (folder / "afresh.toml").write_text(text)


def closed_window() -> str:
    """A window of an hour that opens in three hours."""
    opens = datetime.now(UTC) + timedelta(hours=3)
    return f"{opens:%H:%M}-{opens + timedelta(hours=1):%H:%M}"
