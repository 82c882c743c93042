"""What tests with other tools share. Without ``make interop`` they are not collected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

collect_ignore_glob = [] if "AFRESH_INTEROP" in os.environ else ["*/*"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests below this folder."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with the programs of the tool."""
    return Path(os.environ["AFRESH_INTEROP"])
