"""What tests of several layers share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from tests import leftovers
from tests.servers.postgres import running_postgres

# Tests run side by side: threads of the linear algebra would only spin beside each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples every time: what fails once fails again, and what lands was seen to pass.
# Fewer of them in every run than in "thorough", which the slow tests use.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=100)
hypothesis.settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """At the end of the run, look for what the tests left behind."""
    config.pluginmanager.register(leftovers, "tests.leftovers")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL for the whole session: that of ``AFRESH_TEST_POSTGRES``, or one of our own."""
    given = os.environ.get("AFRESH_TEST_POSTGRES")
    if given:
        yield given
        return
    with running_postgres() as server:
        yield server.url()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may look into (pytest's own are for their owner alone)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)
