"""What tests with other tools share. Without ``make interop`` they are not collected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

LIMIT_S = 1800.0
"""The time limit of a test. Other tools are started many times, and take long on a busy machine: thirty
invocations of dbt are a minute on a quiet one, and five minutes beside twenty other processes."""

collect_ignore_glob = [] if "AFRESH_INTEROP" in os.environ else ["*/*"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests below this folder."""
    here = Path(__file__).parent
    ours = {path for path in {item.path for item in items} if here in path.parents}
    for item in items:
        if item.path in ours:
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.timeout(LIMIT_S))


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with the programs of the tool."""
    return Path(os.environ["AFRESH_INTEROP"])
